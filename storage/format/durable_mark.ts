// The bytes of `durable.mark` (spec/storage.md §5.1): how far the newest segment is known to be on
// the device. Rule: one that does not verify is no mark at all.

import { crc32 } from "./crc32.ts";
import { getU64, setU64 } from "./integers.ts";
import { SEGMENT_HEADER_BYTES } from "./segment_header.ts";

/** `FLSM`. */
const MAGIC = 0x464C_534D;
const VERSION = 1;
/** Bytes of the file. */
export const DURABLE_MARK_BYTES = 32;

/** Everything before `segment`, and its first `syncedBytes` bytes, are on the device. */
export interface DurableMark {
  readonly segment: number;
  readonly syncedBytes: number;
}

/** The bytes of a mark. */
export function encodeDurableMark(mark: DurableMark): Uint8Array {
  const bytes = new Uint8Array(DURABLE_MARK_BYTES);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, MAGIC);
  view.setUint16(4, VERSION);
  setU64(view, 8, mark.segment);
  setU64(view, 16, mark.syncedBytes);
  view.setUint32(24, crc32(bytes, 0, 24));
  return bytes;
}

/** Reads a mark; `null` when it does not verify. */
export function decodeDurableMark(bytes: Uint8Array): DurableMark | null {
  if (bytes.length < DURABLE_MARK_BYTES) return null;
  const view = new DataView(bytes.buffer, bytes.byteOffset, DURABLE_MARK_BYTES);
  if (view.getUint32(0) !== MAGIC || view.getUint16(4) !== VERSION) return null;
  if (view.getUint32(24) !== crc32(bytes, 0, 24)) return null;
  const segment = getU64(view, 8);
  const syncedBytes = getU64(view, 16);
  return segment < 0 || syncedBytes < 0 ? null : { segment, syncedBytes };
}

/** The byte of `segment` from which on nothing was ever reported synced; `null`: not known. */
export function unsyncedFrom(mark: DurableMark | null, segment: number): number | null {
  if (mark === null || segment < mark.segment) return null;
  if (segment > mark.segment) return SEGMENT_HEADER_BYTES;
  return Math.max(mark.syncedBytes, SEGMENT_HEADER_BYTES);
}

/** How many bytes of `segment` the mark vouches for; `Infinity`: all of them. */
export function syncedThrough(mark: DurableMark | null, segment: number): number {
  if (mark === null || segment > mark.segment) return 0;
  return segment < mark.segment ? Infinity : mark.syncedBytes;
}
