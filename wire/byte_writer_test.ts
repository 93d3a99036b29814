// What is appended stands in order, big-endian, through every growth of the buffer.

import { assert, assertEquals } from "@std/assert";
import fc from "fast-check";
import { ByteWriter } from "./byte_writer.ts";

Deno.test("each kind of field has its bytes", () => {
  const out = new ByteWriter(1);
  out.u8(0xab);
  out.u16(0x0102);
  out.u32(0xfffe_fdfc);
  out.u64(0xffff_ffff_ffff_fffen);
  out.u64n(Number.MAX_SAFE_INTEGER);
  out.u64n(0xffff_ffff);
  out.bytes(Uint8Array.of(1, 2, 3));
  out.ascii("az~");
  assertEquals(out.utf8("é€😀\ud800"), 2 + 3 + 4 + 3);
  assertEquals(
    out.written().toHex(),
    "ab" + "0102" + "fffefdfc" + "fffffffffffffffe" + "001fffffffffffff" + "00000000ffffffff" +
      "010203" + "617a7e" + "c3a9" + "e282ac" + "f09f9880" + "efbfbd",
  );
  out.u32At(1, 0x1122_3344);
  assertEquals(out.written().subarray(0, 6).toHex(), "ab11223344fd");
});

/** One append and the bytes it stands for. */
type Append = [(out: ByteWriter) => void, Uint8Array];

function big(bits: number, value: bigint): Uint8Array {
  return Uint8Array.fromHex(value.toString(16).padStart(bits / 4, "0"));
}

const append: fc.Arbitrary<Append> = fc.oneof(
  fc.nat(0xff).map((n): Append => [(out) => out.u8(n), big(8, BigInt(n))]),
  fc.nat(0xffff).map((n): Append => [(out) => out.u16(n), big(16, BigInt(n))]),
  fc.integer({ min: 0, max: 0xffff_ffff })
    .map((n): Append => [(out) => out.u32(n), big(32, BigInt(n))]),
  fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }).map((n): Append => [(out) => out.u64(n), big(64, n)]),
  fc.maxSafeNat().map((n): Append => [(out) => out.u64n(n), big(64, BigInt(n))]),
  fc.uint8Array({ maxLength: 300 }).map((bytes): Append => [(out) => out.bytes(bytes), bytes]),
  fc.string({ unit: "grapheme-ascii" })
    .map((text): Append => [(out) => out.ascii(text), new TextEncoder().encode(text)]),
  fc.string({ unit: "binary" })
    .map((text): Append => [(out) => out.utf8(text), new TextEncoder().encode(text)]),
);

Deno.test("any row of appends gives its bytes, from any first size", () => {
  fc.assert(fc.property(fc.array(append), fc.integer({ min: 1, max: 64 }), (appends, initial) => {
    const out = new ByteWriter(initial);
    let hex = "";
    for (const [write, bytes] of appends) {
      write(out);
      hex += bytes.toHex();
    }
    assertEquals([out.length, out.written().toHex()], [hex.length / 2, hex]);
    assert(out.length <= out.buffer.length);
  }));
});

Deno.test("a buffer that grows at least doubles, so that appending stays cheap", () => {
  const out = new ByteWriter(16);
  let growths = 0;
  let last = out.buffer;
  for (let count = 0; count < 100_000; count++) {
    out.u8(count & 0xff);
    if (out.buffer === last) continue;
    assert(out.buffer.length >= last.length * 2);
    last = out.buffer;
    growths++;
  }
  assertEquals(growths, 13);
});

Deno.test("`take` gives the memory away, `clear` keeps it", () => {
  const out = new ByteWriter(8);
  out.ascii("first");
  const first = out.take();
  assertEquals(out.length, 0);
  out.ascii("second");
  assertEquals(new TextDecoder().decode(first), "first");
  assert(first.buffer !== out.buffer.buffer);
  const { buffer } = out;
  out.clear();
  out.ascii("third");
  assert(out.buffer === buffer);
  assertEquals(new TextDecoder().decode(out.written()), "third");
});

Deno.test("one large frame does not make every later buffer large", () => {
  const out = new ByteWriter(64);
  out.bytes(new Uint8Array(1 << 20));
  out.take();
  for (let round = 0; round < 20; round++) {
    out.u8(1);
    out.take();
  }
  assertEquals(out.buffer.length, 64);
});
