// Hostile bytes never crash, hang or balloon: the vectors' frames are damaged at random and read.
// Whatever comes of it is a WireError or a message that is written and read again unchanged.
// FELIX_FUZZ_SEED repeats a run; the seed of every run is in the name of the test.

import { assert, assertEquals } from "@std/assert";
import {
  ByteWriter,
  decodeEventBatch,
  decodeMessage,
  decodePublish,
  decodePublishAck,
  encodeEventBatch,
  encodeMessage,
  encodePublish,
  encodePublishAck,
  FLAG_BINARY_PUBLISH_ACK,
  FLAG_BINARY_PUBLISH_BATCH,
  FrameReader,
  recordViews,
  WireError,
} from "@felix/wire";
import type { Frame } from "@felix/wire";

const ROUNDS = 200_000;
const HEADER_BYTES = 12;

function seedOf(): number {
  const variable = "FELIX_FUZZ_SEED";
  const { state } = Deno.permissions.querySync({ name: "env", variable });
  const given = state === "granted" ? Number(Deno.env.get(variable) ?? NaN) : NaN;
  return Number.isInteger(given) ? given >>> 0 : crypto.getRandomValues(new Uint32Array(1))[0]!;
}

/** Mulberry32: small, good enough, the same everywhere. */
class Chance {
  #state: number;

  constructor(seed: number) {
    this.#state = seed;
  }

  /** An integer from 0 to `below` - 1. */
  below(below: number): number {
    this.#state = (this.#state + 0x6d2b_79f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return Math.floor(((mixed ^ (mixed >>> 14)) >>> 0) / 0x1_0000_0000 * below);
  }

  one<T>(of: readonly T[]): T {
    return of[this.below(of.length)]!;
  }
}

/** Every frame of the vectors, sound and malformed. */
function corpus(): Uint8Array[] {
  const read = (file: string): Record<string, string>[] =>
    JSON.parse(Deno.readTextFileSync(new URL(`../vectors/${file}`, import.meta.url)));
  const frames = [
    ...read("wire_v1.json").map((vector) => vector["frame_hex"]!),
    ...read("wire_v1_malformed.json").map((vector) => vector["bytes_hex"]!),
  ].map((hex) => Uint8Array.fromHex(hex));
  return frames.filter(({ length }) => length >= HEADER_BYTES);
}

const texts = new TextEncoder();
/** Pieces of JSON that are near the borders of what is allowed. */
const PIECES = [
  ...'{}[]",:\\nul-0.e+ ',
  "null",
  "true",
  "-0",
  "01",
  "1.0",
  "1e3",
  "1e999",
  "65536",
  "4294967296",
  "9007199254740993",
  "18446744073709551615",
  "18446744073709551616",
  "-9223372036854775809",
  '"A"',
  '"AA=="',
  '"AB=="',
  '"AAA"',
  '"A/+="',
  '"\\ud83d"',
  '"\\ud83d\\ude00"',
  '"\\u0000"',
  '"é"',
  '"type":"ok",',
  '"request_id":1,',
  '"__proto__":1,',
  '{"offset":1}',
  '{"latest":null}',
  "[[[[[[[[",
].map((piece) => texts.encode(piece));
const BORDER_BYTES = [0, 1, 2, 0x22, 0x5c, 0x7f, 0x80, 0xc0, 0xed, 0xff];

function join(...parts: readonly Uint8Array[]): Uint8Array {
  const out = new ByteWriter(64);
  for (const part of parts) out.bytes(part);
  return out.written();
}

/** Damages `bytes` at one place. */
function damage(bytes: Uint8Array, frames: readonly Uint8Array[], chance: Chance): Uint8Array {
  const { length } = bytes;
  const at = chance.below(length + 1);
  const end = Math.min(length, at + chance.below(1 + chance.one([1, 8, 64])));
  const before = bytes.subarray(0, at);
  switch (chance.below(8)) {
    case 0:
      return before;
    case 1:
      return join(before, bytes.subarray(end));
    case 2:
      return join(bytes.subarray(0, end), bytes.subarray(at));
    case 3:
      return join(before, chance.one(PIECES), bytes.subarray(at));
    case 4:
      return join(before, chance.one(PIECES), bytes.subarray(end));
    case 5: {
      const other = chance.one(frames);
      const from = chance.below(other.length);
      return join(before, other.subarray(from, from + chance.below(40)), bytes.subarray(end));
    }
    default: {
      const changed = bytes.slice();
      if (at === length) return changed;
      changed[at] = chance.below(2) === 0
        ? changed[at]! ^ (1 << chance.below(8))
        : chance.one(BORDER_BYTES);
      return changed;
    }
  }
}

/** A damaged frame; most get a header that is sound, so that the payload is looked at. */
function damagedFrame(frames: readonly Uint8Array[], chance: Chance): Uint8Array {
  const original = chance.one(frames);
  if (chance.below(8) === 0) return damage(original, frames, chance);
  let payload = original.subarray(HEADER_BYTES);
  for (let times = 1 + chance.below(3); times > 0; times--) {
    payload = damage(payload, frames, chance);
  }
  const bytes = join(original.subarray(0, HEADER_BYTES), payload);
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  view.setUint32(0, 0x464c5831);
  view.setUint16(4, 1);
  view.setUint32(8, payload.length);
  if (chance.below(6) === 0) view.setUint16(6, chance.below(0x1_0000));
  return bytes;
}

/** Reads a frame by its flags; answers what writes it again. */
function decode({ flags, payload }: Frame): (out: ByteWriter) => void {
  if (flags === 0) {
    const message = decodeMessage(payload);
    return (out) => encodeMessage(message, out);
  }
  if ((flags & FLAG_BINARY_PUBLISH_BATCH) !== 0) {
    const publish = decodePublish(flags, payload);
    const { tenant, namespace, stream, key, requestId, ack, producerId, sequence } = publish;
    const payloads = recordViews(publish.records, publish.count);
    const producer = producerId === undefined ? {} : { producerId, sequence: sequence! };
    const fields = { tenant, namespace, stream, key, requestId, ack, payloads, ...producer };
    return (out) => encodePublish(out, fields);
  }
  if ((flags & FLAG_BINARY_PUBLISH_ACK) !== 0) {
    const ack = decodePublishAck(flags, payload);
    return (out) => encodePublishAck(out, ack);
  }
  const batch = decodeEventBatch(flags, payload);
  return (out) => encodeEventBatch(out, batch);
}

/** What `read` answers; `null` = it refused its input in the one way that is allowed. */
function unlessRefused<T>(read: () => T): T | null {
  try {
    return read();
  } catch (error) {
    if (error instanceof WireError) return null;
    throw error;
  }
}

function readWhole(bytes: Uint8Array): Frame {
  const reader = new FrameReader();
  reader.push(bytes);
  const frame = reader.next();
  assert(frame !== null);
  assertEquals(reader.pendingBytes, 0);
  return frame;
}

/** Takes what was read once through the codec and back: it stays as it is, and small. */
function checkAgain(frame: Frame, encode: (out: ByteWriter) => void): void {
  const first = new ByteWriter(256);
  encode(first);
  // Members at their defaults are added; `1e20` in the body of an extension becomes 21 digits.
  assert(first.length <= 6 * frame.payload.length + 128, "more bytes than came in explain");
  const second = new ByteWriter(256);
  decode(readWhole(first.written()))(second);
  assertEquals(second.written().toHex(), first.written().toHex());
}

/** Feeds bytes to a reader and reads what comes out; answers how many frames could be read. */
function feed(bytes: Uint8Array, chance: Chance): number {
  const reader = new FrameReader({ initialBufferBytes: chance.one([12, 64, 2048]) });
  let read = 0;
  for (let at = 0; at < bytes.length;) {
    const end = Math.min(bytes.length, at + 1 + chance.below(chance.one([12, 200, 4000])));
    const went = unlessRefused(() => reader.push(bytes.subarray(at, end)) ?? true);
    if (went === null) return read;
    at = end;
    assert(reader.bufferBytes <= 2 * at + 65536, "the reader holds more than came in explains");
    for (;;) {
      const frame = unlessRefused(() => reader.next() ?? undefined);
      if (frame === null) return read;
      if (frame === undefined) break;
      const encode = unlessRefused(() => decode(frame));
      if (encode === null) continue;
      checkAgain(frame, encode);
      read++;
    }
  }
  return read;
}

const seed = seedOf();

Deno.test(`${ROUNDS} damaged frames are read or refused, FELIX_FUZZ_SEED=${seed}`, () => {
  const chance = new Chance(seed);
  const frames = corpus();
  let readable = 0;
  for (let round = 0; round < ROUNDS; round++) {
    const bytes = damagedFrame(frames, chance);
    try {
      readable += feed(bytes, chance);
    } catch (error) {
      const message = `FELIX_FUZZ_SEED=${seed}, round ${round}, bytes ${bytes.toHex()}`;
      throw new AggregateError([error], `${message}: ${error}`);
    }
  }
  // Enough of the damage has to pass, or only the refusals were tested; enough has to be refused.
  assert(readable > ROUNDS / 50, `only ${readable} frames could be read`);
  assert(readable < ROUNDS, `${readable} frames could be read`);
});

Deno.test("the original frames pass the same check", () => {
  let read = 0;
  for (const bytes of corpus()) read += feed(bytes, new Chance(1));
  assert(read >= 260, `${read} frames could be read`);
});
