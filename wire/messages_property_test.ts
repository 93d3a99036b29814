// Every message type, from arbitraries that follow the tables: none can be forgotten. What is
// encoded reads back as it was, in any member order, with white space and unknown members around.

import { assertEquals } from "@std/assert";
import fc from "fast-check";
import { ByteWriter } from "./byte_writer.ts";
import { HEADER_BYTES } from "./frame.ts";
import { decodeMessage } from "./json_decode.ts";
import { encodeMessage } from "./json_encode.ts";
import type { JsonMember, JsonShape } from "./json_schema.ts";
import type { Message } from "./messages.ts";
import { SCHEMAS } from "./schemas.ts";

type Arbitrary = fc.Arbitrary<unknown>;

const MAX_U64 = 0xffff_ffff_ffff_ffffn;

/** Text of every sort: plain, beyond ASCII, full of escapes, long. */
const text: Arbitrary = fc.oneof(
  fc.string({ unit: "grapheme-ascii", maxLength: 20 }),
  fc.string({ unit: "binary", maxLength: 12 }),
  fc.string({ unit: fc.constantFrom('"', "\\", "/", "\n", "\b", "\f", "\u0000", "\u001f", "é") }),
  fc.string({ unit: "grapheme-ascii", minLength: 33, maxLength: 80 }),
);
/** Bytes, some of them long enough for the runtime's conversion. */
const bytes: Arbitrary = fc.oneof(
  { weight: 9, arbitrary: fc.uint8Array({ maxLength: 48 }) },
  { weight: 1, arbitrary: fc.uint8Array({ minLength: 760, maxLength: 1100 }) },
);
const integer = (min: bigint, max: bigint): fc.Arbitrary<bigint> =>
  fc.oneof(fc.bigInt({ min, max }), fc.constantFrom(min, max, max - 1n, 0n, 1n, 10n ** 15n));

function valueOf(shape: JsonShape): Arbitrary {
  switch (shape.kind) {
    case "text":
      return text;
    case "bytes":
      return bytes;
    case "bool":
      return fc.boolean();
    case "json":
      // A value that JSON text can hold: no minus zero, no null prototypes.
      return fc.jsonValue({ maxDepth: 4 }).map((value) => JSON.parse(JSON.stringify(value)));
    case "u64":
      return integer(0n, MAX_U64);
    case "i64":
      return integer(-(2n ** 63n), 2n ** 63n - 1n);
    case "uint":
      return fc.oneof(fc.integer({ min: 0, max: shape.max }), fc.constantFrom(0, shape.max));
    case "word":
      return fc.constantFrom(...shape.words);
    case "list":
      return fc.array(valueOf(shape.of), { maxLength: 4 });
    case "object":
      return objectOf(shape.members);
    case "choice":
      return fc.oneof(
        fc.constantFrom(...shape.words),
        ...shape.members.map((member) => objectOf([member])),
      );
    case "tagged":
      return fc.oneof(
        ...Object.entries(shape.variants).map(([word, members]) =>
          objectOf(members, shape.tag, word)
        ),
      );
  }
}

/** An object as a decoder makes it: members with a default are always there. */
function objectOf(members: readonly JsonMember[], tag?: string, word?: string): Arbitrary {
  const model: Record<string, Arbitrary> = {};
  if (tag !== undefined) model[tag] = fc.constant(word);
  for (const { name, shape, presence, value } of members) {
    const some = valueOf(shape);
    if (presence === "nullable" || presence === "present") model[name] = fc.option(some);
    else if (presence === "default" && shape.kind !== "object") {
      model[name] = fc.oneof(fc.constant(value), some);
    } else model[name] = some;
  }
  const optional = new Set(
    members.filter(({ presence }) => presence === "optional").map(({ name }) => name),
  );
  const requiredKeys = Object.keys(model).filter((name) => !optional.has(name));
  return fc.record(model, { requiredKeys, noNullPrototype: true });
}

function payloadOf(message: Message): Uint8Array {
  const out = new ByteWriter(1);
  encodeMessage(message, out);
  const frame = out.written();
  const view = new DataView(frame.buffer, frame.byteOffset);
  assertEquals(view.getUint16(6), 0);
  assertEquals(view.getUint32(8), frame.length - HEADER_BYTES);
  return frame.slice(HEADER_BYTES);
}

/** Cuts the text of an object into its members, each with its name. */
function membersOf(text: string): string[] {
  const members: string[] = [];
  let depth = 0;
  let quoted = false;
  let start = 1;
  for (let at = 0; at < text.length; at++) {
    const character = text[at]!;
    if (quoted) {
      if (character === "\\") at++;
      else if (character === '"') quoted = false;
    } else if (character === '"') quoted = true;
    else if (character === "{" || character === "[") depth++;
    else if (character === "}" || character === "]") depth--;
    if (!quoted && ((depth === 1 && character === ",") || (depth === 0 && at > 0))) {
      members.push(text.slice(start, at));
      start = at + 1;
    }
  }
  return members;
}

const space: fc.Arbitrary<string> = fc.string({
  unit: fc.constantFrom(" ", "\n", "\r", "\t"),
  maxLength: 3,
});
const stranger: fc.Arbitrary<string> = fc.tuple(fc.nat(3), fc.jsonValue({ maxDepth: 3 })).map((
  [name, value],
) => `"unknown_${name}":${JSON.stringify(value)}`);

for (const { type, members } of SCHEMAS.values()) {
  const runs = { numRuns: 60 };
  const messages = objectOf(members, "type", type) as fc.Arbitrary<Message>;

  Deno.test(`${type} reads back as it was written`, () => {
    fc.assert(
      fc.property(messages, (message) => {
        const payload = payloadOf(message);
        // What JSON.parse reads as well is JSON.
        assertEquals(JSON.parse(new TextDecoder().decode(payload)).type, type);
        const decoded = decodeMessage(payload);
        assertEquals(decoded, message);
        assertEquals(payloadOf(decoded), payload);
      }),
      runs,
    );
  });

  Deno.test(`${type} reads the same in any member order`, () => {
    const input = messages.chain((message) => {
      const cut = membersOf(new TextDecoder().decode(payloadOf(message)));
      const all = fc.array(stranger, { maxLength: 2 }).chain((more) =>
        fc.shuffledSubarray([...cut, ...more], { minLength: cut.length + more.length })
      );
      return fc.tuple(fc.constant(message), all, space);
    });
    fc.assert(
      fc.property(input, ([message, shuffled, gap]) => {
        const text = `${gap}{${gap}${shuffled.join(`${gap},${gap}`)}${gap}}${gap}`;
        const decoded = decodeMessage(new TextEncoder().encode(text));
        assertEquals(payloadOf(decoded), payloadOf(message));
      }),
      runs,
    );
  });

  Deno.test(`${type} refuses what its table does not allow`, () => {
    fc.assert(
      fc.property(messages, fc.nat(), (message, choice) => {
        const cut = membersOf(new TextDecoder().decode(payloadOf(message)));
        const member = cut[choice % cut.length]!;
        const name = member.slice(1, member.indexOf('"', 1));
        assertMalformed([...cut, member], `${name} twice`);
        const presence = members.find((known) => known.name === name)?.presence ?? "required";
        if (presence === "required") {
          assertMalformed(cut.filter((other) => other !== member), `no ${name}`);
        }
        if (presence === "required" || presence === "default") {
          const nulled = cut.map((other) => other === member ? `"${name}":null` : other);
          if (name !== "body") assertMalformed(nulled, `${name} null`);
        }
      }),
      runs,
    );
  });
}

function assertMalformed(members: readonly string[], why: string): void {
  let code = "read";
  try {
    decodeMessage(new TextEncoder().encode(`{${members.join(",")}}`));
  } catch (error) {
    code = (error as { code: string }).code;
  }
  assertEquals(code, "malformed", why);
}

Deno.test("a table has at most 30 members and no name twice", () => {
  for (const { type, members } of SCHEMAS.values()) {
    const names = members.map(({ name }) => name);
    assertEquals(names.length <= 30 && !names.includes("type"), true, type);
    assertEquals(new Set(names).size, names.length, type);
  }
  // Every message of spec/wire.md §4.
  assertEquals(SCHEMAS.size, 80);
});
