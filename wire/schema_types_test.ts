// The tables and the interfaces say the same: members in the same order, with the same types and
// the same ones optional. The codec casts between the two, so only a test can hold them together.

import { assert, assertEquals } from "@std/assert";
import type { JsonMember, JsonShape } from "./json_schema.ts";
import { SCHEMAS } from "./schemas.ts";
import * as shapes from "./value_shapes.ts";

const FILES = [
  "message_values.ts",
  "messages_session.ts",
  "messages_publish.ts",
  "messages_subscribe.ts",
  "messages_cache.ts",
  "messages_group.ts",
];

/** Members of an interface as `name?: type`, in order. */
type Members = string[];

const source = FILES.map((file) => Deno.readTextFileSync(new URL(file, import.meta.url))).join("");
const interfaces = new Map<string, Members>();
for (const [, name, body] of source.matchAll(/^export interface (\w+) \{\n([\s\S]*?)^\}/gm)) {
  const members = [...body!.matchAll(/^ {2}readonly (\w+\??: [^;]+);$/gm)].map((match) =>
    match[1]!
  );
  interfaces.set(name!, members);
}

/** Shapes that have a name are interfaces or unions of that name. */
const NAMED = new Map<JsonShape, string>(
  Object.entries(shapes).map(([constant, shape]) => [
    shape,
    constant.toLowerCase().replace(/(?:^|_)(\w)/g, (_, letter) => letter.toUpperCase()),
  ]),
);
/** Shapes whose types have other names. */
const RENAMED: Readonly<Record<string, string>> = {
  Routing: "RoutingMapping",
  Start: "SubscribeStart",
  Condition: "CacheCondition",
};

function typeOf(shape: JsonShape): string {
  const named = NAMED.get(shape);
  const name = named === undefined ? undefined : RENAMED[named] ?? named;
  switch (shape.kind) {
    case "text":
      return "string";
    case "bytes":
      return "Uint8Array";
    case "bool":
      return "boolean";
    case "json":
      return "unknown";
    case "u64":
    case "i64":
      return "bigint";
    case "uint":
      return "number";
    case "word":
      return name === "RoutingMapping" ? name : shape.words.map((word) => `"${word}"`).join(" | ");
    case "list":
      return `readonly ${typeOf(shape.of)}[]`;
    default:
      assert(name !== undefined, "a shape without a name");
      return name;
  }
}

function memberText({ name, shape, presence }: JsonMember): string {
  const type = typeOf(shape);
  if (presence === "optional") return `${name}?: ${type}`;
  return `${name}: ${type}${presence === "nullable" || presence === "present" ? " | null" : ""}`;
}

function pascal(type: string): string {
  return type.replace(/(?:^|_)(\w)/g, (_, letter: string) => letter.toUpperCase()) + "Message";
}

Deno.test("every table has an interface with the same members", () => {
  for (const { type, members } of SCHEMAS.values()) {
    const declared = interfaces.get(pascal(type));
    assert(declared !== undefined, `no interface ${pascal(type)}`);
    assertEquals(declared, [`type: "${type}"`, ...members.map(memberText)], pascal(type));
  }
});

Deno.test("every shared object shape has an interface with the same members", () => {
  let objects = 0;
  for (const [shape, name] of NAMED) {
    if (shape.kind !== "object") continue;
    objects++;
    const declared = interfaces.get(name);
    assert(declared !== undefined, `no interface ${name}`);
    assertEquals(declared, shape.members.map(memberText), name);
  }
  assertEquals(objects, 13);
});

Deno.test("every message is in the union and every interface of a message has a table", () => {
  const union = Deno.readTextFileSync(new URL("messages.ts", import.meta.url))
    .split("export type Message =")[1]!.split(";")[0]!;
  const named = [...union.matchAll(/\w+Message/g)].map(([name]) => name).sort();
  const tables = [...SCHEMAS.keys()].map(pascal).sort();
  assertEquals(named, tables);
  assertEquals([...interfaces.keys()].filter((name) => name.endsWith("Message")).sort(), tables);
});
