// Broker addresses as users and brokers write them (spec/client.md §3, trap 13 of §23). What is no
// address is refused before anything is dialled.

import { assertEquals, assertThrows } from "@std/assert";
import { InvalidArgumentError } from "./failure/classes.ts";
import { isIpLiteral, parseAddress, parseAddresses, parseToldAddress } from "./address.ts";

Deno.test("addresses in all their forms", () => {
  const cases: [string, string, number, string][] = [
    ["host:1", "host", 1, "host:1"],
    ["host", "host", 5000, "host:5000"],
    ["broker-1.example.com:65535", "broker-1.example.com", 65535, "broker-1.example.com:65535"],
    ["127.0.0.1:7000", "127.0.0.1", 7000, "127.0.0.1:7000"],
    ["[::1]:5001", "::1", 5001, "[::1]:5001"],
    ["[::1]", "::1", 5000, "[::1]:5000"],
    ["fe80::1", "fe80::1", 5000, "[fe80::1]:5000"],
    [" host:2 ", "host", 2, "host:2"],
  ];
  for (const [text, host, port, canonical] of cases) {
    assertEquals(parseAddress(text), { host, port, text: canonical });
  }
});

Deno.test("what is no address is refused", () => {
  const wrong = ["", ":1", "host:", "host:0", "host:65536", "host:x", "a b:1", "[::1", "[1]:2"];
  for (const text of [...wrong, "http://h:1", "host:1:2x"]) {
    assertThrows(() => parseAddress(text), InvalidArgumentError);
  }
});

Deno.test("lists keep their order and drop duplicates", () => {
  const texts = (input: string | string[]): string[] =>
    parseAddresses(input).map(({ text }) => text);
  assertEquals(texts("b:1, a:2,b:1"), ["b:1", "a:2"]);
  assertEquals(texts(["x:1,y:2", "z"]), ["x:1", "y:2", "z:5000"]);
  assertThrows(() => parseAddresses([]), InvalidArgumentError);
  assertThrows(() => parseAddresses("a:1,,b:2"), InvalidArgumentError);
});

Deno.test("an address that a broker told needs its port", () => {
  assertEquals(parseToldAddress("n:1")?.text, "n:1");
  assertEquals(parseToldAddress("[::1]:9")?.host, "::1");
  assertEquals(parseToldAddress("name"), null);
  assertEquals(parseToldAddress(undefined), null);
  assertEquals(parseToldAddress("not an address:1"), null);
});

Deno.test("IP literals are told from names", () => {
  assertEquals(["10.0.0.1", "::1", "host", "1.example"].map(isIpLiteral), [
    true,
    true,
    false,
    false,
  ]);
});
