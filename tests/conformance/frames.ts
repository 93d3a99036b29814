// Frames built and read from the layouts of spec/wire.md §2 and §5, without the wire room: the
// conformance tests must not share a mistake with the code they test. Small, slow and strict.

const MAGIC = 0x464c5831;
const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true });

/** A whole frame as it came in. */
export interface RawFrame {
  readonly flags: number;
  readonly payload: Uint8Array;
}

/** Header fields that a test makes wrong on purpose. */
export interface HeaderFault {
  readonly magic?: number;
  readonly version?: number;
  readonly length?: number;
}

/** Bytes one after the other. */
export function concat(...parts: readonly Uint8Array[]): Uint8Array {
  const out = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}

/** Big-endian unsigned integer of `size` bytes. */
export function uint(value: number | bigint, size: 1 | 2 | 4 | 8): Uint8Array {
  const out = new Uint8Array(8);
  new DataView(out.buffer).setBigUint64(0, BigInt(value));
  return out.subarray(8 - size);
}

/** UTF-8. */
export function utf8(text: string): Uint8Array {
  return encoder.encode(text);
}

/** Frame of §2.1. */
export function frame(flags: number, payload: Uint8Array, fault: HeaderFault = {}): Uint8Array {
  const { magic = MAGIC, version = 1, length = payload.length } = fault;
  return concat(uint(magic, 4), uint(version, 2), uint(flags, 2), uint(length, 4), payload);
}

/** JSON frame: an object as `JSON.stringify` writes it, or text as it stands. */
export function json(message: Record<string, unknown> | string): Uint8Array {
  return frame(0, utf8(typeof message === "string" ? message : JSON.stringify(message)));
}

/** What a publish frame says (§5.1 to §5.4). */
export interface Publish {
  readonly tenant?: string;
  readonly namespace?: string;
  readonly stream?: string;
  readonly payloads: readonly (string | Uint8Array)[];
  readonly key?: string | Uint8Array;
  readonly requestId?: number | bigint;
  readonly ackMode?: number;
  readonly producer?: { readonly id: bigint; readonly sequence: bigint };
}

/** Payload of §5.1: scope, count, records. */
export function publishBody(publish: Publish): Uint8Array {
  const { tenant = "t1", namespace = "default", stream = "events", payloads } = publish;
  const short = (value: Uint8Array): Uint8Array => concat(uint(value.length, 2), value);
  const records = payloads.map((payload) => {
    const bytes = typeof payload === "string" ? utf8(payload) : payload;
    return concat(uint(bytes.length, 4), bytes);
  });
  const { key } = publish;
  const keyBytes = typeof key === "string" ? utf8(key) : key;
  return concat(
    keyBytes === undefined ? new Uint8Array(0) : short(keyBytes),
    short(utf8(tenant)),
    short(utf8(namespace)),
    short(utf8(stream)),
    uint(payloads.length, 4),
    ...records,
  );
}

/** A whole publish frame; acked when it has a request id. */
export function publish(content: Publish): Uint8Array {
  const { requestId, ackMode = 1, producer, key } = content;
  let flags = 0x0001;
  const prefix: Uint8Array[] = [];
  if (requestId !== undefined) {
    flags |= 0x0008;
    prefix.push(uint(requestId, 8), uint(ackMode, 1));
  }
  if (producer !== undefined) {
    flags |= 0x0100;
    prefix.push(uint(producer.id, 8), uint(producer.sequence, 8));
  }
  if (key !== undefined) flags |= 0x0040;
  return frame(flags, concat(...prefix, publishBody(content)));
}

/** Reads fields one after the other and refuses what is left over. */
class Fields {
  #at = 0;
  constructor(readonly bytes: Uint8Array) {}

  take(size: number): Uint8Array {
    if (this.#at + size > this.bytes.length) throw new RangeError("the payload ends too early");
    this.#at += size;
    return this.bytes.subarray(this.#at - size, this.#at);
  }

  uint(size: 1 | 2 | 4 | 8): number {
    const value = this.take(size).reduce((sum, byte) => sum * 256n + BigInt(byte), 0n);
    if (value > BigInt(Number.MAX_SAFE_INTEGER)) throw new RangeError(`${value} is too large`);
    return Number(value);
  }

  text(): string {
    return decoder.decode(this.take(this.uint(2)));
  }

  end(): void {
    if (this.#at !== this.bytes.length) throw new RangeError("bytes are left over");
  }
}

/** A publish ack (§5.5). */
export interface Ack {
  readonly ok: boolean;
  readonly requestId: number;
  readonly message: string;
  readonly code?: number;
  readonly retry?: number;
  readonly reason?: string;
  readonly retryAfterMs?: number;
  readonly offset?: number;
}

/** Reads an ack; only the fields that the flags announce may be there. */
export function readAck({ flags, payload }: RawFrame): Ack {
  if ((flags & 0x0010) === 0) throw new RangeError(`flags ${flags.toString(16)} are no ack`);
  if ((flags & ~0x1610) !== 0) throw new RangeError(`flags ${flags.toString(16)} on an ack`);
  const fields = new Fields(payload);
  const ack = { ok: fields.uint(1) === 0, requestId: fields.uint(8), message: fields.text() };
  const code = (flags & 0x0200) === 0 ? {} : { code: fields.uint(2), retry: fields.uint(1) };
  const detail = (flags & 0x0400) === 0
    ? {}
    : { reason: fields.text(), retryAfterMs: fields.uint(8) };
  const offset = (flags & 0x1000) === 0 ? {} : { offset: fields.uint(8) };
  fields.end();
  return { ...ack, ...code, ...detail, ...offset };
}

/** Payloads of a shared event batch (§5.6), with the offset of the first where it is told. */
export function readEvents(
  { flags, payload }: RawFrame,
): { base?: number; payloads: Uint8Array[] } {
  if ((flags & 0x0004) === 0) throw new RangeError(`flags ${flags.toString(16)} are no events`);
  if ((flags & ~0x0024) !== 0) throw new RangeError(`flags ${flags.toString(16)} on events`);
  const fields = new Fields(payload);
  const base = (flags & 0x0020) === 0 ? {} : { base: fields.uint(8) };
  const count = fields.uint(4);
  const payloads = Array.from({ length: count }, () => fields.take(fields.uint(4)));
  fields.end();
  return { ...base, payloads };
}

/** The object of a JSON frame. */
export function readJson({ flags, payload }: RawFrame): Record<string, unknown> {
  if (flags !== 0) throw new RangeError(`flags ${flags.toString(16)} on a JSON frame`);
  return JSON.parse(decoder.decode(payload)) as Record<string, unknown>;
}

/** The text of a JSON frame, byte for byte. */
export function jsonText({ flags, payload }: RawFrame): string {
  if (flags !== 0) throw new RangeError(`flags ${flags.toString(16)} on a JSON frame`);
  return decoder.decode(payload);
}

/** Text of UTF-8 bytes. */
export function textOf(bytes: Uint8Array): string {
  return decoder.decode(bytes);
}

/** Cuts whole frames out of bytes that come in pieces. */
export class FrameCutter {
  #bytes = new Uint8Array(0);

  /** Bytes of an unfinished frame. */
  get pending(): number {
    return this.#bytes.length;
  }

  /** Takes more bytes. */
  push(bytes: Uint8Array): void {
    this.#bytes = concat(this.#bytes, bytes) as Uint8Array<ArrayBuffer>;
  }

  /** The next whole frame, or `null`. @throws {RangeError} on a header that is not Felix v1 */
  next(): RawFrame | null {
    const bytes = this.#bytes;
    if (bytes.length < 12) return null;
    const view = new DataView(bytes.buffer, bytes.byteOffset);
    if (view.getUint32(0) !== MAGIC) throw new RangeError("magic");
    if (view.getUint16(4) !== 1) throw new RangeError("version");
    const end = 12 + view.getUint32(8);
    if (bytes.length < end) return null;
    this.#bytes = bytes.slice(end);
    return { flags: view.getUint16(6), payload: bytes.subarray(12, end) };
  }
}
