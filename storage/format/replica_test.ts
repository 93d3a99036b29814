// The bytes of a replica's promises (spec/storage.md §5.3).

import { assertEquals } from "@std/assert";
import fc from "fast-check";
import { crc32 } from "./crc32.ts";
import { decodeReplica, encodeReplica } from "./replica.ts";

Deno.test("a replica has the reference bytes", () => {
  assertEquals(
    encodeReplica({ generation: 3, commit: 10 }).toHex(),
    "464c5253" + "0001" + "0000" + "0000000000000003" + "000000000000000a" + "b747b13b",
  );
});

Deno.test("a replica comes back as it was written", () => {
  fc.assert(fc.property(fc.maxSafeNat(), fc.maxSafeNat(), (generation, commit) => {
    assertEquals(decodeReplica(encodeReplica({ generation, commit })), { generation, commit });
  }));
});

Deno.test("any changed, missing or added byte of a replica is refused", () => {
  const good = encodeReplica({ generation: 3, commit: 10 });
  for (let length = 0; length < good.length; length++) {
    assertEquals(decodeReplica(good.subarray(0, length)), null);
  }
  assertEquals(decodeReplica(new Uint8Array([...good, 0])), null);
  for (let bit = 0; bit < good.length * 8; bit++) {
    const bytes = good.slice();
    bytes[bit >> 3]! ^= 1 << (bit & 7);
    assertEquals(decodeReplica(bytes), null, `bit ${bit}`);
  }
});

Deno.test("numbers above 2^53 - 1 are refused", () => {
  for (const at of [8, 16]) {
    const bytes = encodeReplica({ generation: 3, commit: 10 });
    const view = new DataView(bytes.buffer);
    view.setBigUint64(at, 2n ** 53n);
    view.setUint32(24, crc32(bytes, 0, 24));
    assertEquals(decodeReplica(bytes), null);
  }
});

Deno.test("any bytes are read as a replica or refused", () => {
  fc.assert(fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => {
    decodeReplica(bytes);
  }));
});
