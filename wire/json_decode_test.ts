// What is not exactly the JSON of spec/wire.md §4.1 is refused, what it allows is read.

import { assert, assertEquals, assertInstanceOf } from "@std/assert";
import fc from "fast-check";
import { decodeMessage } from "./json_decode.ts";
import type { Message } from "./messages.ts";
import { WireError } from "./wire_error.ts";

const encoder = new TextEncoder();
const decode = (text: string): Message => decodeMessage(encoder.encode(text));

function failure(text: string | Uint8Array): WireError {
  try {
    decodeMessage(typeof text === "string" ? encoder.encode(text) : text);
  } catch (error) {
    assertInstanceOf(error, WireError);
    return error;
  }
  throw new RangeError(`was read: ${text}`);
}

function assertMalformed(text: string | Uint8Array): void {
  const error = failure(text);
  assertEquals(error.code, "malformed");
  assertEquals(error.unknownType, undefined, String(text));
}

const hello = (id: string): string => `{"type":"event_stream_hello","subscription_id":${id}}`;
const topology = (members: string): string => `{"type":"topology",${members}}`;
const nested = (levels: number): string =>
  topology(`"x":${"[".repeat(levels - 1)}${"]".repeat(levels - 1)}`);

Deno.test("unsigned integers are exact and in range", () => {
  for (const id of ["0", "9", "999999999999999", "1000000000000000", "18446744073709551615"]) {
    const message = decode(hello(id));
    assert(message.type === "event_stream_hello");
    assertEquals(message.subscription_id, BigInt(id));
  }
  const bad = ["18446744073709551616", "99999999999999999999", "100000000000000000000", "-1"];
  bad.push(
    "-0",
    "1.0",
    "1e3",
    "1E3",
    "01",
    "00",
    "+1",
    '"1"',
    "null",
    "true",
    "[]",
    "{}",
    "0x1",
    "",
  );
  bad.push("1 2", "1a", ".5", "1.", "NaN", "Infinity", "--1");
  for (const id of bad) assertMalformed(hello(id));
});

Deno.test("signed integers are exact and in range", () => {
  const counter = (value: string): string =>
    `{"type":"counter_value","value":${value},"request_id":1}`;
  for (const value of ["0", "-1", "9223372036854775807", "-9223372036854775808"]) {
    const message = decode(counter(value));
    assert(message.type === "counter_value");
    assertEquals(message.value, BigInt(value));
  }
  const bad = [
    "9223372036854775808",
    "-9223372036854775809",
    "-0",
    "-",
    "- 1",
    "1.0",
    "-1e1",
    "-01",
  ];
  for (const value of bad) assertMalformed(counter(value));
});

Deno.test("small integers have their own range", () => {
  const auth = (member: string): string => `{"type":"auth","tenant_id":"t","token":"x",${member}}`;
  const message = decode(auth('"client_flags":65535,"client_features":4294967295'));
  assert(message.type === "auth");
  assertEquals([message.client_flags, message.client_features], [65535, 4294967295]);
  for (const member of ['"client_flags":65536', '"client_features":4294967296']) {
    assertMalformed(auth(member));
  }
  assertMalformed(auth('"client_features":99999999999999999999999999999999'));
});

Deno.test("any u64 is read as it stands", () => {
  fc.assert(fc.property(fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }), (id) => {
    const message = decode(hello(String(id)));
    assert(message.type === "event_stream_hello");
    assertEquals(message.subscription_id, id);
  }));
});

Deno.test("text follows JSON to the letter", () => {
  const error = (text: string): string => `{"type":"error","message":${text}}`;
  const good: [string, string][] = [
    ['"\\"\\\\\\/\\b\\f\\n\\r\\t"', '"\\/\b\f\n\r\t'],
    ['"\\u0041\\u00e9\\u20ac"', "Aé€"],
    ['"\\ud83d\\ude00"', "😀"],
    ['"é€😀"', "é€😀"],
    ['"\\u0000"', "\0"],
    ['"\\uD83D\\uDE00"', "😀"],
    ['"\ufeff"', "\ufeff"],
    ['"\u007f"', "\u007f"],
    [`"${"a".repeat(1000)}"`, "a".repeat(1000)],
  ];
  for (const [json, value] of good) {
    const message = decode(error(json));
    assert(message.type === "error");
    assertEquals(message.message, value);
    decode(topology(`"unread":${json}`));
  }
  const bad = ['"\\ud83d"', '"\\ude00"', '"\\ude00\\ud83d"', '"\\ud83dx"', '"\\ud83d\\u0041"'];
  bad.push('"\\x41"', '"\\u12"', '"\\u12g4"', '"\\', '"', '"a', '"\\"', '"\n"', '"\t"', '"\u0000"');
  bad.push('"é\n"', "'a'", "a", '"\\ud83d\\n"', '"\\u"');
  for (const json of bad) {
    assertMalformed(error(json));
    assertMalformed(topology(`"unread":${json}`));
    assertMalformed(topology(`${json}:1`));
  }
});

Deno.test("text that is not UTF-8 is refused everywhere", () => {
  for (const hex of ["ff", "c0af", "eda080", "f4908080", "e282", "80"]) {
    for (const start of ['{"type":"error","message":"', '{"type":"ok","x":"', '{"type":"ok","']) {
      const end = start.endsWith(',"') ? '":1}' : '"}';
      const bytes = [...encoder.encode(start), ...Uint8Array.fromHex(hex), ...encoder.encode(end)];
      assertMalformed(Uint8Array.from(bytes));
    }
  }
});

Deno.test("127 levels are read, 128 are not", () => {
  assertEquals(decode(nested(127)).type, "topology");
  assertMalformed(nested(128));
  assertMalformed(nested(100_000));
  const body = (levels: number): string =>
    `{"type":"extension","name":"n","body":${"[".repeat(levels - 1)}${"]".repeat(levels - 1)}}`;
  assertEquals(decode(body(127)).type, "extension");
  assertMalformed(body(128));
  // Levels that were left do not count.
  assertEquals(decode(topology(`"x":[${"[],".repeat(500)}{}]`)).type, "topology");
});

Deno.test("duplicates of known members are refused, of unknown ones passed over", () => {
  assertMalformed('{"type":"topology","type":"topology"}');
  assertMalformed('{"type":"producer_init","request_id":1,"request_id":1}');
  assertMalformed('{"request_id":1,"type":"producer_init","request_id":1}');
  assertMalformed('{"type":"producer_init","request_id":1,"request\\u005fid":1}');
  assertMalformed('{"type":"cache_ok","request_id":1,"\\u0074ype":"cache_ok"}');
  assertEquals(decode('{"type":"topology","x":1,"x":2}').type, "topology");
  assertMalformed('{"type":"error","message":"m","detail":{"reason":"a","reason":"b"}}');
  assertMalformed(
    '{"type":"error","message":"m","detail":{"retry_after_ms":1,"reason":"a","retry_after_ms":1}}',
  );
  assertEquals(decode('{"type":"error","message":"m","detail":{"x":1,"x":1}}').type, "error");
});

Deno.test("the outer value is one object and nothing follows it", () => {
  const bad = ["", " ", "{", "}", "[]", "null", '"ok"', '{"type":"ok"', '{"type":"ok"}}', "{}"];
  bad.push(
    '{"type":"ok"} x',
    '{"type":"ok"}{}',
    '{"type":"ok",}',
    '{,"type":"ok"}',
    '{"type" "ok"}',
  );
  bad.push('{"type":"ok"\0}', '\ufeff{"type":"ok"}', '{"type":"ok"}\0', '{"type":"ok"}\u00a0');
  bad.push(
    '{"type":null}',
    '{"type":1}',
    '{"type":["ok"]}',
    '{"x":"ok"}',
    '{type:"ok"}',
    '{"type":"ok" "x":1}',
  );
  bad.push(
    '{"type":"ok"]',
    '{"type":"ok","x":[1}',
    '{"type":"ok","x":[1,]}',
    '{"type":"ok","x":tru}',
  );
  bad.push(
    '{"type":"ok","x":01}',
    '{"type":"ok","x":1.}',
    '{"type":"ok","x":-}',
    '{"type":"ok","x":1e}',
  );
  for (const text of bad) assertMalformed(text);
  for (
    const text of [
      '\n\t {"type" : "ok"}\r\n ',
      '{"\\u0074ype":"\\u006fk"}',
      '{"type":"ok","x":-1.5e-3}',
    ]
  ) {
    assertEquals(decode(text), { type: "ok" });
  }
});

Deno.test("null is absent on an optional member and malformed on others", () => {
  const get = (members: string): string =>
    `{"type":"cache_get","tenant_id":"t","namespace":"n","cache":"c","key":"k"${members}}`;
  assertEquals(Object.hasOwn(decode(get(',"request_id":null')), "request_id"), false);
  assertMalformed('{"type":"cache_get","tenant_id":"t","namespace":"n","cache":"c","key":null}');
  const poll = (members: string): string =>
    `{"type":"group_poll","tenant_id":"t","namespace":"n","stream":"s","shard":0,"group":"g",` +
    `"max_records":1,"request_id":1${members}}`;
  const message = decode(poll(""));
  assert(message.type === "group_poll");
  assertEquals([message.wait_ms, message.reclaim, message.visibility_ms], [0n, false, 0n]);
  for (const name of ["wait_ms", "reclaim", "visibility_ms"]) {
    assertMalformed(poll(`,"${name}":null`));
  }
  const extension = decode('{"type":"extension","name":"n","body":null}');
  assert(extension.type === "extension");
  assertEquals(extension.body, null);
});

Deno.test("a value that may be null must be there", () => {
  const value = (members: string): string =>
    `{"type":"cache_value","tenant_id":"t","namespace":"n","cache":"c","key":"k"${members}}`;
  assertMalformed(value(',"request_id":1'));
  const miss = decode(value(',"value":null'));
  assert(miss.type === "cache_value");
  assertEquals(miss.value, null);
  const put = decode(
    '{"type":"cache_put","tenant_id":"t","namespace":"n","cache":"c","key":"k","value":""}',
  );
  assert(put.type === "cache_put");
  assertEquals([put.ttl_ms, put.value.length], [null, 0]);
});

Deno.test("objects of one member take exactly one", () => {
  const subscribe = (start: string): string =>
    `{"type":"subscribe","tenant_id":"t","namespace":"n","stream":"s","start":${start}}`;
  const message = decode(subscribe('{ "offset" : 7 }'));
  assert(message.type === "subscribe");
  assertEquals(message.start, { offset: 7n });
  // A word may come as a member whose value is null.
  const latest = decode(subscribe('{"latest" : null}'));
  assert(latest.type === "subscribe");
  assertEquals(latest.start, "latest");
  const words = ['{"latest":1}', '{"latest":null,"x":1}', '{"latest":null,"latest":null}'];
  words.push('{"Latest":null}', '{"x":null}', '{"latest":{}}', '{"latest":"latest"}');
  for (const start of words) assertMalformed(subscribe(start));
  for (
    const start of ["{}", '{"offset":1,"offset":1}', '{"offset":1,"x":1}', '{"x":1}', '"offset"']
      .concat(['"Latest"', "1", "[]", '{"offset":null}', '{"offset":-1}', '{"__proto__":1}'])
  ) assertMalformed(subscribe(start));
});

Deno.test("changes of a commit are told apart by their op, wherever it stands", () => {
  const commit = (change: string): string =>
    `{"type":"commit","tenant_id":"t","namespace":"n","stream":"s","entity_key":"","event":"",` +
    `"changes":[${change}],"request_id":1}`;
  const message = decode(
    commit('{"value":"AA==","x":[],"key":"k","op":"put"},{"op":"delete","key":"k"}'),
  );
  assert(message.type === "commit");
  assertEquals(message.changes, [
    { op: "put", value: Uint8Array.of(0), key: "k" },
    { op: "delete", key: "k" },
  ]);
  for (
    const change of [
      '{"key":"k"}',
      '{"op":"put","key":"k"}',
      '{"op":"toString","key":"k"}',
      "{}",
      '"put"',
    ]
      .concat([
        '{"op":"delete","key":"k","op":"delete"}',
        '{"op":"delete","key":"k","key":"k"}',
        '{"op":1}',
      ])
  ) assertMalformed(commit(change));
});

Deno.test("an unknown type is told with its request id if that is one", () => {
  const cases: [string, string, bigint | undefined][] = [
    ['{"type":"later"}', "later", undefined],
    ['{"type":"later","request_id":7,"x":[1,{"y":null}]}', "later", 7n],
    ['{"request_id":18446744073709551615,"type":"Ä\\n"}', "Ä\n", 18446744073709551615n],
    ['{"type":"","request_id":"7"}', "", undefined],
    ['{"type":"OK","request_id":-1}', "OK", undefined],
    ['{"type":"ok ","request_id":1.5}', "ok ", undefined],
    ['{"type":"x","request_id":18446744073709551616}', "x", undefined],
    ['{"type":"constructor","request_id":null}', "constructor", undefined],
  ];
  for (const [text, requestType, requestId] of cases) {
    const error = failure(text);
    assertEquals(error.code, "malformed");
    assertEquals<unknown>(
      error.unknownType,
      requestId === undefined ? { requestType } : { requestType, requestId },
    );
  }
  // What is no sound JSON has no type to tell.
  assertMalformed('{"type":"later","request_id":1,"request_id":2}');
  assertMalformed('{"type":"later","type":"later"}');
  assertMalformed('{"type":"later","x":"\\ud800"}');
  assertMalformed('{"type":"later"} x');
  assertMalformed('{"type":"later","x":01}');
});

Deno.test("decoded bytes are memory of their own", () => {
  const payload = encoder.encode(
    '{"type":"cache_put","tenant_id":"t","namespace":"n","cache":"c","key":"k","value":"AQID"}',
  );
  const message = decodeMessage(payload);
  payload.fill(0);
  assert(message.type === "cache_put");
  assertEquals(message.value, Uint8Array.of(1, 2, 3));
});

Deno.test("a number that no double holds is refused where numbers are kept", () => {
  const extension = (body: string): string => `{"type":"extension","name":"n","body":${body}}`;
  assertEquals(decode(extension('{"a":[1e308]}')), {
    type: "extension",
    name: "n",
    body: { a: [1e308] },
  });
  for (const body of ["1e999", "-1e999", '{"a":[1e999]}']) assertMalformed(extension(body));
  assertEquals(decode(topology('"x":1e999')).type, "topology");
});

Deno.test("a filter that did not come reads as one that asks for everything", () => {
  const message = decode('{"type":"subscriptions_list","request_id":1}');
  assert(message.type === "subscriptions_list");
  assertEquals(message.filter, { dropping: false });
});
