// The encoder's form is fixed: table order, no white space, the escapes of spec/wire.md §4.1.

import { assertEquals, assertThrows } from "@std/assert";
import fc from "fast-check";
import { ByteWriter } from "./byte_writer.ts";
import { HEADER_BYTES } from "./frame.ts";
import { decodeMessage } from "./json_decode.ts";
import { encodeMessage } from "./json_encode.ts";
import type { Message } from "./messages.ts";

function textOf(message: Message): string {
  const out = new ByteWriter(1);
  encodeMessage(message, out);
  return new TextDecoder("utf-8", { fatal: true }).decode(out.written().subarray(HEADER_BYTES));
}

Deno.test("frames are appended one behind the other", () => {
  const out = new ByteWriter(1);
  encodeMessage({ type: "ok" }, out);
  encodeMessage({ type: "cache_ok", request_id: 7n }, out);
  assertEquals(
    out.written().toHex(),
    "464c5831000100000000000d" + new TextEncoder().encode('{"type":"ok"}').toHex() +
      "464c58310001000000000022" +
      new TextEncoder().encode('{"type":"cache_ok","request_id":7}').toHex(),
  );
});

Deno.test("only quotes, backslashes and control characters are escaped", () => {
  const message = '"\\/\b\f\n\r\t\0\u0001\u001f\u007f\u0080é€😀\u2028\ufeff';
  assertEquals(
    textOf({ type: "error", message }),
    '{"type":"error","message":"\\"\\\\/\\b\\f\\n\\r\\t\\u0000\\u0001\\u001f' +
      '\u007f\u0080é€😀\u2028\ufeff"}',
  );
});

Deno.test("a lone surrogate is written as U+FFFD, so that what leaves is always JSON", () => {
  assertEquals(
    textOf({ type: "error", message: "a\ud800b" }),
    '{"type":"error","message":"a\ufffdb"}',
  );
  fc.assert(
    fc.property(
      fc.string({ unit: fc.nat(0xffff).map((unit) => String.fromCharCode(unit)) }),
      (message) => {
        assertEquals(decodeMessage(new TextEncoder().encode(textOf({ type: "error", message }))), {
          type: "error",
          message: message.toWellFormed(),
        });
      },
    ),
  );
});

Deno.test("members come in the table's order whatever the object's", () => {
  const put: Message = {
    ttl_ms: null,
    request_id: 18446744073709551615n,
    value: new Uint8Array(0),
    key: "k",
    cache: "c",
    namespace: "n",
    tenant_id: "t",
    type: "cache_put",
  };
  assertEquals(
    textOf(put),
    '{"type":"cache_put","tenant_id":"t","namespace":"n","cache":"c","key":"k","value":"",' +
      '"request_id":18446744073709551615,"ttl_ms":null}',
  );
});

Deno.test("members at their default are written or left out as the tables say", () => {
  const poll = {
    type: "group_poll",
    tenant_id: "t",
    namespace: "n",
    stream: "s",
    shard: 0,
    group: "g",
    max_records: 1,
    wait_ms: 0n,
    request_id: 1n,
    reclaim: false,
    visibility_ms: 0n,
  } as const;
  const start = '{"type":"group_poll","tenant_id":"t","namespace":"n","stream":"s","shard":0,' +
    '"group":"g","max_records":1,"wait_ms":0,"request_id":1';
  assertEquals(textOf(poll), `${start}}`);
  assertEquals(
    textOf({ ...poll, consumer: "me", reclaim: true, visibility_ms: 5n }),
    `${start},"consumer":"me","reclaim":true,"visibility_ms":5}`,
  );
  assertEquals(
    textOf({ type: "extension", name: "n", body: null }),
    '{"type":"extension","name":"n"}',
  );
  assertEquals(
    textOf({ type: "subscriptions_list", filter: { dropping: false }, request_id: 1n }),
    '{"type":"subscriptions_list","filter":{},"request_id":1}',
  );
  assertEquals(
    textOf({ type: "counter_value", value: -(2n ** 63n), request_id: 0n }),
    '{"type":"counter_value","value":-9223372036854775808,"request_id":0}',
  );
});

Deno.test("null is written where there may be no value", () => {
  const scope = { tenant_id: "t", namespace: "n", cache: "c", key: "k" };
  assertEquals(
    textOf({ type: "cache_value", ...scope, value: null }),
    '{"type":"cache_value","tenant_id":"t","namespace":"n","cache":"c","key":"k","value":null}',
  );
  assertEquals(
    textOf({ type: "state_value", value: null, request_id: 1n }),
    '{"type":"state_value","value":null,"request_id":1}',
  );
});

Deno.test("an integer out of its range is refused and leaves nothing behind", () => {
  const out = new ByteWriter(16);
  out.u8(0xaa);
  const auth = { type: "auth", tenant_id: "t", token: "x" } as const;
  const bad: Message[] = [
    { type: "cache_ok", request_id: -1n },
    { type: "cache_ok", request_id: 2n ** 64n },
    { type: "counter_value", value: 2n ** 63n, request_id: 1n },
    { type: "counter_value", value: -(2n ** 63n) - 1n, request_id: 1n },
    { ...auth, client_flags: 65_536 },
    { ...auth, client_features: 2 ** 32 },
    { ...auth, client_features: -1 },
    { ...auth, client_features: 1.5 },
    { ...auth, client_features: NaN },
    { type: "group_dead_letter_list", offsets: [1n, -1n], request_id: 1n },
  ];
  for (const message of bad) {
    assertThrows(() => encodeMessage(message, out), RangeError);
    assertEquals(out.written().toHex(), "aa");
  }
  encodeMessage({ type: "ok" }, out);
  assertEquals(new TextDecoder().decode(out.written().subarray(13)), '{"type":"ok"}');
});
