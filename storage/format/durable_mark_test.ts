// The bytes of the durable mark and what follows from it (spec/storage.md §5.1).

import { assertEquals } from "@std/assert";
import fc from "fast-check";
import {
  decodeDurableMark,
  DURABLE_MARK_BYTES,
  encodeDurableMark,
  syncedThrough,
  unsyncedFrom,
} from "./durable_mark.ts";

const u53 = fc.maxSafeNat();

Deno.test("a mark has the reference bytes", () => {
  const bytes = encodeDurableMark({ segment: 0, syncedBytes: 32 });
  assertEquals(
    bytes.toHex(),
    "464c534d" + "0001" + "0000" + "0000000000000000" + "0000000000000020" + "da723eb4" +
      "00000000",
  );
});

Deno.test("a mark comes back as it was written", () => {
  fc.assert(fc.property(u53, u53, (segment, syncedBytes) => {
    assertEquals(decodeDurableMark(encodeDurableMark({ segment, syncedBytes })), {
      segment,
      syncedBytes,
    });
  }));
});

Deno.test("any changed or missing byte of a mark makes it none", () => {
  const good = encodeDurableMark({ segment: 7, syncedBytes: 4096 });
  for (let length = 0; length < DURABLE_MARK_BYTES; length++) {
    assertEquals(decodeDurableMark(good.subarray(0, length)), null);
  }
  for (let bit = 0; bit < 28 * 8; bit++) {
    const bytes = good.slice();
    bytes[bit >> 3]! ^= 1 << (bit & 7);
    assertEquals(decodeDurableMark(bytes), null, `bit ${bit}`);
  }
});

Deno.test("any bytes are read as a mark or none", () => {
  fc.assert(fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => {
    decodeDurableMark(bytes);
  }));
});

Deno.test("segments before the mark are synced, those after it are not", () => {
  const mark = { segment: 3, syncedBytes: 100 };
  assertEquals([2, 3, 4].map((id) => unsyncedFrom(mark, id)), [null, 100, 32]);
  assertEquals([2, 3, 4].map((id) => syncedThrough(mark, id)), [Infinity, 100, 0]);
  assertEquals(unsyncedFrom({ segment: 3, syncedBytes: 5 }, 3), 32);
  assertEquals(unsyncedFrom(null, 3), null);
  assertEquals(syncedThrough(null, 3), 0);
});
