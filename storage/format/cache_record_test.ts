// The bytes of cache records (spec/storage.md §13.1).

import { assertEquals, assertStrictEquals } from "@std/assert";
import fc from "fast-check";
import {
  type CacheRecord,
  type CacheRecordFault,
  decodeCacheRecord,
  encodeCacheRecord,
} from "./cache_record.ts";

const record = <T>(model: { [K in keyof T]: fc.Arbitrary<T[K]> }): fc.Arbitrary<T> =>
  fc.record(model, { noNullPrototype: true }) as fc.Arbitrary<T>;
const text = (value: string) => new TextEncoder().encode(value);
const unhex = (value: string) => Uint8Array.fromHex(value.replaceAll(" ", ""));

const keys = fc.string({ unit: "grapheme", maxLength: 20 });
const records: fc.Arbitrary<CacheRecord> = fc.oneof(
  record({
    op: fc.constant("put" as const),
    key: keys,
    value: fc.uint8Array({ maxLength: 40 }),
    expiresAtMs: fc.maxSafeNat(),
    version: fc.option(fc.maxSafeNat()),
  }),
  record({ op: fc.constant("delete" as const), key: keys }),
);

const put = { op: "put", key: "k", value: text("v"), expiresAtMs: 0, version: null } as const;
const vectors: [CacheRecord, string][] = [
  [put, "01 00 0000000000000000 01000000 6b 76"],
  [{ ...put, expiresAtMs: 1_700_000_000_000 }, "01 00 0068e5cf8b010000 01000000 6b 76"],
  [{ op: "delete", key: "k" }, "01 01 0000000000000000 01000000 6b"],
  [{ ...put, version: 5 }, "02 00 0000000000000000 01000000 0500000000000000 6b 76"],
];

Deno.test("cache records have the reference bytes", () => {
  for (const [record, bytes] of vectors) {
    assertEquals(encodeCacheRecord(record), unhex(bytes));
    assertEquals(decodeCacheRecord(unhex(bytes)), record);
  }
});

Deno.test("a cache record comes back as it was written", () => {
  fc.assert(fc.property(records, (record) => {
    assertEquals(decodeCacheRecord(encodeCacheRecord(record)), record);
  }));
});

Deno.test("a value is a view of the record", () => {
  const bytes = encodeCacheRecord(put);
  const decoded = decodeCacheRecord(bytes);
  assertStrictEquals(typeof decoded === "object" && decoded.op === "put", true);
  if (typeof decoded === "object" && decoded.op === "put") {
    assertStrictEquals(decoded.value.buffer, bytes.buffer);
  }
});

Deno.test("a byte order mark belongs to the key", () => {
  const record = { op: "delete", key: "\uFEFFk" } as const;
  assertEquals(decodeCacheRecord(encodeCacheRecord(record)), record);
});

Deno.test("what is not a cache record has its name", () => {
  const faults: [string, CacheRecordFault][] = [
    ["", "truncated"],
    ["01 00 0000000000000000 010000", "truncated"],
    ["02 00 0000000000000000 00000000 00", "truncated"],
    ["00 00 0000000000000000 01000000 6b", "unknown_version"],
    ["03 00 0000000000000000 01000000 6b", "unknown_version"],
    ["01 02 0000000000000000 01000000 6b", "unknown_op"],
    ["02 01 0000000000000000 01000000 0000000000000000 6b", "delete_with_version"],
    ["01 00 0000000000000000 02000000 6b", "key_beyond_record"],
    ["01 00 0000000000000000 ffffffff 6b", "key_beyond_record"],
    ["01 00 0000000000000000 01000000 ff", "key_not_utf8"],
    ["01 00 0000000000002000 01000000 6b", "number_too_large"],
    ["02 00 0000000000000000 01000000 0000000000002000 6b", "number_too_large"],
  ];
  for (const [bytes, fault] of faults) assertEquals(decodeCacheRecord(unhex(bytes)), fault, bytes);
});

Deno.test("any bytes are a cache record or a fault", () => {
  fc.assert(fc.property(fc.uint8Array({ maxLength: 40 }), fc.nat(2), (tail, version) => {
    decodeCacheRecord(tail);
    const decoded = decodeCacheRecord(new Uint8Array([version, 0, ...tail]));
    if (typeof decoded === "object") {
      assertEquals(decodeCacheRecord(encodeCacheRecord(decoded)), decoded);
    }
  }));
});
