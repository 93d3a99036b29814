// Publish acks: every combination of parts reads back, and every cut is noticed.

import { assertEquals, assertInstanceOf } from "@std/assert";
import fc from "fast-check";
import { ByteWriter } from "./byte_writer.ts";
import { DEFAULT_RETRY } from "./error_codes.ts";
import { decodeFrame } from "./frame.ts";
import type { Frame } from "./frame.ts";
import { decodePublishAck, encodePublishAck } from "./publish_ack.ts";
import type { PublishAck } from "./publish_ack.ts";
import { WireError } from "./wire_error.ts";

const u64 = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n });
const text = fc.oneof(fc.string(), fc.string({ unit: "binary" }));
const codes = Object.keys(DEFAULT_RETRY);
const retry = fc.constantFrom(
  ...["retry", "retry_after", "redirect", "outcome_unknown", "fatal"] as const,
);
const coded = {
  message: text,
  code: fc.oneof(
    fc.constantFrom(...codes),
    fc.integer({ min: 20, max: 0xffff }).map((n) => `code_${n}`),
  ),
  retry,
};
const owner = fc.record({
  nodeId: text,
  addr: fc.option(fc.string({ minLength: 1 })),
  generation: u64,
}, { noNullPrototype: true });
const plain = { noNullPrototype: true } as const;
const acks: fc.Arbitrary<PublishAck> = fc.oneof(
  fc.record({ requestId: u64, offset: u64, owner }, { ...plain, requiredKeys: ["requestId"] }),
  fc.record({
    requestId: u64,
    owner,
    error: fc.oneof(
      fc.record({ message: text }, plain),
      fc.record(coded, plain),
      fc.record({ ...coded, reason: text, retryAfterMs: u64 }, plain),
    ),
  }, { ...plain, requiredKeys: ["requestId", "error"] }),
);

function frameOf(ack: PublishAck): Frame {
  const out = new ByteWriter(1);
  encodePublishAck(out, ack);
  return decodeFrame(out.written());
}

function codeOf(flags: number, payload: Uint8Array): string {
  try {
    decodePublishAck(flags, payload);
  } catch (error) {
    assertInstanceOf(error, WireError);
    return error.code;
  }
  return "read";
}

Deno.test("any ack reads back as it was", () => {
  fc.assert(fc.property(acks, (ack) => {
    const { flags, payload } = frameOf(ack);
    assertEquals(decodePublishAck(flags, payload), ack);
    // What follows the last field is passed over.
    const longer = new Uint8Array(payload.length + 3);
    longer.set(payload);
    assertEquals(decodePublishAck(flags, longer), ack);
  }));
});

Deno.test("an ack that is cut anywhere is noticed", () => {
  fc.assert(fc.property(acks, fc.nat(), (ack, place) => {
    const { flags, payload } = frameOf(ack);
    assertEquals(codeOf(flags, payload.subarray(0, place % payload.length)), "incomplete");
  }));
});

Deno.test("parts that exclude each other are refused", () => {
  const ok = new Uint8Array(64);
  const failed = Uint8Array.of(1, ...new Uint8Array(63));
  for (const flags of [0, 0x0001, 0x0410, 0x0210, 0x0610, 0x0018, 0x0030, 0x8010]) {
    assertEquals(codeOf(flags, ok), "malformed", flags.toString(16));
  }
  for (const flags of [0x1010, 0x0410, 0x1210]) assertEquals(codeOf(flags, failed), "malformed");
  assertEquals(codeOf(0x0010, Uint8Array.of(2, ...new Uint8Array(63))), "malformed");
});

Deno.test("a long message is cut on a character boundary", () => {
  for (const [unit, bytes] of [["a", 1], ["é", 2], ["€", 3], ["😀", 4]] as const) {
    for (const lead of ["", "x", "xx", "xxx"]) {
      const fits = lead.length + Math.floor((65_535 - lead.length) / bytes) * bytes;
      const { flags, payload } = frameOf({
        requestId: 1n,
        error: { message: lead + unit.repeat(65_535) },
      });
      const message = decodePublishAck(flags, payload).error!.message;
      assertEquals(new TextEncoder().encode(message).length, fits);
      assertEquals(message, lead + unit.repeat((fits - lead.length) / bytes));
    }
  }
});

Deno.test("what a failure cannot carry is not sent", () => {
  // An offset belongs to a success, detail to a code; a code without a number goes as `internal`.
  const error = { message: "m", reason: "r", retryAfterMs: 5n };
  assertEquals(frameOf({ requestId: 1n, offset: 7n, error }).flags, 0x0010);
  const { flags, payload } = frameOf({
    requestId: 1n,
    error: { message: "m", code: "no_such_code" },
  });
  assertEquals(decodePublishAck(flags, payload).error, {
    message: "m",
    code: "internal",
    retry: "fatal",
  });
});

Deno.test("text that is not UTF-8 is refused on a failure and skipped on a success", () => {
  const rest = "0000000000000001" + "0002c328";
  assertEquals(codeOf(0x0010, Uint8Array.fromHex(`01${rest}`)), "malformed");
  assertEquals(codeOf(0x0010, Uint8Array.fromHex(`00${rest}`)), "read");
});
