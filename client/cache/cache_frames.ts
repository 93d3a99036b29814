// Cache requests and answers as bytes. They are JSON messages like all others (spec/wire.md §4.6);
// because a cache call must cost next to nothing, requests are put together from pieces encoded
// once per cache, and the usual answers are read in place. The rest goes through the codec.

import {
  base64Length,
  beginFrame,
  decodeBase64Into,
  decodedLength,
  encodeBase64,
  endFrame,
} from "@felix/wire";
import type { ByteWriter } from "@felix/wire";
import type { ValueSlab } from "./value_slab.ts";

const encoder = new TextEncoder();

const OK_PREFIX = encoder.encode('{"type":"cache_ok","request_id":');
const VALUE_TYPE = encoder.encode('{"type":"cache_value",');
const ID_MEMBER = encoder.encode(',"request_id":');
const VALUE_MEMBER = encoder.encode(',"value":');
const TTL_NULL = ',"ttl_ms":null}';
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const CLOSE = 0x7d;
const ZERO = 0x30;

/** The constant parts of one cache's messages. */
export class CachePieces {
  readonly get: Uint8Array;
  readonly put: Uint8Array;
  readonly delete: Uint8Array;
  /** Bytes in front of the key in a `cache_value` for this cache. */
  readonly valuePrefixBytes: number;

  /** Encodes the constant parts. */
  constructor(tenant: string, namespace: string, cache: string) {
    const scope = `"tenant_id":${JSON.stringify(tenant)},"namespace":${JSON.stringify(namespace)}` +
      `,"cache":${JSON.stringify(cache)},"key":`;
    const piece = (type: string): Uint8Array => encoder.encode(`{"type":"${type}",${scope}`);
    this.get = piece("cache_get");
    this.put = piece("cache_put");
    this.delete = piece("cache_delete");
    this.valuePrefixBytes = piece("cache_value").length;
  }
}

/** Appends `key` as a JSON string; answers how many bytes it took. */
function appendKey(out: ByteWriter, key: string): number {
  const { length } = key;
  out.ensure(length + 2);
  const { buffer } = out;
  let at = out.length;
  buffer[at++] = QUOTE;
  for (let index = 0; index < length; index++) {
    const unit = key.charCodeAt(index);
    // Anything that JSON escapes or UTF-8 widens takes the general way.
    if (unit < 0x20 || unit > 0x7e || unit === QUOTE || unit === BACKSLASH) {
      return out.utf8(JSON.stringify(key));
    }
    buffer[at++] = unit;
  }
  buffer[at++] = QUOTE;
  out.length = at;
  return length + 2;
}

/** Appends a request id: a safe integer, 0 or more. */
function appendId(out: ByteWriter, id: number): void {
  let digits = 1;
  for (let rest = id; rest >= 10; rest = Math.floor(rest / 10)) digits++;
  out.ensure(digits);
  for (let at = out.length + digits - 1, rest = id; at >= out.length; at--) {
    const next = Math.floor(rest / 10);
    out.buffer[at] = ZERO + (rest - next * 10);
    rest = next;
  }
  out.length += digits;
}

/** Appends a `cache_get` or `cache_delete`; answers the bytes of its key. */
export function appendKeyRequest(
  out: ByteWriter,
  piece: Uint8Array,
  key: string,
  requestId: number,
): number {
  const start = beginFrame(out, 0);
  out.bytes(piece);
  const keyBytes = appendKey(out, key);
  out.bytes(ID_MEMBER);
  appendId(out, requestId);
  out.u8(CLOSE);
  endFrame(out, start);
  return keyBytes;
}

/** Appends a `cache_put`; answers the bytes of its key. */
export function appendPut(
  out: ByteWriter,
  piece: Uint8Array,
  put: { key: string; value: Uint8Array; ttlMs: number | null; requestId: number },
): number {
  const start = beginFrame(out, 0);
  out.bytes(piece);
  const keyBytes = appendKey(out, put.key);
  out.bytes(VALUE_MEMBER);
  out.ensure(base64Length(put.value.length) + 2);
  out.u8(QUOTE);
  out.length = encodeBase64(put.value, out.buffer, out.length);
  out.u8(QUOTE);
  out.bytes(ID_MEMBER);
  appendId(out, put.requestId);
  out.ascii(put.ttlMs === null ? TTL_NULL : `,"ttl_ms":${put.ttlMs}}`);
  endFrame(out, start);
  return keyBytes;
}

function matches(bytes: Uint8Array, at: number, wanted: Uint8Array): boolean {
  if (at < 0 || at + wanted.length > bytes.length) return false;
  for (let index = 0; index < wanted.length; index++) {
    if (bytes[at + index] !== wanted[index]) return false;
  }
  return true;
}

/** What a frame looks like at first sight; `position` is where its request id begins. */
export interface QuickAnswer {
  kind: "ok" | "value" | "other";
  id: number;
  position: number;
}

/** Looks at an answer without decoding it; `into` is reused by the caller. */
export function glance(payload: Uint8Array, into: QuickAnswer): QuickAnswer {
  into.kind = "other";
  const last = payload.length - 1;
  if (payload[last] !== CLOSE) return into;
  let at = last - 1;
  let id = 0;
  for (let scale = 1; at > 0 && scale <= 1e15; at--, scale *= 10) {
    const digit = payload[at]! - ZERO;
    if (digit < 0 || digit > 9) break;
    id += digit * scale;
  }
  const member = at - ID_MEMBER.length + 1;
  if (at === last - 1 || !matches(payload, member, ID_MEMBER)) return into;
  into.id = id;
  into.position = member;
  if (member === OK_PREFIX.length - ID_MEMBER.length && matches(payload, 0, OK_PREFIX)) {
    into.kind = "ok";
  } else if (matches(payload, 0, VALUE_TYPE)) into.kind = "value";
  return into;
}

/**
 * The value in a `cache_value` whose key takes `keyBytes`: bytes, `null`, or `undefined` when the
 * message does not look as expected.
 */
export function quickValue(
  payload: Uint8Array,
  keyEnd: number,
  position: number,
  slab: ValueSlab,
): Uint8Array | null | undefined {
  if (!matches(payload, keyEnd, VALUE_MEMBER)) return undefined;
  const start = keyEnd + VALUE_MEMBER.length;
  if (position - start === 4 && payload[start] === 0x6e) return null;
  if (payload[start] !== QUOTE || payload[position - 1] !== QUOTE) return undefined;
  const size = decodedLength(payload, start + 1, position - 1);
  if (size < 0) return undefined;
  const value = slab.take(size);
  return decodeBase64Into(payload, start + 1, position - 1, value) ? value : undefined;
}
