// Binary publish batches (spec/wire.md §5.1 to §5.4). Decoding checks every length and copies
// nothing: names, key and records are views of the payload. The records keep their layout, which is
// also that of an event batch, so a broker passes them on without encoding them again.

import {
  FLAG_BINARY_PUBLISH_ACKED,
  FLAG_BINARY_PUBLISH_BATCH,
  FLAG_BINARY_PUBLISH_IDEMPOTENT,
  FLAG_BINARY_PUBLISH_KEYED,
} from "./flags.ts";
import type { ByteWriter } from "./byte_writer.ts";
import { abandonFrame, beginFrame, endFrame } from "./frame.ts";
import { WireError } from "./wire_error.ts";

/** Ack mode of a publish: 0 none, 1 per message, 2 per batch. */
export type PublishAckMode = 0 | 1 | 2;

const SERVED_FLAGS = FLAG_BINARY_PUBLISH_BATCH | FLAG_BINARY_PUBLISH_ACKED |
  FLAG_BINARY_PUBLISH_KEYED | FLAG_BINARY_PUBLISH_IDEMPOTENT;
/** Request id and ack mode in front of an acked publish. */
const ACK_PREFIX_BYTES = 9;

const strictUtf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/**
 * A publish batch as it came in. Every byte member is a view of the frame's payload; the names are
 * read from it when first asked for, so ask before the payload's memory is used again.
 */
export class PublishFrame {
  #names: readonly string[] | null = null;

  /** Made by `decodePublish`. */
  constructor(
    /** Request id; 0 on an unacked publish. */
    readonly requestId: bigint,
    /** Ack mode. */
    readonly ack: PublishAckMode,
    /** Producer id of an idempotent publish. */
    readonly producerId: bigint | undefined,
    /** Sequence of an idempotent publish. */
    readonly sequence: bigint | undefined,
    /** Routing key; `null` = none, which is not the empty key. */
    readonly key: Uint8Array | null,
    /** The three names with their lengths, as on the wire: equal bytes name the same stream. */
    readonly scope: Uint8Array,
    /** Records in the batch. */
    readonly count: number,
    /** `count` records, each a u32 length and its bytes. */
    readonly records: Uint8Array,
    /** Bytes of the records without their lengths. */
    readonly payloadBytes: number,
  ) {}

  /** Tenant id. */
  get tenant(): string {
    return this.#decoded()[0]!;
  }

  /** Namespace. */
  get namespace(): string {
    return this.#decoded()[1]!;
  }

  /** Stream name. */
  get stream(): string {
    return this.#decoded()[2]!;
  }

  #decoded(): readonly string[] {
    if (this.#names !== null) return this.#names;
    const names: string[] = [];
    for (let at = 0, name = 0; name < 3; name++) {
      const end = at + 2 + read16(this.scope, at);
      names.push(strictUtf8.decode(this.scope.subarray(at + 2, end)));
      at = end;
    }
    return this.#names = names;
  }
}

/**
 * Decodes a publish batch of any form.
 * @throws {WireError} `incomplete` or `malformed`; on an acked publish whose prefix could be read
 * `malformed_body` with its `requestId` and `ackMode`, so that it can be answered
 */
export function decodePublish(flags: number, payload: Uint8Array): PublishFrame {
  if ((flags & FLAG_BINARY_PUBLISH_BATCH) === 0 || (flags & ~SERVED_FLAGS) !== 0) {
    throw new WireError("malformed", `0x${flags.toString(16)} is not a publish`);
  }
  const idempotent = (flags & FLAG_BINARY_PUBLISH_IDEMPOTENT) !== 0;
  if ((flags & FLAG_BINARY_PUBLISH_ACKED) === 0) {
    if (idempotent) throw new WireError("malformed", "an idempotent publish is always acked");
    return decodeBody(flags, payload, 0, 0n, 0);
  }
  if (payload.length < ACK_PREFIX_BYTES) {
    throw new WireError("incomplete", "the ack prefix is cut short");
  }
  const ackMode = payload[8]!;
  if (ackMode !== 1 && ackMode !== 2) throw new WireError("malformed", `ack mode ${ackMode}`);
  const requestId = read64(payload, 0);
  try {
    return decodeBody(flags, payload, ACK_PREFIX_BYTES, requestId, ackMode);
  } catch (error) {
    if (!(error instanceof WireError)) throw error;
    throw new WireError("malformed_body", error.message, { requestId, ackMode });
  }
}

function decodeBody(
  flags: number,
  payload: Uint8Array,
  start: number,
  requestId: bigint,
  ack: PublishAckMode,
): PublishFrame {
  let at = start;
  let producerId: bigint | undefined;
  let sequence: bigint | undefined;
  if ((flags & FLAG_BINARY_PUBLISH_IDEMPOTENT) !== 0) {
    if (payload.length < at + 16) throw incomplete("producer");
    producerId = read64(payload, at);
    sequence = read64(payload, at + 8);
    at += 16;
  }
  let key: Uint8Array | null = null;
  if ((flags & FLAG_BINARY_PUBLISH_KEYED) !== 0) {
    const end = endOfText(payload, at, "key");
    key = payload.subarray(at + 2, end);
    at = end;
  }
  const scopeStart = at;
  at = endOfText(payload, at, "tenant");
  at = endOfText(payload, at, "namespace");
  at = endOfText(payload, at, "stream");
  const scope = payload.subarray(scopeStart, at);
  checkNames(scope);
  if (payload.length < at + 4) throw incomplete("count");
  const count = read32(payload, at);
  at += 4;
  if (count > (payload.length - at) / 4) throw incomplete("records");
  const end = endOfRecords(payload, at, count);
  const records = payload.subarray(at, end);
  const payloadBytes = records.length - 4 * count;
  return new PublishFrame(
    requestId,
    ack,
    producerId,
    sequence,
    key,
    scope,
    count,
    records,
    payloadBytes,
  );
}

/** Where `count` records that begin at `at` end; every one lies within `bytes`. */
function endOfRecords(bytes: Uint8Array, at: number, count: number): number {
  for (let left = count; left > 0; left--) {
    if (bytes.length < at + 4) throw incomplete("record length");
    at += 4 + read32(bytes, at);
    if (at > bytes.length) throw incomplete("record");
  }
  return at;
}

function endOfText(bytes: Uint8Array, at: number, field: string): number {
  if (bytes.length < at + 2) throw incomplete(field);
  const end = at + 2 + read16(bytes, at);
  if (end > bytes.length) throw incomplete(field);
  return end;
}

/** Names are UTF-8; plain ASCII, the usual case, needs no decoding to know. */
function checkNames(scope: Uint8Array): void {
  for (let at = 0, name = 0; name < 3; name++) {
    const end = at + 2 + read16(scope, at);
    for (let index = at + 2; index < end; index++) {
      if (scope[index]! < 0x80) continue;
      try {
        strictUtf8.decode(scope.subarray(at + 2, end));
      } catch {
        throw new WireError("malformed", "a name is not UTF-8");
      }
      break;
    }
    at = end;
  }
}

/** Views of the `count` records in `records`, without their lengths. */
export function recordViews(records: Uint8Array, count: number): Uint8Array[] {
  const views: Uint8Array[] = [];
  for (let at = 0, index = 0; index < count; index++) {
    const end = at + 4 + read32(records, at);
    views.push(records.subarray(at + 4, end));
    at = end;
  }
  return views;
}

/** What a publish frame says besides its stream and records. */
export interface PublishFields {
  /** Routing key; absent or `null` = none. */
  readonly key?: Uint8Array | null;
  /** Needed when `ack` is not 0. */
  readonly requestId?: bigint | number;
  /** Ack mode; 0 (none) when absent. */
  readonly ack?: PublishAckMode;
  /** Producer id of an idempotent publish, which is always acked per batch. */
  readonly producerId?: bigint;
  /** Sequence of an idempotent publish. */
  readonly sequence?: bigint;
}

/** A whole publish. */
export interface PublishInput extends PublishFields {
  /** Tenant id. */
  readonly tenant: string;
  /** Namespace. */
  readonly namespace: string;
  /** Stream name. */
  readonly stream: string;
  /** The records. */
  readonly payloads: readonly Uint8Array[];
}

/**
 * Appends the three names of a stream with their lengths, as a publish carries them.
 * @throws {RangeError} a name is longer than 65,535 bytes
 */
export function encodeScope(
  out: ByteWriter,
  tenant: string,
  namespace: string,
  stream: string,
): void {
  const start = out.length;
  for (const name of [tenant, namespace, stream]) {
    const at = out.length;
    out.u16(0);
    const bytes = out.utf8(name);
    if (bytes > 0xffff) {
      out.length = start;
      throw new RangeError("a name is longer than 65,535 bytes");
    }
    out.buffer[at] = bytes >> 8;
    out.buffer[at + 1] = bytes & 0xff;
  }
}

/**
 * Appends one publish frame.
 * @throws {RangeError} a name or the key is longer than 65,535 bytes
 */
export function encodePublish(out: ByteWriter, publish: PublishInput): void {
  const start = encodePrefix(out, publish);
  try {
    encodeScope(out, publish.tenant, publish.namespace, publish.stream);
  } catch (error) {
    abandonFrame(out, start);
    throw error;
  }
  encodeRecords(out, publish.payloads);
  endFrame(out, start);
}

/** As `encodePublish`, with the names encoded before by `encodeScope`. */
export function encodePublishScoped(
  out: ByteWriter,
  scope: Uint8Array,
  payloads: readonly Uint8Array[],
  fields: PublishFields,
): void {
  const start = encodePrefix(out, fields);
  out.bytes(scope);
  encodeRecords(out, payloads);
  endFrame(out, start);
}

function encodePrefix(out: ByteWriter, fields: PublishFields): number {
  const { key, ack = 0, requestId = 0, producerId, sequence = 0n } = fields;
  const keyed = key !== undefined && key !== null;
  const flags = FLAG_BINARY_PUBLISH_BATCH | (ack === 0 ? 0 : FLAG_BINARY_PUBLISH_ACKED) |
    (keyed ? FLAG_BINARY_PUBLISH_KEYED : 0) |
    (producerId === undefined ? 0 : FLAG_BINARY_PUBLISH_IDEMPOTENT);
  if (producerId !== undefined && ack === 0) {
    throw new RangeError("an idempotent publish is always acked");
  }
  if (keyed && key.length > 0xffff) throw new RangeError("the key is longer than 65,535 bytes");
  const start = beginFrame(out, flags);
  if (ack !== 0) {
    if (typeof requestId === "bigint") out.u64(requestId);
    else out.u64n(requestId);
    out.u8(ack);
  }
  if (producerId !== undefined) {
    out.u64(producerId);
    out.u64(sequence);
  }
  if (keyed) {
    out.u16(key.length);
    out.bytes(key);
  }
  return start;
}

function encodeRecords(out: ByteWriter, payloads: readonly Uint8Array[]): void {
  out.u32(payloads.length);
  for (let index = 0; index < payloads.length; index++) {
    const payload = payloads[index]!;
    out.u32(payload.length);
    out.bytes(payload);
  }
}

function incomplete(field: string): WireError {
  return new WireError("incomplete", `the ${field} is cut short`);
}

function read16(bytes: Uint8Array, at: number): number {
  return (bytes[at]! << 8) | bytes[at + 1]!;
}

function read32(bytes: Uint8Array, at: number): number {
  return ((bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!) >>>
    0;
}

function read64(bytes: Uint8Array, at: number): bigint {
  const high = read32(bytes, at);
  const low = read32(bytes, at + 4);
  return high === 0 ? BigInt(low) : (BigInt(high) << 32n) | BigInt(low);
}
