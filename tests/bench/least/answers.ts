// What the least broker answers: the smallest reply the published client accepts, found by looking
// at a few bytes of each frame. It checks nothing and stores nothing, so what a run against it
// costs is the engine and the client; the difference to a real broker is the broker.

const HEADER_BYTES = 12;
const MAGIC = Uint8Array.of(0x46, 0x4c, 0x58, 0x31, 0, 1);
const FLAG_ACKED = 0x0008;
const FLAG_ACK = 0x0010;
const ACK_BODY_BYTES = 11;

/** Flags and features of the least broker: everything a publish or a cache get needs. */
const AUTH_OK = {
  type: "auth_ok",
  server_flags: 0x7fff,
  // TOPOLOGY, CACHE_DELETE, STREAM_SHARDS, ERROR_CODES (spec/wire.md §3.5).
  server_features: 0x0825,
};

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** An output buffer that grows and is used again. */
export class Answers {
  bytes: Uint8Array<ArrayBuffer> = new Uint8Array(1024);
  length = 0;

  /** Room for `more` bytes behind what is there. */
  reserve(more: number): void {
    if (this.length + more <= this.bytes.length) return;
    const grown = new Uint8Array(Math.max(this.bytes.length * 2, this.length + more));
    grown.set(this.bytes.subarray(0, this.length));
    this.bytes = grown;
  }
}

/** The least broker's fixed parts, made once. */
export class LeastBroker {
  readonly #value: Uint8Array;
  readonly #getHead = encoder.encode('{"type":"cache_value"');
  readonly #putHead = encoder.encode('{"type":"cache_ok","request_id":');
  readonly #authOk = encoder.encode(JSON.stringify(AUTH_OK));

  /** `valueBytes`: length of the value that every cache get finds. */
  constructor(valueBytes: number) {
    const value = new Uint8Array(valueBytes).fill(0x61).toBase64();
    this.#value = encoder.encode(`,"value":"${value}"`);
  }

  /** Answers every whole frame at the front of `input`; returns how many bytes they took. */
  answer(input: Uint8Array, out: Answers): number {
    let at = 0;
    while (input.length - at >= HEADER_BYTES) {
      const length = u32(input, at + 8);
      const end = at + HEADER_BYTES + length;
      if (end > input.length) break;
      const flags = ((input[at + 6] ?? 0) << 8) | (input[at + 7] ?? 0);
      const body = input.subarray(at + HEADER_BYTES, end);
      if ((flags & FLAG_ACKED) !== 0) this.#acknowledge(body, out);
      else if (flags === 0) this.#answerJson(body, out);
      at = end;
    }
    return at;
  }

  #acknowledge(body: Uint8Array, out: Answers): void {
    const at = begin(out, FLAG_ACK, ACK_BODY_BYTES);
    out.bytes[at] = 0;
    out.bytes.set(body.subarray(0, 8), at + 1);
    out.bytes[at + 9] = 0;
    out.bytes[at + 10] = 0;
  }

  /** The type is told by its first letters: `{"type":"` is 9 bytes, `cache_g` or `auth` follow. */
  #answerJson(body: Uint8Array, out: Answers): void {
    const first = body[9];
    const seventh = body[15];
    if (first === 0x63 && seventh === 0x67) this.#cacheValue(body, out);
    else if (first === 0x63 && seventh === 0x70) this.#cacheOk(body, out);
    else if (first === 0x61) append(out, this.#authOk);
    else this.#answerSlowly(body, out);
  }

  /** The request with another type and the value in front of `,"request_id":`. */
  #cacheValue(body: Uint8Array, out: Answers): void {
    const scopeAt = '{"type":"cache_get"'.length;
    const idAt = requestIdAt(body);
    const length = this.#getHead.length + (body.length - scopeAt) + this.#value.length;
    let at = begin(out, 0, length);
    for (
      const part of [
        this.#getHead,
        body.subarray(scopeAt, idAt),
        this.#value,
        body.subarray(idAt),
      ]
    ) {
      out.bytes.set(part, at);
      at += part.length;
    }
  }

  #cacheOk(body: Uint8Array, out: Answers): void {
    const idAt = requestIdAt(body) + ',"request_id":'.length;
    let idEnd = idAt;
    while ((body[idEnd] ?? 0) >= 0x30 && (body[idEnd] ?? 0) <= 0x39) idEnd++;
    const at = begin(out, 0, this.#putHead.length + idEnd - idAt + 1);
    out.bytes.set(this.#putHead, at);
    out.bytes.set(body.subarray(idAt, idEnd), at + this.#putHead.length);
    out.bytes[out.length - 1] = 0x7d;
  }

  #answerSlowly(body: Uint8Array, out: Answers): void {
    const request = JSON.parse(decoder.decode(body)) as { type: string; request_id?: number };
    if (request.type === "topology") {
      append(out, encoder.encode('{"type":"topology_view","brokers":[]}'));
    } else if (request.type === "stream_shards") {
      const { request_id } = request;
      append(
        out,
        encoder.encode(JSON.stringify({ type: "stream_shards_view", shards: 1, request_id })),
      );
    }
  }
}

function u32(bytes: Uint8Array, at: number): number {
  return (((bytes[at] ?? 0) << 24) | ((bytes[at + 1] ?? 0) << 16) | ((bytes[at + 2] ?? 0) << 8) |
    (bytes[at + 3] ?? 0)) >>> 0;
}

/** Writes a frame header, makes room for its body and returns where the body starts. */
function begin(out: Answers, flags: number, bodyBytes: number): number {
  out.reserve(HEADER_BYTES + bodyBytes);
  const { bytes, length } = out;
  bytes.set(MAGIC, length);
  bytes[length + 6] = flags >>> 8;
  bytes[length + 7] = flags & 0xff;
  bytes[length + 8] = bodyBytes >>> 24;
  bytes[length + 9] = (bodyBytes >>> 16) & 0xff;
  bytes[length + 10] = (bodyBytes >>> 8) & 0xff;
  bytes[length + 11] = bodyBytes & 0xff;
  out.length = length + HEADER_BYTES + bodyBytes;
  return length + HEADER_BYTES;
}

function append(out: Answers, body: Uint8Array): void {
  const at = begin(out, 0, body.length);
  out.bytes.set(body, at);
}

/** Where `,"request_id":` starts, looked for from the end. */
function requestIdAt(body: Uint8Array): number {
  for (let at = body.length - 15; at > 0; at--) {
    if (
      body[at] === 0x2c && body[at + 2] === 0x72 && body[at + 6] === 0x65 && body[at + 9] === 0x5f
    ) {
      return at;
    }
  }
  return body.length - 1;
}
