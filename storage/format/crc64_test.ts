// CRC-64/XZ and batch digests against the reference values (spec/storage.md §5.4).

import { assertEquals } from "@std/assert";
import fc from "fast-check";
import { BatchDigest, batchDigest, crc64 } from "./crc64.ts";

const text = (value: string) => new TextEncoder().encode(value);

/** The definition, bit by bit. */
function crc64ByBits(bytes: Uint8Array): bigint {
  let sum = 0xFFFF_FFFF_FFFF_FFFFn;
  for (const byte of bytes) {
    sum ^= BigInt(byte);
    for (let bit = 0; bit < 8; bit++) {
      sum = sum & 1n ? (sum >> 1n) ^ 0xC96C_5795_D787_0F42n : sum >> 1n;
    }
  }
  return sum ^ 0xFFFF_FFFF_FFFF_FFFFn;
}

/** The definition of the digest, from bytes and sums. */
function digestByDefinition(payloads: readonly Uint8Array[]): bigint {
  const u64 = (value: bigint) => {
    const bytes = new Uint8Array(8);
    new DataView(bytes.buffer).setBigUint64(0, value);
    return bytes;
  };
  return payloads.reduce((digest, payload) => {
    const record = crc64ByBits(new Uint8Array([...u64(BigInt(payload.length)), ...payload]));
    return crc64ByBits(new Uint8Array([...u64(digest), ...u64(record)]));
  }, 0n);
}

Deno.test("crc64 has the reference check value", () => {
  assertEquals(crc64(text("123456789")), 0x995D_C9BB_DF19_39FAn);
  assertEquals(crc64(new Uint8Array(0)), 0n);
});

Deno.test("digests have the reference values", () => {
  assertEquals(batchDigest([text("a")]), 0x2CDB_1F4D_6AAD_0020n);
  assertEquals(batchDigest([text("a"), text("b")]), 0x1496_BCD5_71E6_359Dn);
  assertEquals(batchDigest([text("")]), 0xB91E_AE66_3A32_857Bn);
  assertEquals(batchDigest([]), 0n);
});

Deno.test("crc64 is its definition, whatever the length and the place in a buffer", () => {
  fc.assert(fc.property(fc.uint8Array({ maxLength: 100 }), fc.nat(9), (bytes, start) => {
    const view = bytes.subarray(Math.min(start, bytes.length));
    assertEquals(crc64(view), crc64ByBits(view));
  }));
});

Deno.test("a digest is its definition, and goes on from where it was taken", () => {
  const payloads = fc.array(fc.uint8Array({ maxLength: 20 }), { maxLength: 6 });
  fc.assert(fc.property(payloads, fc.nat(6), (batch, cut) => {
    const whole = batchDigest(batch);
    assertEquals(whole, digestByDefinition(batch));
    const rest = new BatchDigest(batchDigest(batch.slice(0, cut)));
    for (const payload of batch.slice(cut)) rest.add(payload);
    assertEquals(rest.value, whole);
  }));
});
