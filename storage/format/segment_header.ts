// The 32 bytes that open a segment file (spec/storage.md §3.1). Rule: written once, before any
// record, and never changed; each way to be wrong has its own name.

import type { FormatKind } from "../storage_error.ts";
import { crc32 } from "./crc32.ts";
import { getU64, setU64 } from "./integers.ts";

/** Bytes of a segment header. */
export const SEGMENT_HEADER_BYTES = 32;
/** `FLSG`. */
const MAGIC = 0x464C_5347;
/** Versions that are read (§3.4). */
const OLDEST_VERSION = 2;
const NEWEST_VERSION = 5;
/** Version of a new segment that holds nothing but plain and producer records. */
export const BASE_VERSION = 3;

/** What a segment header says. */
export interface SegmentHeader {
  /** 2 to 5; which kinds of record may follow. */
  readonly version: number;
  /** Offset of the segment's first record. */
  readonly base: number;
  /** Wall clock at creation, microseconds; informational. */
  readonly createdAtMicros: number;
}

/** The bytes of a header. */
export function encodeSegmentHeader(header: SegmentHeader): Uint8Array {
  const bytes = new Uint8Array(SEGMENT_HEADER_BYTES);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, MAGIC);
  view.setUint16(4, header.version);
  setU64(view, 8, header.base);
  setU64(view, 16, header.createdAtMicros);
  view.setUint32(24, crc32(bytes, 0, 24));
  return bytes;
}

/** Reads a header from the first bytes of a file, or names what is wrong with it. */
export function decodeSegmentHeader(bytes: Uint8Array): SegmentHeader | FormatKind {
  if (bytes.length < SEGMENT_HEADER_BYTES) return "Truncated";
  const view = new DataView(bytes.buffer, bytes.byteOffset, SEGMENT_HEADER_BYTES);
  if (view.getUint32(0) !== MAGIC) return "SegmentMagic";
  const version = view.getUint16(4);
  if (version < OLDEST_VERSION || version > NEWEST_VERSION) return "SegmentVersion";
  if (view.getUint16(6) !== 0) return "SegmentFlags";
  if (view.getUint32(24) !== crc32(bytes, 0, 24)) return "SegmentHeaderChecksum";
  const base = getU64(view, 8);
  const createdAtMicros = getU64(view, 16);
  // A base that cannot be counted with is as unusable as a wrong checksum.
  if (base < 0) return "SegmentHeaderChecksum";
  return { version, base, createdAtMicros: Math.max(0, createdAtMicros) };
}
