// The usual cache requests read in place: a client's requests to one cache begin with the same
// bytes, so these are compared instead of parsed, and the answer is put together from pieces. What
// does not look exactly like that goes through the codec and means the same (spec/wire.md §4.6).

import {
  base64Length,
  beginFrame,
  decodeBase64Into,
  decodedLength,
  encodeBase64,
  endFrame,
} from "@felix/wire";
import type { ByteWriter } from "@felix/wire";

const encoder = new TextEncoder();
const ID_MEMBER = encoder.encode(',"request_id":');
const VERSION_MEMBER = encoder.encode(',"version":');
const VALUE_MEMBER = encoder.encode(',"value":');
const TTL_NULL = encoder.encode(',"ttl_ms":null}');
const OK_PREFIX = encoder.encode('{"type":"cache_ok","request_id":');
const NULL = encoder.encode("null");
const QUOTE = 0x22;
const CLOSE = 0x7d;

/** Longest key read in place: a longer one costs enough to make the codec's share small. */
const MAX_KEY_BYTES = 256;
/** Larger values are decoded into memory of their own. */
const MAX_SCRATCH_BYTES = 64 * 1024;
/** Digits of a request id that is surely below 2^64. */
const MAX_ID_DIGITS = 19;

/** The operations that are read in place. */
export type QuickOperation = "get" | "put" | "delete";

/** A request read in place; one for all streams, because a request is served at once. */
export class QuickRequest {
  /** Where the values of puts are decoded; whoever stores one copies it. */
  #scratch: Uint8Array = new Uint8Array(4096);

  operation: QuickOperation = "get";
  key = "";
  /** Where the key's text lies in the payload. */
  keyStart = 0;
  keyEnd = 0;
  /** Where the digits of the request id lie. */
  idStart = 0;
  idEnd = 0;
  /** The value of a put; valid until the next request. */
  value: Uint8Array | null = null;

  /** Room for a value of `bytes` bytes. */
  room(bytes: number): Uint8Array {
    if (bytes > MAX_SCRATCH_BYTES) return new Uint8Array(bytes);
    if (bytes > this.#scratch.length) this.#scratch = new Uint8Array(MAX_SCRATCH_BYTES);
    return this.#scratch.subarray(0, bytes);
  }
}

/** The constant bytes of one client's requests to one cache. */
export class QuickCache {
  readonly #prefixes: Readonly<Record<QuickOperation, Uint8Array>>;
  readonly #valuePrefix: Uint8Array;

  /** For requests that name this cache. */
  constructor(tenant: string, namespace: string, cache: string) {
    const scope = `"tenant_id":${JSON.stringify(tenant)},"namespace":${JSON.stringify(namespace)}` +
      `,"cache":${JSON.stringify(cache)},"key":"`;
    const piece = (type: string): Uint8Array => encoder.encode(`{"type":"${type}",${scope}`);
    this.#prefixes = {
      get: piece("cache_get"),
      put: piece("cache_put"),
      delete: piece("cache_delete"),
    };
    this.#valuePrefix = piece("cache_value");
  }

  /** Reads a request into `into`; `false` = it has to go through the codec. */
  read(payload: Uint8Array, into: QuickRequest): boolean {
    // `{"type":"cache_g…`, `…_p…`, `…_d…`
    const letter = payload[15];
    const operation = letter === 0x67 ? "get" : letter === 0x70 ? "put" : "delete";
    const prefix = this.#prefixes[operation];
    if (!matches(payload, 0, prefix)) return false;
    into.operation = operation;
    into.keyStart = prefix.length;
    if (!readKey(payload, into)) return false;
    return operation === "put" ? readPut(payload, into) : readId(payload, into.keyEnd + 1, into) &&
      payload[into.idEnd] === CLOSE && payload.length === into.idEnd + 1;
  }

  /** The request id of `request`, whose frame had this payload. */
  requestId(payload: Uint8Array, { idStart, idEnd }: QuickRequest): bigint {
    let digits = "";
    for (let at = idStart; at < idEnd; at++) digits += String.fromCharCode(payload[at]!);
    return BigInt(digits);
  }

  /**
   * Appends the `cache_value` that answers `request`, whose frame had this payload. `version`: of
   * the value, for a client that is told.
   */
  answerValue(
    out: ByteWriter,
    payload: Uint8Array,
    request: QuickRequest,
    value: Uint8Array | null,
    version: number | null = null,
  ): void {
    const prefix = this.#valuePrefix;
    const { keyStart, keyEnd } = request;
    const valueBytes = value === null ? 4 : base64Length(value.length) + 2;
    out.ensure(prefix.length + (keyEnd - keyStart) + valueBytes + 96);
    const start = beginFrame(out, 0);
    const { buffer } = out;
    let at = copy(buffer, out.length, prefix, 0, prefix.length);
    at = copy(buffer, at, payload, keyStart, keyEnd + 1);
    at = copy(buffer, at, VALUE_MEMBER, 0, VALUE_MEMBER.length);
    if (value === null) at = copy(buffer, at, NULL, 0, 4);
    else {
      buffer[at++] = QUOTE;
      at = encodeBase64(value, buffer, at);
      buffer[at++] = QUOTE;
    }
    at = copy(buffer, at, ID_MEMBER, 0, ID_MEMBER.length);
    at = copy(buffer, at, payload, request.idStart, request.idEnd);
    if (version !== null) {
      at = copy(buffer, at, VERSION_MEMBER, 0, VERSION_MEMBER.length);
      at += encoder.encodeInto(String(version), buffer.subarray(at)).written;
    }
    buffer[at++] = CLOSE;
    out.length = at;
    endFrame(out, start);
  }

  /** Appends the `cache_ok` that answers `request`. */
  answerOk(out: ByteWriter, payload: Uint8Array, request: QuickRequest): void {
    out.ensure(OK_PREFIX.length + 64);
    const start = beginFrame(out, 0);
    const { buffer } = out;
    let at = copy(buffer, out.length, OK_PREFIX, 0, OK_PREFIX.length);
    at = copy(buffer, at, payload, request.idStart, request.idEnd);
    buffer[at++] = CLOSE;
    out.length = at;
    endFrame(out, start);
  }
}

/** A key of plain ASCII without escapes, and its closing quote. */
function readKey(payload: Uint8Array, into: QuickRequest): boolean {
  let key = "";
  const { keyStart } = into;
  const limit = Math.min(payload.length, keyStart + MAX_KEY_BYTES);
  for (let at = keyStart; at < limit; at++) {
    const byte = payload[at]!;
    if (byte === QUOTE) {
      into.key = key;
      into.keyEnd = at;
      return true;
    }
    if (byte < 0x20 || byte >= 0x7f || byte === 0x5c) return false;
    key += String.fromCharCode(byte);
  }
  return false;
}

function readPut(payload: Uint8Array, into: QuickRequest): boolean {
  const start = into.keyEnd + 1 + VALUE_MEMBER.length + 1;
  const quoted = matches(payload, into.keyEnd + 1, VALUE_MEMBER) && payload[start - 1] === QUOTE;
  if (!quoted || !payload.subarray(-TTL_NULL.length).every(isTtlNull)) return false;
  // From the back: the value is long, what follows it is not.
  let at = payload.length - TTL_NULL.length;
  into.idEnd = at;
  while (isDigit(payload[at - 1])) at--;
  into.idStart = at;
  const end = at - ID_MEMBER.length - 1;
  if (!isId(payload, into) || end < start || payload[end] !== QUOTE) return false;
  if (!matches(payload, end + 1, ID_MEMBER)) return false;
  const bytes = decodedLength(payload, start, end);
  if (bytes < 0) return false;
  into.value = into.room(bytes);
  return decodeBase64Into(payload, start, end, into.value);
}

function isTtlNull(byte: number, index: number): boolean {
  return byte === TTL_NULL[index];
}

function readId(payload: Uint8Array, at: number, into: QuickRequest): boolean {
  if (!matches(payload, at, ID_MEMBER)) return false;
  into.idStart = at + ID_MEMBER.length;
  let end = into.idStart;
  while (isDigit(payload[end])) end++;
  into.idEnd = end;
  return isId(payload, into);
}

function isId(payload: Uint8Array, { idStart, idEnd }: QuickRequest): boolean {
  const digits = idEnd - idStart;
  return digits === 1 || (digits > 1 && digits <= MAX_ID_DIGITS && payload[idStart] !== 0x30);
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= 0x30 && byte <= 0x39;
}

function matches(bytes: Uint8Array, at: number, wanted: Uint8Array): boolean {
  if (at + wanted.length > bytes.length) return false;
  for (let index = wanted.length - 1; index >= 0; index--) {
    if (bytes[at + index] !== wanted[index]) return false;
  }
  return true;
}

/** Short copies: a loop is cheaper than a view and `set`. */
function copy(
  into: Uint8Array,
  at: number,
  from: Uint8Array,
  start: number,
  end: number,
): number {
  for (let index = start; index < end; index++) into[at++] = from[index]!;
  return at;
}
