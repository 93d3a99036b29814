// Frames come out as they went in, however they were cut; memory follows what arrived (W2, W3).

import { assert, assertEquals, assertLessOrEqual, assertThrows } from "@std/assert";
import fc from "fast-check";
import { ByteWriter } from "./byte_writer.ts";
import { HEADER_BYTES, writeFrameHeader } from "./frame.ts";
import type { Frame } from "./frame.ts";
import { FrameReader } from "./frame_reader.ts";
import { WireError } from "./wire_error.ts";

const KIB = 1024;

/** A frame whose payload tells its place: every byte depends on `seed` and its index. */
function payloadOf(bytes: number, seed: number): Uint8Array {
  const payload = new Uint8Array(bytes);
  for (let at = 0; at < bytes; at++) payload[at] = (at * 31 + (at >> 8) + seed) & 0xff;
  return payload;
}

function encode(frames: readonly Frame[]): Uint8Array {
  const out = new ByteWriter(KIB);
  for (const { flags, payload } of frames) {
    writeFrameHeader(out, flags, payload.length);
    out.bytes(payload);
  }
  return out.written();
}

/** A read as a QUIC stream does it: the memory is transferred and comes back as another buffer. */
function read(reader: FrameReader, source: Uint8Array, most: number): number {
  const space = reader.space();
  assert(space.length >= 1, "room for one byte at least");
  const count = Math.min(most, space.length, source.length);
  const { byteOffset } = space;
  const moved = structuredClone(space.buffer, { transfer: [space.buffer] });
  const view = new Uint8Array(moved, byteOffset, count);
  view.set(source.subarray(0, count));
  reader.filled(view);
  return count;
}

function drain(reader: FrameReader, into: Frame[]): void {
  for (let frame = reader.next(); frame !== null; frame = reader.next()) {
    into.push({ flags: frame.flags, payload: frame.payload.slice() });
  }
}

const sizes = fc.oneof(
  { weight: 6, arbitrary: fc.nat(120) },
  { weight: 3, arbitrary: fc.nat(6 * KIB) },
  { weight: 1, arbitrary: fc.integer({ min: 60 * KIB, max: 300 * KIB }) },
);
const framesArbitrary = fc.array(fc.record({ bytes: sizes, flags: fc.nat(0xffff) }), {
  maxLength: 14,
}).map((list) => list.map(({ bytes, flags }, at) => ({ flags, payload: payloadOf(bytes, at) })));
const cuts = fc.array(
  fc.oneof(fc.integer({ min: 1, max: 40 }), fc.integer({ min: 1, max: 200 * KIB })),
  { minLength: 1, maxLength: 8 },
);
const options = fc.record({
  initialBufferBytes: fc.constantFrom(1, 12, 100, 2048),
  maxBufferBytes: fc.constantFrom(1, 4096, 65536),
});

Deno.test("frames come out as they went in, however they were cut", () => {
  fc.assert(
    fc.property(framesArbitrary, cuts, options, (frames, lengths, bounds) => {
      const reader = new FrameReader(bounds);
      const bytes = encode(frames);
      const seen: Frame[] = [];
      // Cuts of a few bytes only would take too many reads.
      const least = bytes.length >> 11;
      for (let at = 0, turn = 0; at < bytes.length; turn++) {
        const most = Math.max(least, lengths[turn % lengths.length]!);
        at += read(reader, bytes.subarray(at), most);
        assertLessOrEqual(reader.bufferBytes, 2 * at + 64 * KIB);
        drain(reader, seen);
        assertEquals(reader.inHeader, reader.pendingBytes < HEADER_BYTES);
      }
      assertEquals(seen, frames);
      assertEquals(reader.pendingBytes, 0);
    }),
    { numRuns: 150 },
  );
});

Deno.test("views that were kept stay as they are (W3)", () => {
  fc.assert(
    fc.property(
      framesArbitrary,
      cuts,
      fc.array(fc.boolean(), { minLength: 3, maxLength: 9 }),
      (frames, lengths, choices) => {
        const reader = new FrameReader();
        const bytes = encode(frames);
        const kept: [Uint8Array, number][] = [];
        let index = 0;
        const least = bytes.length >> 10;
        for (let at = 0, turn = 0; at < bytes.length; turn++) {
          const most = Math.max(least, lengths[turn % lengths.length]!);
          at += read(reader, bytes.subarray(at), most);
          const views: [Uint8Array, number][] = [];
          for (let frame = reader.next(); frame !== null; frame = reader.next()) {
            views.push([frame.payload, index++]);
          }
          if (views.length === 0 || choices[turn % choices.length]!) continue;
          reader.keep();
          kept.push(...views);
        }
        for (const [view, at] of kept) assertEquals(view, frames[at]!.payload);
        assertEquals(index, frames.length);
      },
    ),
    { numRuns: 100 },
  );
});

function rejected(reader: FrameReader, code: string): void {
  assertEquals(assertThrows(() => reader.next(), WireError).code, code);
}

function header(magic: number, version: number, length: number): Uint8Array {
  const bytes = new Uint8Array(HEADER_BYTES);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, magic);
  view.setUint16(4, version);
  view.setUint32(8, length);
  return bytes;
}

Deno.test("a bad header is refused on its last byte and not before", () => {
  const cases: [Uint8Array, string][] = [
    [header(0x464c5832, 1, 0), "invalid_magic"],
    [header(0, 1, 0), "invalid_magic"],
    [header(0x464c5831, 0, 0), "unsupported_version"],
    [header(0x464c5831, 2, 0), "unsupported_version"],
    [header(0x464c5831, 1, 65537), "too_large"],
    [header(0x464c5831, 1, 0xffff_ffff), "too_large"],
    [header(0x464c5832, 2, 0xffff_ffff), "invalid_magic"],
  ];
  for (const [bytes, code] of cases) {
    const reader = new FrameReader({ maxPayloadBytes: 65536 });
    reader.push(bytes.subarray(0, HEADER_BYTES - 1));
    assertEquals(reader.next(), null);
    assert(reader.inHeader);
    reader.push(bytes.subarray(HEADER_BYTES - 1));
    rejected(reader, code);
    rejected(reader, code);
  }
});

Deno.test("the cap holds to the byte and may be raised later", () => {
  const reader = new FrameReader({ maxPayloadBytes: 1000 });
  const frame = { flags: 0, payload: payloadOf(1000, 1) };
  reader.push(encode([frame]));
  assertEquals(reader.next(), frame);
  reader.push(header(0x464c5831, 1, 1001));
  rejected(reader, "too_large");
  reader.maxPayloadBytes = 1001;
  assertEquals(reader.next(), null);
  reader.push(payloadOf(1001, 2));
  assertEquals(reader.next()?.payload, payloadOf(1001, 2));
});

Deno.test("unknown flag bits are the caller's matter", () => {
  const reader = new FrameReader();
  reader.push(encode([{ flags: 0xffff, payload: payloadOf(3, 0) }]));
  assertEquals(reader.next()?.flags, 0xffff);
});

Deno.test("no memory for a length that was only declared (W2)", () => {
  const reader = new FrameReader();
  const length = 16 * KIB * KIB;
  reader.push(header(0x464c5831, 1, length));
  for (let sent = 0; sent < 300 * KIB; sent += 1000) {
    reader.space();
    assertLessOrEqual(reader.bufferBytes, Math.max(64 * KIB, 2 * (sent + HEADER_BYTES)));
    reader.push(new Uint8Array(1000));
    assertEquals(reader.next(), null);
  }
});

Deno.test("after a large frame the memory falls back (W2)", () => {
  const reader = new FrameReader();
  const large = { flags: 0, payload: payloadOf(1024 * KIB, 1) };
  const seen: Frame[] = [];
  reader.push(encode([large]));
  drain(reader, seen);
  assertEquals(seen, [large]);
  reader.space();
  assertLessOrEqual(reader.bufferBytes, 64 * KIB);
  // Small reads in a row bring it down to what it was at first.
  const small = encode([{ flags: 0, payload: payloadOf(20, 2) }]);
  for (let turn = 0; turn < 100; turn++) {
    assertEquals(read(reader, small, small.length), small.length);
    drain(reader, seen);
  }
  reader.space();
  assertEquals(reader.bufferBytes, 2048);
  assertEquals(seen.length, 101);
});

Deno.test("large frames in a row find their buffer in place", () => {
  const reader = new FrameReader();
  const frames: Frame[] = [];
  for (let at = 0; at < 24; at++) {
    frames.push({ flags: at, payload: payloadOf(262 * KIB + (at % 3) * 10 * KIB, at) });
  }
  const bytes = encode(frames);
  const seen: Frame[] = [];
  let buffers = 0;
  let last: ArrayBuffer | null = null;
  for (let at = 0; at < bytes.length;) {
    const space = reader.space();
    if (space.buffer !== last) buffers++;
    last = space.buffer;
    const count = Math.min(space.length, bytes.length - at);
    space.set(bytes.subarray(at, at + count));
    reader.filled(space.subarray(0, count));
    at += count;
    drain(reader, seen);
    assertLessOrEqual(reader.bufferBytes, 400 * KIB);
  }
  assertEquals(seen, frames);
  // To the first frame's size, to the second's, once more for reading ahead.
  assertLessOrEqual(buffers, 12);
  reader.space();
  assertEquals(reader.bufferBytes, 64 * KIB);
});

Deno.test("a reader that pauses with whole frames pending still has room", () => {
  const reader = new FrameReader({ initialBufferBytes: 64 });
  const frames = Array.from({ length: 50 }, (_, at) => ({ flags: 0, payload: payloadOf(30, at) }));
  // Nothing is taken out in between.
  for (const frame of frames) reader.push(encode([frame]));
  const seen: Frame[] = [];
  drain(reader, seen);
  assertEquals(seen, frames);
});

Deno.test("an empty read changes nothing", () => {
  const reader = new FrameReader();
  const bytes = encode([{ flags: 0, payload: payloadOf(5, 0) }]);
  read(reader, bytes, 7);
  read(reader, new Uint8Array(0), 0);
  assertEquals(reader.pendingBytes, 7);
  read(reader, bytes.subarray(7), 100);
  assertEquals(reader.next()?.payload, payloadOf(5, 0));
});

Deno.test("a view that is not the room that was given is refused", () => {
  const reader = new FrameReader();
  const space = reader.space();
  assertThrows(() => reader.filled(new Uint8Array(10)), RangeError);
  assertThrows(() => reader.filled(space.subarray(1, 2)), RangeError);
  reader.filled(space.subarray(0, 3));
  assertThrows(() => reader.filled(space.subarray(0, 3)), RangeError);
  assertEquals(reader.pendingBytes, 3);
});

Deno.test("a large frame that comes slowly is not copied with every read", () => {
  const reader = new FrameReader();
  const frame = { flags: 0, payload: payloadOf(4096 * KIB, 3) };
  const bytes = encode([frame]);
  const seen: Frame[] = [];
  let moves = 0;
  let last = 0;
  for (let at = 0; at < bytes.length;) {
    at += read(reader, bytes.subarray(at), 1200);
    if (reader.bufferBytes !== last) moves++;
    last = reader.bufferBytes;
    assertLessOrEqual(last, 2 * at + 64 * KIB);
    drain(reader, seen);
  }
  assertEquals(seen, [frame]);
  assertLessOrEqual(moves, 10);
});
