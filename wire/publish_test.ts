// Publish batches: what is encoded reads back, records are views, and every cut is noticed.

import { assert, assertEquals, assertInstanceOf, assertThrows } from "@std/assert";
import fc from "fast-check";
import { ByteWriter } from "./byte_writer.ts";
import { decodeFrame } from "./frame.ts";
import type { Frame } from "./frame.ts";
import { decodePublish, encodePublish, encodePublishScoped, encodeScope } from "./publish.ts";
import { recordViews } from "./publish.ts";
import type { PublishInput } from "./publish.ts";
import { WireError } from "./wire_error.ts";

const u64 = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n });
const name = fc.oneof(
  fc.string({ unit: "grapheme-ascii", maxLength: 12 }),
  fc.string({ unit: "binary", maxLength: 8 }),
);
const publishes: fc.Arbitrary<PublishInput> = fc.record({
  tenant: name,
  namespace: name,
  stream: name,
  payloads: fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 6 }),
  key: fc.option(fc.uint8Array({ maxLength: 10 })),
  delivery: fc.oneof(
    fc.constant({ ack: 0 as const }),
    fc.record({ ack: fc.constantFrom(1 as const, 2 as const), requestId: u64 }),
    fc.record({ ack: fc.constant(2 as const), requestId: u64, producerId: u64, sequence: u64 }),
  ),
}).map(({ delivery, ...publish }) => ({ ...publish, ...delivery }));

function frameOf(publish: PublishInput): Frame {
  const out = new ByteWriter(1);
  encodePublish(out, publish);
  return decodeFrame(out.written());
}

const hex = (bytes: readonly Uint8Array[]): string[] => bytes.map((one) => one.toHex());

Deno.test("any publish reads back as it was", () => {
  fc.assert(fc.property(publishes, (publish) => {
    const { flags, payload } = frameOf(publish);
    const frame = decodePublish(flags, payload);
    assertEquals([frame.tenant, frame.namespace, frame.stream], [
      publish.tenant,
      publish.namespace,
      publish.stream,
    ]);
    assertEquals(frame.ack, publish.ack ?? 0);
    assertEquals(frame.requestId, publish.ack === 0 ? 0n : publish.requestId as bigint);
    assertEquals([frame.producerId, frame.sequence], [publish.producerId, publish.sequence]);
    assertEquals(frame.key?.toHex(), publish.key?.toHex());
    assertEquals(frame.count, publish.payloads.length);
    assertEquals(hex(recordViews(frame.records, frame.count)), hex(publish.payloads));
    assertEquals(frame.payloadBytes, publish.payloads.reduce((sum, { length }) => sum + length, 0));
    for (const view of [frame.records, frame.scope]) assert(view.buffer === payload.buffer);
  }));
});

Deno.test("names encoded once give the same frame", () => {
  fc.assert(fc.property(publishes, (publish) => {
    const scope = new ByteWriter(1);
    encodeScope(scope, publish.tenant, publish.namespace, publish.stream);
    const out = new ByteWriter(1);
    encodePublishScoped(out, scope.written(), publish.payloads, publish);
    const { flags, payload } = frameOf(publish);
    const scoped = decodeFrame(out.written());
    assertEquals([scoped.flags, scoped.payload.toHex()], [flags, payload.toHex()]);
    // Equal scope bytes name the same stream.
    assertEquals(decodePublish(flags, payload).scope.toHex(), scope.written().toHex());
  }));
});

function failure(flags: number, payload: Uint8Array): WireError {
  try {
    decodePublish(flags, payload);
  } catch (error) {
    assertInstanceOf(error, WireError);
    return error;
  }
  throw new RangeError(`was read: ${payload.toHex()}`);
}

Deno.test("a publish that is cut anywhere is noticed, and answered if its prefix is whole", () => {
  fc.assert(fc.property(publishes, fc.nat(), (publish, place) => {
    const { flags, payload } = frameOf(publish);
    const length = place % payload.length;
    const error = failure(flags, payload.subarray(0, length));
    if (publish.ack === 0 || length < 9) assertEquals(error.code, "incomplete");
    else {
      assertEquals([error.code, error.requestId, error.ackMode], [
        "malformed_body",
        publish.requestId,
        publish.ack,
      ]);
    }
  }));
});

Deno.test("bytes behind the last record are passed over", () => {
  const { flags, payload } = frameOf({
    tenant: "t",
    namespace: "n",
    stream: "s",
    payloads: [Uint8Array.of(1)],
  });
  const longer = new Uint8Array(payload.length + 5);
  longer.set(payload);
  const frame = decodePublish(flags, longer);
  assertEquals([frame.count, frame.records.toHex(), frame.payloadBytes], [1, "0000000101", 1]);
});

Deno.test("a count is held against the bytes before anything is made of it", () => {
  const { flags, payload } = frameOf({ tenant: "", namespace: "", stream: "", payloads: [] });
  for (const count of [1, 0x4000_0000, 0xffff_ffff]) {
    const lying = payload.slice();
    new DataView(lying.buffer).setUint32(6, count);
    assertEquals(failure(flags, lying).code, "incomplete");
  }
});

Deno.test("bits that are none of a publish's are refused", () => {
  const acked = new Uint8Array(64);
  acked[8] = 1;
  for (const flags of [0, 0x0002, 0x0008, 0x0101, 0x0021, 0x0003, 0x1009, 0x8001]) {
    assertEquals(failure(flags, acked).code, "malformed", flags.toString(16));
  }
  for (const mode of [0, 3, 255]) {
    acked[8] = mode;
    const error = failure(0x0009, acked);
    assertEquals([error.code, error.requestId], ["malformed", undefined]);
  }
});

Deno.test("names that are not UTF-8 are refused; a key is only bytes", () => {
  const field = "0002c328";
  const rest = "00000000";
  for (const names of [`${field}00000000`, `0000${field}0000`, `00000000${field}`]) {
    assertEquals(failure(0x0001, Uint8Array.fromHex(names + rest)).code, "malformed");
  }
  const keyed = decodePublish(0x0041, Uint8Array.fromHex(`${field}000000000000${rest}`));
  assertEquals(keyed.key?.toHex(), "c328");
});

Deno.test("no key and an empty key are two things", () => {
  const publish = { tenant: "t", namespace: "n", stream: "s", payloads: [] };
  const empty = frameOf({ ...publish, key: new Uint8Array(0) });
  assertEquals([empty.flags, decodePublish(empty.flags, empty.payload).key?.length], [0x0041, 0]);
  const none = frameOf({ ...publish, key: null });
  assertEquals([none.flags, decodePublish(none.flags, none.payload).key], [0x0001, null]);
});

Deno.test("what the layout cannot hold is refused and leaves nothing behind", () => {
  const publish = { tenant: "t", namespace: "n", stream: "s", payloads: [] };
  const long = "é".repeat(32_768);
  const out = new ByteWriter(16);
  out.u8(0xaa);
  const bad: PublishInput[] = [
    { ...publish, tenant: long },
    { ...publish, namespace: long },
    { ...publish, stream: long },
    { ...publish, key: new Uint8Array(65_536) },
    { ...publish, producerId: 1n, sequence: 0n },
  ];
  for (const input of bad) {
    assertThrows(() => encodePublish(out, input), RangeError);
    assertEquals(out.written().toHex(), "aa");
  }
  assertThrows(() => encodeScope(out, "t", "n", long), RangeError);
  assertEquals(out.written().toHex(), "aa");
  encodePublish(out, { ...publish, tenant: "x".repeat(65_535), key: new Uint8Array(65_535) });
  assertEquals(decodeFrame(out.written().subarray(1)).flags, 0x0041);
});
