// One frame by itself: header fields, and the verdict on each way it can be wrong.

import { assertEquals, assertInstanceOf } from "@std/assert";
import { ByteWriter } from "./byte_writer.ts";
import * as features from "./features.ts";
import * as flags from "./flags.ts";
import { assertKnownFlags, beginFrame, decodeFrame, endFrame, writeFrameHeader } from "./frame.ts";
import { WireError } from "./wire_error.ts";

function codeOf(read: () => unknown): string {
  try {
    read();
  } catch (error) {
    assertInstanceOf(error, WireError);
    return error.code;
  }
  return "read";
}

Deno.test("a header is twelve bytes, its length may come later", () => {
  const out = new ByteWriter(1);
  out.u8(0xaa);
  const start = beginFrame(out, 0x0049);
  out.ascii("hello");
  endFrame(out, start);
  writeFrameHeader(out, 0x7fff, 0xffff);
  assertEquals(
    out.written().toHex(),
    "aa464c5831000100490000000568656c6c6f464c583100017fff0000ffff",
  );
  const frame = decodeFrame(out.written().subarray(1));
  assertEquals([frame.flags, new TextDecoder().decode(frame.payload)], [0x49, "hello"]);
});

Deno.test("a frame that is none gets its verdict", () => {
  const cases: [string, string][] = [
    ["", "incomplete"],
    ["464c583100010000000000", "incomplete"],
    ["464c58310001000000000001", "incomplete"],
    ["464c58320001000000000000", "invalid_magic"],
    ["464c58310002000000000000", "unsupported_version"],
    ["464c58310001800000000000", "unknown_flags"],
    ["464c583100017fff00000000", "read"],
    ["464c5831000100000000000000", "read"],
  ];
  for (const [hex, code] of cases) {
    assertEquals(codeOf(() => decodeFrame(Uint8Array.fromHex(hex))), code, hex);
  }
  assertEquals(codeOf(() => assertKnownFlags(0x8001)), "unknown_flags");
  assertEquals(codeOf(() => assertKnownFlags(0x7fff)), "read");
});

Deno.test("flag bits are those of the specification, each once", () => {
  const bits = Object.entries(flags).filter(([name]) => name.startsWith("FLAG_"));
  assertEquals(bits.length, 15);
  assertEquals(bits.reduce((all, [, bit]) => all + bit, 0), flags.KNOWN_FLAGS);
  assertEquals(flags.ORIGINAL_FLAGS, 7);
});

Deno.test("feature bits are those of the specification, each once and unsigned", () => {
  const low = Object.entries(features).filter(([name]) => !name.startsWith("FEATURE_HI_"));
  const high = Object.entries(features).filter(([name]) => name.startsWith("FEATURE_HI_"));
  assertEquals([low.length, high.length], [32, 5]);
  assertEquals(low.reduce((all, [, bit]) => all + bit, 0), 0xffff_ffff);
  assertEquals(high.reduce((all, [, bit]) => all + bit, 0), 0x1f);
  // What the published client leaves out (spec/wire.md §3.6).
  const { FEATURE_ACK_ON_COMMIT, FEATURE_GROUP_PUBLISHER, FEATURE_RECORD_TIMESTAMPS } = features;
  const offered = 0xffff_ffff - FEATURE_ACK_ON_COMMIT - FEATURE_GROUP_PUBLISHER -
    FEATURE_RECORD_TIMESTAMPS;
  assertEquals(offered, 0xfb77_ffff);
});
