// The reader by itself: it takes and refuses what JSON.parse does, but for what the protocol
// refuses on top (spec/wire.md §4.1), and it moves exactly past what it read.

import { assert, assertEquals, assertInstanceOf } from "@std/assert";
import fc from "fast-check";
import { JsonReader } from "./json_reader.ts";
import { WireError } from "./wire_error.ts";

const encoder = new TextEncoder();
const readerOf = (text: string): JsonReader => new JsonReader(encoder.encode(text));

/** Whether a value and nothing else is there. */
function isRead(bytes: Uint8Array): boolean {
  const reader = new JsonReader(bytes);
  try {
    reader.skip();
    reader.end();
    return true;
  } catch (error) {
    assertInstanceOf(error, WireError);
    assertEquals(error.code, "malformed");
    return false;
  }
}

/** The same by JSON.parse, and then by what the protocol adds. */
function isAllowed(bytes: Uint8Array): boolean {
  let value: unknown;
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    value = JSON.parse(text);
  } catch {
    return false;
  }
  return isWellFormed(value, 0);
}

function isWellFormed(value: unknown, depth: number): boolean {
  if (typeof value === "string") return value.isWellFormed();
  if (typeof value !== "object" || value === null) return true;
  if (depth >= 127) return false;
  return Object.entries(value).every(([name, member]) =>
    name.isWellFormed() && isWellFormed(member, depth + 1)
  );
}

const fragment: fc.Arbitrary<string> = fc.constantFrom(
  ...['"', "\\", "{", "}", "[", "]", ",", ":", "0", "1", "-", ".", "e", "E", "+", " ", "\n", "\t"],
  ...[
    "true",
    "false",
    "null",
    "nul",
    "\\u",
    "\\ud800",
    "\\udc00",
    "\\n",
    "\\/",
    "\\x",
    "é",
    "\u0000",
  ],
  ...["\u001f", "\ufeff", "\u00a0", "/", "'", '"a"', '{"a":1}', "[1,2]", "1.5e-3", "01"],
);
const value: fc.Arbitrary<string> = fc.jsonValue({ maxDepth: 3 }).map((json) =>
  JSON.stringify(json)
);

Deno.test("any JSON is read, with white space too", () => {
  fc.assert(fc.property(fc.jsonValue(), fc.nat(3), (json, indent) => {
    assert(isRead(encoder.encode(JSON.stringify(json, null, indent))));
  }));
});

Deno.test("pieces of JSON are read exactly when JSON.parse reads them", () => {
  const pieces = fc.array(fc.oneof(fragment, value), { maxLength: 8 }).map((parts) =>
    parts.join("")
  );
  fc.assert(
    fc.property(pieces, (text) => {
      const bytes = encoder.encode(text);
      assertEquals(isRead(bytes), isAllowed(bytes), text);
    }),
    { numRuns: 4000 },
  );
});

Deno.test("JSON with one byte changed, lost or added is read when JSON.parse reads it", () => {
  const change = fc.tuple(value, fc.nat(), fc.nat(255), fc.nat(2));
  let read = 0;
  fc.assert(
    fc.property(change, ([text, place, byte, kind]) => {
      const bytes = [...encoder.encode(text)];
      bytes.splice(place % bytes.length, kind === 0 ? 0 : 1, ...(kind === 2 ? [] : [byte]));
      const changed = Uint8Array.from(bytes);
      const allowed = isAllowed(changed);
      if (allowed) read++;
      assertEquals(isRead(changed), allowed, changed.toHex());
    }),
    { numRuns: 4000 },
  );
  assert(read > 100, "the property saw both sides");
});

Deno.test("each method moves exactly past its value", () => {
  const rows: [string, (reader: JsonReader) => unknown, unknown][] = [
    ["65535", (reader) => reader.u32(0xffff), 65535],
    ["4294967295", (reader) => reader.u32(0xffff_ffff), 4294967295],
    ["18446744073709551615", (reader) => reader.u64(), 18446744073709551615n],
    ["-9223372036854775808", (reader) => reader.i64(), -9223372036854775808n],
    ["9223372036854775807", (reader) => reader.i64(), 9223372036854775807n],
    ["true", (reader) => reader.bool(), true],
    ["false", (reader) => reader.bool(), false],
    ["null", (reader) => reader.isNull(), true],
    ['"a\\u00e9é\\ud83d\\ude00"', (reader) => reader.text(), "aéé😀"],
    ['"QUJD"', (reader) => new TextDecoder().decode(reader.base64()), "ABC"],
    ['"QU\\u004aD"', (reader) => new TextDecoder().decode(reader.base64()), "ABC"],
    ['"\\/\\/\\/\\/"', (reader) => reader.base64().toHex(), "ffffff"],
    ['{"a":[1,{"b":"]}"}]}', (reader) => reader.skip(), undefined],
    ["{}", (reader) => reader.openObject(), false],
    ["[ ]", (reader) => reader.openList(), false],
  ];
  for (const [text, read, expected] of rows) {
    const reader = readerOf(` \n${text} ,`);
    assertEquals(read(reader), expected, text);
    assertEquals(reader.peek(), 0x2c, `${text}: a comma follows`);
  }
});

Deno.test("each method refuses other values", () => {
  const rows: [(reader: JsonReader) => unknown, string[]][] = [
    [(reader) => reader.u32(0xffff), ["65536", "-1", "1.0", "1e1", "01", '"1"', "null", "", "x"]],
    [(reader) => reader.u32(0xffff_ffff), ["4294967296", "99999999999", "0.0", "00"]],
    [(reader) => reader.u64(), ["18446744073709551616", "-0", "1E2", "1.", "[]", "true"]],
    [(reader) => reader.i64(), ["9223372036854775808", "-9223372036854775809", "-0", "-", "--1"]],
    [(reader) => reader.bool(), ["0", "1", '"true"', "null", "tru", "TRUE", "fals", ""]],
    [(reader) => reader.isNull(), ["nul", "nulL", "n"]],
    [(reader) => reader.text(), ["a", "'a'", '"a', '"\n"', '"\\', '"\\u12"', '"\\ud800"', "1", ""]],
    [(reader) => reader.base64(), ['"QQ"', '"QR=="', '"Q Q="', '"QUI"', '"_-=="', "QUJD", '"QUJD']],
    [(reader) => reader.openObject(), ["[", "1", "", '"']],
    [(reader) => reader.openList(), ["{", "1", "", '"']],
    [(reader) => reader.memberName(), ['"a"', '"a" 1', "a:1", "1:1", ":", "}"]],
    [(reader) => reader.end(), ["x", "\0", "}", ","]],
  ];
  for (const [read, texts] of rows) {
    for (const text of texts) {
      let code = "read";
      try {
        read(readerOf(text));
      } catch (error) {
        assertInstanceOf(error, WireError);
        code = error.code;
      }
      assertEquals(code, "malformed", `${read}: ${text}`);
    }
  }
});

Deno.test("something other than null is left where it is", () => {
  for (const text of ["1", '"null"', "{", "true", ""]) {
    const reader = readerOf(` ${text}`);
    assertEquals([reader.isNull(), reader.at], [false, 1]);
  }
});

Deno.test("members and elements are walked one by one", () => {
  const reader = readerOf('{"a":1, "b" : [true , false], "c":{} }x');
  const seen: unknown[] = [];
  assert(reader.openObject());
  do {
    const name = reader.memberName();
    if (name !== "b") reader.skip();
    else if (reader.openList()) { do seen.push(reader.bool()); while (reader.nextElement()); }
    seen.push(name);
  } while (reader.nextMember());
  assertEquals(seen, ["a", true, false, "b", "c"]);
  assertEquals(reader.peek(), "x".charCodeAt(0));
});
