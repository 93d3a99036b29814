// The bytes of `replica` (spec/storage.md §5.3): the highest leadership generation accepted and the
// commit offset. Rule: it is authoritative, so a file that does not verify must fail the open; it
// is never read as absent.

import { crc32 } from "./crc32.ts";
import { getU64, setU64 } from "./integers.ts";

/** `FLRS`. */
const MAGIC = 0x464C_5253;
const VERSION = 1;
/** Bytes of the file. */
export const REPLICA_BYTES = 28;

/** What a replica has promised. A shard without the file is at `{ generation: 0, commit: 0 }`. */
export interface Replica {
  /** Highest leadership generation accepted, 0 to 2^53 - 1. */
  readonly generation: number;
  /** One past the last record known to be on a majority, 0 to 2^53 - 1. */
  readonly commit: number;
}

/** The bytes of the file. */
export function encodeReplica({ generation, commit }: Replica): Uint8Array {
  const bytes = new Uint8Array(REPLICA_BYTES);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, MAGIC);
  view.setUint16(4, VERSION);
  setU64(view, 8, generation);
  setU64(view, 16, commit);
  view.setUint32(24, crc32(bytes, 0, 24));
  return bytes;
}

/**
 * Reads the file; `null` when it cannot be believed: another size, magic or version, a checksum
 * that fails, or a number above 2^53 - 1. The caller then refuses to open the shard.
 */
export function decodeReplica(bytes: Uint8Array): Replica | null {
  if (bytes.length !== REPLICA_BYTES) return null;
  const view = new DataView(bytes.buffer, bytes.byteOffset, REPLICA_BYTES);
  if (view.getUint32(0) !== MAGIC || view.getUint16(4) !== VERSION) return null;
  if (view.getUint32(24) !== crc32(bytes, 0, 24)) return null;
  const generation = getU64(view, 8);
  const commit = getU64(view, 16);
  return generation < 0 || commit < 0 ? null : { generation, commit };
}
