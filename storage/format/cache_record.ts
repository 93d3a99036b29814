// The payload of a record in a cache, cursor or dead-letter log (spec/storage.md §13.1),
// little-endian. Rule: a payload that is not exactly understood is refused by name, never guessed
// at; the shard that holds it does not serve.

import { getU64Le, setU64Le } from "./little_endian.ts";
import { decodeUtf8, encodeUtf8 } from "./utf8.ts";

const HEADER_BYTES = 14;
const CARRIED_HEADER_BYTES = 22;
const PLAIN = 1;
const CARRIED = 2;
const PUT = 0;
const DELETE = 1;

/** A key gets a value. */
export interface CachePut {
  readonly op: "put";
  readonly key: string;
  /** After a decode a view of the bytes decoded. */
  readonly value: Uint8Array;
  /** Unix milliseconds after which the entry is gone, 0 to 2^53 - 1; 0: never. */
  readonly expiresAtMs: number;
  /** Offset of the put that this one copies; `null`: the record's own offset is the version. */
  readonly version: number | null;
}

/** A key loses its value. */
export interface CacheDelete {
  readonly op: "delete";
  readonly key: string;
}

/** One change of a cache. */
export type CacheRecord = CachePut | CacheDelete;

/** Why a payload is not a cache record. */
export type CacheRecordFault =
  | "truncated"
  | "unknown_version"
  | "unknown_op"
  | "key_beyond_record"
  | "key_not_utf8"
  | "delete_with_version"
  | "number_too_large";

/** The payload of a change. */
export function encodeCacheRecord(record: CacheRecord): Uint8Array {
  const key = encodeUtf8(record.key);
  const put = record.op === "put" ? record : null;
  const version = put?.version ?? null;
  const keyAt = version === null ? HEADER_BYTES : CARRIED_HEADER_BYTES;
  const bytes = new Uint8Array(keyAt + key.length + (put?.value.length ?? 0));
  const view = new DataView(bytes.buffer);
  bytes[0] = version === null ? PLAIN : CARRIED;
  bytes[1] = put === null ? DELETE : PUT;
  setU64Le(view, 2, put?.expiresAtMs ?? 0);
  view.setUint32(10, key.length, true);
  if (version !== null) setU64Le(view, HEADER_BYTES, version);
  bytes.set(key, keyAt);
  if (put !== null) bytes.set(put.value, keyAt + key.length);
  return bytes;
}

/** Reads a payload. The value is a view of `bytes`, not a copy. */
export function decodeCacheRecord(bytes: Uint8Array): CacheRecord | CacheRecordFault {
  if (bytes.length < HEADER_BYTES) return "truncated";
  const version = bytes[0];
  const op = bytes[1];
  if (version !== PLAIN && version !== CARRIED) return "unknown_version";
  if (op !== PUT && op !== DELETE) return "unknown_op";
  if (version === CARRIED && op === DELETE) return "delete_with_version";
  const keyAt = version === CARRIED ? CARRIED_HEADER_BYTES : HEADER_BYTES;
  if (bytes.length < keyAt) return "truncated";
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const keyEnd = keyAt + view.getUint32(10, true);
  if (keyEnd > bytes.length) return "key_beyond_record";
  const key = decodeUtf8(bytes.subarray(keyAt, keyEnd));
  if (key === null) return "key_not_utf8";
  if (op === DELETE) return { op: "delete", key };
  const expiresAtMs = getU64Le(view, 2);
  const carried = version === CARRIED ? getU64Le(view, HEADER_BYTES) : null;
  if (expiresAtMs < 0 || (carried !== null && carried < 0)) return "number_too_large";
  return { op: "put", key, value: bytes.subarray(keyEnd), expiresAtMs, version: carried };
}
