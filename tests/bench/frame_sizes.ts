// Lengths of the Felix frames that a cell moves, so that the raw ceiling moves exactly as much.
// Layouts: spec/wire.md §2.1 (header), §5.3, §5.5, §5.6 (binary), §4.6 (cache, JSON).

import { type CacheCell, STAMP_BYTES } from "./cell.ts";

/** Names that every benchmark uses: what the development broker has by default. */
export const NAMES = { tenant: "t1", namespace: "default", stream: "events", cache: "sessions" };

/** Length of the keys `key-0000` … that cache cells spread over. */
export const KEY_BYTES = 8;

/** Keys written before a cache cell starts. */
export const KEY_COUNT = 1024;

const HEADER_BYTES = 12;
const SCOPE_BYTES = 6 + NAMES.tenant.length + NAMES.namespace.length + NAMES.stream.length;

/** Bytes of a successful binary publish ack without an offset. */
export const ACK_BYTES = HEADER_BYTES + 11;

/** Bytes of an acknowledged publish of `batch` records of `payloadBytes`. */
export function publishFrameBytes(payloadBytes: number, batch: number): number {
  return HEADER_BYTES + 9 + SCOPE_BYTES + 4 + batch * (4 + payloadBytes);
}

/** Bytes of an event frame of `batch` stamped records. */
export function eventFrameBytes(payloadBytes: number, batch: number): number {
  return HEADER_BYTES + 4 + batch * (4 + STAMP_BYTES + payloadBytes);
}

/** Bytes of an event frame of `batch` records that tells the offset of the first. */
export function replayFrameBytes(payloadBytes: number, batch: number): number {
  return HEADER_BYTES + 4 + 8 + batch * (4 + payloadBytes);
}

/** The key with number `index`. */
export function cacheKey(index: number): string {
  return `key-${String(index % KEY_COUNT).padStart(4, "0")}`;
}

/** Bytes of a cache request and of its answer, with five-digit request ids. */
export function cacheFrameBytes(cell: CacheCell): { request: number; answer: number } {
  const { tenant, namespace, cache } = NAMES;
  const scope = { tenant_id: tenant, namespace, cache, key: cacheKey(0) };
  const value = new Uint8Array(cell.payloadBytes).toBase64();
  const bytes = (message: unknown) => HEADER_BYTES + JSON.stringify(message).length;
  const request_id = 12345;
  if (cell.operation === "put") {
    return {
      request: bytes({ type: "cache_put", ...scope, value, request_id, ttl_ms: null }),
      answer: bytes({ type: "cache_ok", request_id }),
    };
  }
  const found = cell.operation === "get" ? value : null;
  return {
    request: bytes({ type: "cache_get", ...scope, request_id }),
    answer: bytes({ type: "cache_value", ...scope, value: found, request_id }),
  };
}
