// A batch body is its records with their lengths, and every record is found again.

import { assertEquals } from "@std/assert";
import fc from "fast-check";
import { recordBatchOf, recordsAt, skipRecords } from "./record_batch.ts";

Deno.test("the layout is a big-endian u32 length and the bytes, back to back", () => {
  const batch = recordBatchOf([Uint8Array.of(7, 8), new Uint8Array(0), Uint8Array.of(9)]);
  assertEquals([...batch.body], [0, 0, 0, 2, 7, 8, 0, 0, 0, 0, 0, 0, 0, 1, 9]);
  assertEquals([batch.count, batch.payloadBytes], [3, 3]);
});

Deno.test("every record of a batch is found again, from any of them on", () => {
  const payloads = fc.array(fc.uint8Array({ maxLength: 300 }), { maxLength: 20 });
  fc.assert(fc.property(payloads, fc.nat(20), (records, from) => {
    const { body, count } = recordBatchOf(records);
    const skip = Math.min(from, count);
    assertEquals(recordsAt(body, skipRecords(body, 0, skip), count - skip), records.slice(skip));
  }));
});
