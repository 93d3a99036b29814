// The payload of a record in a counter log (spec/storage.md §13.2), little-endian. Rule: a payload
// that is not exactly understood is refused by name; the record ends where its key ends.

import { decodeUtf8, encodeUtf8 } from "./utf8.ts";

const HEADER_BYTES = 14;
const VERSION = 1;
const DELTA = 0;
const CHECKPOINT = 1;

/** One change of a counter: a delta adds to its sum, a checkpoint replaces it. */
export interface CounterRecord {
  readonly op: "delta" | "checkpoint";
  readonly key: string;
  /** The delta or the folded sum; -2^63 to 2^63 - 1. */
  readonly amount: bigint;
}

/** Why a payload is not a counter record. */
export type CounterRecordFault =
  | "truncated"
  | "unknown_version"
  | "unknown_op"
  | "key_beyond_record"
  | "trailing_bytes"
  | "key_not_utf8";

/** The payload of a change. */
export function encodeCounterRecord({ op, key, amount }: CounterRecord): Uint8Array {
  const keyBytes = encodeUtf8(key);
  const bytes = new Uint8Array(HEADER_BYTES + keyBytes.length);
  const view = new DataView(bytes.buffer);
  bytes[0] = VERSION;
  bytes[1] = op === "delta" ? DELTA : CHECKPOINT;
  view.setBigInt64(2, amount, true);
  view.setUint32(10, keyBytes.length, true);
  bytes.set(keyBytes, HEADER_BYTES);
  return bytes;
}

/** Reads a payload. */
export function decodeCounterRecord(bytes: Uint8Array): CounterRecord | CounterRecordFault {
  if (bytes.length < HEADER_BYTES) return "truncated";
  if (bytes[0] !== VERSION) return "unknown_version";
  const op = bytes[1];
  if (op !== DELTA && op !== CHECKPOINT) return "unknown_op";
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const end = HEADER_BYTES + view.getUint32(10, true);
  if (end > bytes.length) return "key_beyond_record";
  if (end < bytes.length) return "trailing_bytes";
  const key = decodeUtf8(bytes.subarray(HEADER_BYTES, end));
  if (key === null) return "key_not_utf8";
  return { op: op === DELTA ? "delta" : "checkpoint", key, amount: view.getBigInt64(2, true) };
}
