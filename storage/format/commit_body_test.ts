// The bytes of commit bodies (spec/storage.md §3.3).

import { assertEquals } from "@std/assert";
import fc from "fast-check";
import {
  type CommitBody,
  type CommitBodyFault,
  type CommitOperation,
  decodeCommitBody,
  decodeCommitEvent,
  encodeCommitBody,
} from "./commit_body.ts";

const record = <T>(model: { [K in keyof T]: fc.Arbitrary<T[K]> }): fc.Arbitrary<T> =>
  fc.record(model, { noNullPrototype: true }) as fc.Arbitrary<T>;
const text = (value: string) => new TextEncoder().encode(value);
const unhex = (value: string) => Uint8Array.fromHex(value.replaceAll(" ", ""));

const golden = "01 00000002 6576 00000001 00 00000001 6b 00000001 76";
const keys = fc.string({ unit: "grapheme", maxLength: 10 });
const bytes = fc.uint8Array({ maxLength: 20 });
const operations: fc.Arbitrary<CommitOperation> = fc.oneof(
  record({ op: fc.constant("put" as const), key: keys, value: bytes }),
  record({ op: fc.constant("delete" as const), key: keys }),
);
const bodies: fc.Arbitrary<CommitBody> = record({
  event: bytes,
  operations: fc.array(operations, { maxLength: 8 }),
});

Deno.test("a commit body has the reference bytes", () => {
  const body: CommitBody = {
    event: text("ev"),
    operations: [{ op: "put", key: "k", value: text("v") }],
  };
  assertEquals(encodeCommitBody(body), unhex(golden));
  assertEquals(decodeCommitBody(unhex(golden)), body);
  assertEquals(decodeCommitEvent(unhex(golden)), text("ev"));
});

Deno.test("a commit body comes back as it was written, and never from a part of it", () => {
  fc.assert(fc.property(bodies, fc.nat(), (body, cut) => {
    const encoded = encodeCommitBody(body);
    assertEquals(decodeCommitBody(encoded), body);
    assertEquals(decodeCommitEvent(encoded), body.event);
    assertEquals(decodeCommitBody(encoded.subarray(0, cut % encoded.length)), "truncated");
  }));
});

Deno.test("what is not a commit body has its name", () => {
  const faults: [string, CommitBodyFault][] = [
    ["", "truncated"],
    ["02 00000000 00000000", "unknown_version"],
    ["01 ffffffff 00000000", "truncated"],
    ["01 00000000 ffffffff", "truncated"],
    ["01 00000000 00000001 02 00000000", "unknown_op"],
    ["01 00000000 00000001 01 00000001 ff", "key_not_utf8"],
    ["01 00000000 00000001 00 00000001 6b 00000002 76", "truncated"],
    [golden + "00", "trailing_bytes"],
  ];
  for (const [body, fault] of faults) assertEquals(decodeCommitBody(unhex(body)), fault, body);
  assertEquals(decodeCommitEvent(unhex("01 ffffffff 00")), "truncated");
  assertEquals(decodeCommitEvent(unhex("02 00000000")), "unknown_version");
});

Deno.test("any bytes are a commit body or a fault", () => {
  fc.assert(fc.property(fc.uint8Array({ maxLength: 60 }), (tail) => {
    decodeCommitBody(tail);
    decodeCommitEvent(tail);
    decodeCommitBody(new Uint8Array([1, 0, 0, 0, 0, ...tail]));
  }));
});
