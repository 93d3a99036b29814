// Event batches: every combination of parts reads back, and a header written in front of records
// gives the same frame as encoding them.

import { assert, assertEquals, assertInstanceOf, assertThrows } from "@std/assert";
import fc from "fast-check";
import { ByteWriter } from "./byte_writer.ts";
import {
  decodeEventBatch,
  encodeEventBatch,
  EVENT_HEADROOM_BYTES,
  writeEventHeader,
} from "./event_batch.ts";
import type { EventBatchInput } from "./event_batch.ts";
import { decodeFrame } from "./frame.ts";
import type { Frame } from "./frame.ts";
import { decodePublish, encodePublish } from "./publish.ts";
import { WireError } from "./wire_error.ts";

const u64 = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n });
const payloads = fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 6 });
const batches: fc.Arbitrary<EventBatchInput> = fc.tuple(
  payloads,
  fc.record({
    baseOffset: u64,
    skippedBefore: u64,
    publisher: fc.string({ unit: "binary", maxLength: 60 }),
    subscriptionId: u64,
  }, { requiredKeys: [], noNullPrototype: true }),
  fc.option(fc.array(u64, { minLength: 6, maxLength: 6 }), { nil: undefined }),
).map(([events, parts, times]) => {
  // Skipped offsets need a base offset.
  const { skippedBefore, ...others } = parts;
  const skipped = others.baseOffset === undefined ? undefined : skippedBefore;
  return {
    payloads: events,
    ...others,
    ...(skipped === undefined ? {} : { skippedBefore: skipped }),
    ...(times === undefined ? {} : { timestamps: times.slice(0, events.length) }),
  };
});

function frameOf(batch: EventBatchInput): Frame {
  const out = new ByteWriter(1);
  encodeEventBatch(out, batch);
  return decodeFrame(out.written());
}

function codeOf(flags: number, payload: Uint8Array): string {
  try {
    decodeEventBatch(flags, payload);
  } catch (error) {
    assertInstanceOf(error, WireError);
    return error.code;
  }
  return "read";
}

Deno.test("any batch reads back as it was, its events as views", () => {
  fc.assert(fc.property(batches, (batch) => {
    const { flags, payload } = frameOf(batch);
    const { count, payloads: events, ...decoded } = decodeEventBatch(flags, payload);
    const { payloads: sent, ...parts } = batch;
    assertEquals(decoded, { skippedBefore: 0n, ...parts });
    assertEquals([count, ...events.map((event) => event.toHex())], [
      sent.length,
      ...sent.map((event) => event.toHex()),
    ]);
    for (const event of events) assert(event.buffer === payload.buffer);
  }));
});

Deno.test("a batch that is cut anywhere is noticed, what follows it is passed over", () => {
  fc.assert(fc.property(batches, fc.nat(), (batch, place) => {
    const { flags, payload } = frameOf(batch);
    assertEquals(codeOf(flags, payload.subarray(0, place % payload.length)), "incomplete");
    const longer = new Uint8Array(payload.length + 3);
    longer.set(payload);
    assertEquals(decodeEventBatch(flags, longer).count, batch.payloads.length);
  }));
});

Deno.test("a publish becomes an event frame by a header written in front of its records", () => {
  const offsets = fc.option(fc.maxSafeNat(), { nil: undefined });
  fc.assert(fc.property(payloads, offsets, (events, baseOffset) => {
    const out = new ByteWriter(1);
    encodePublish(out, { tenant: "t", namespace: "n", stream: "s", payloads: events });
    const { flags, payload } = decodeFrame(out.written());
    const { records, count } = decodePublish(flags, payload);
    const buffer = new Uint8Array(EVENT_HEADROOM_BYTES + 3 + records.length + 2).fill(0xee);
    const bodyStart = EVENT_HEADROOM_BYTES + 3;
    buffer.set(records, bodyStart);
    const start = writeEventHeader(buffer, bodyStart, records.length, count, baseOffset);
    assert(bodyStart - start <= EVENT_HEADROOM_BYTES);
    const encoded = new ByteWriter(1);
    encodeEventBatch(encoded, {
      payloads: events,
      ...(baseOffset === undefined ? {} : { baseOffset: BigInt(baseOffset) }),
    });
    const end = bodyStart + records.length;
    assertEquals(buffer.subarray(start, end).toHex(), encoded.written().toHex());
    // Nothing around the frame was touched.
    assert([...buffer.subarray(0, start), ...buffer.subarray(end)].every((byte) => byte === 0xee));
  }));
});

Deno.test("no skipped offsets are never written", () => {
  const { flags, payload } = frameOf({ payloads: [], baseOffset: 5n, skippedBefore: 0n });
  assertEquals([flags, payload.length], [0x0024, 12]);
});

Deno.test("a count is held against the bytes before anything is made of it", () => {
  for (const count of ["00000001", "40000000", "ffffffff"]) {
    assertEquals(codeOf(0x0004, Uint8Array.fromHex(count)), "incomplete");
    assertEquals(codeOf(0x4004, Uint8Array.fromHex(count)), "incomplete");
  }
});

Deno.test("bits that make no event batch are refused", () => {
  const payload = new Uint8Array(64);
  for (const flags of [0, 0x0006, 0x0020, 0x0001, 0x0014, 0x0044, 0x8004]) {
    assertEquals(codeOf(flags, payload), "malformed", flags.toString(16));
  }
  for (const flags of [0x0804, 0x0802]) assertEquals(codeOf(flags, payload), "unknown_flags");
  assertEquals(codeOf(0x2004, Uint8Array.fromHex("01ff00000000")), "malformed");
});

Deno.test("what the layout cannot hold is refused and leaves nothing behind", () => {
  const out = new ByteWriter(16);
  out.u8(0xaa);
  const bad: EventBatchInput[] = [
    { payloads: [], publisher: "é".repeat(128) },
    { payloads: [], skippedBefore: 1n },
    { payloads: [new Uint8Array(1)], timestamps: [] },
  ];
  for (const batch of bad) {
    assertThrows(() => encodeEventBatch(out, batch), RangeError);
    assertEquals(out.written().toHex(), "aa");
  }
  encodeEventBatch(out, { payloads: [], publisher: "x".repeat(255) });
  assertEquals(decodeEventBatch(0x2004, out.written().subarray(13)).publisher?.length, 255);
});
