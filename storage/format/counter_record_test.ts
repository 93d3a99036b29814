// The bytes of counter records (spec/storage.md §13.2).

import { assertEquals } from "@std/assert";
import fc from "fast-check";
import {
  type CounterRecord,
  type CounterRecordFault,
  decodeCounterRecord,
  encodeCounterRecord,
} from "./counter_record.ts";

const record = <T>(model: { [K in keyof T]: fc.Arbitrary<T[K]> }): fc.Arbitrary<T> =>
  fc.record(model, { noNullPrototype: true }) as fc.Arbitrary<T>;
const unhex = (value: string) => Uint8Array.fromHex(value.replaceAll(" ", ""));

const vectors: [CounterRecord, string][] = [
  [{ op: "delta", key: "k", amount: -3n }, "01 00 fdffffffffffffff 01000000 6b"],
  [{ op: "checkpoint", key: "k", amount: 42n }, "01 01 2a00000000000000 01000000 6b"],
];

Deno.test("counter records have the reference bytes", () => {
  for (const [record, bytes] of vectors) {
    assertEquals(encodeCounterRecord(record), unhex(bytes));
    assertEquals(decodeCounterRecord(unhex(bytes)), record);
  }
});

Deno.test("a counter record comes back as it was written", () => {
  const records = record({
    op: fc.constantFrom("delta" as const, "checkpoint" as const),
    key: fc.string({ unit: "grapheme", maxLength: 20 }),
    amount: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
  });
  fc.assert(fc.property(records, (record) => {
    assertEquals(decodeCounterRecord(encodeCounterRecord(record)), record);
  }));
});

Deno.test("what is not a counter record has its name", () => {
  const faults: [string, CounterRecordFault][] = [
    ["", "truncated"],
    ["01 00 0000000000000000 010000", "truncated"],
    ["02 00 0000000000000000 01000000 6b", "unknown_version"],
    ["01 02 0000000000000000 01000000 6b", "unknown_op"],
    ["01 00 0000000000000000 02000000 6b", "key_beyond_record"],
    ["01 00 0000000000000000 01000000 6b 76", "trailing_bytes"],
    ["01 00 0000000000000000 01000000 ff", "key_not_utf8"],
  ];
  for (const [bytes, fault] of faults) {
    assertEquals(decodeCounterRecord(unhex(bytes)), fault, bytes);
  }
});

Deno.test("any bytes are a counter record or a fault", () => {
  fc.assert(fc.property(fc.uint8Array({ maxLength: 40 }), (tail) => {
    decodeCounterRecord(tail);
    decodeCounterRecord(new Uint8Array([1, 0, ...tail]));
  }));
});
