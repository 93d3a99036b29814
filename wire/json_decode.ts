// JSON payload to message, directed by the tables: members land where their table says, unknown
// ones are checked and skipped, duplicates of known ones are refused (spec/wire.md §4.1).

import { JsonReader, malformed } from "./json_reader.ts";
import type { JsonMember, JsonShape, MessageSchema } from "./json_schema.ts";
import type { Message } from "./messages.ts";
import { SCHEMAS } from "./schemas.ts";
import { WireError } from "./wire_error.ts";

type Fields = Record<string, unknown>;

const encoder = new TextEncoder();
/** The start of every message that a Felix encoder writes. */
const CANONICAL_START = encoder.encode('{"type":"');
/** Every message's members as encoders write them: `"name":`. */
const WRITTEN_NAMES: ReadonlyMap<string, readonly Uint8Array[]> = new Map(
  [...SCHEMAS.values()].map(({ type, members }) => [
    type,
    members.map(({ name }) => encoder.encode(`"${name}":`)),
  ]),
);

/**
 * Decodes the payload of a frame without flags.
 * @throws {WireError} `malformed`; with `unknownType` when the JSON is sound and only its type is
 * not known
 */
export function decodeMessage(payload: Uint8Array): Message {
  const canonical = canonicalType(payload);
  const type = canonical ?? findType(payload);
  const schema = SCHEMAS.get(type);
  if (schema === undefined) throw unknownType(payload, type);
  return decodeAs(schema, payload, canonical !== null);
}

function decodeAs(
  { type, members }: MessageSchema,
  payload: Uint8Array,
  typeRead: boolean,
): Message {
  const reader = new JsonReader(payload);
  const names = WRITTEN_NAMES.get(type)!;
  const message: Fields = { type };
  let sawType = typeRead;
  let seen = 0;
  if (
    typeRead ? reader.enterAfter(CANONICAL_START.length + type.length + 1) : reader.openObject()
  ) {
    do {
      // Members usually come in the table's order: look behind the last one first.
      const after = 32 - Math.clz32(seen);
      if (after < names.length && reader.isName(names[after]!)) {
        readInto(reader, members[after]!, message);
        seen |= 1 << after;
        continue;
      }
      const name = reader.memberName();
      if (name === "type") {
        if (sawType) throw malformed("two types");
        sawType = true;
        reader.text();
      } else seen = readMember(reader, members, name, message, seen);
    } while (reader.nextMember());
  }
  reader.end();
  fill(members, message, seen);
  return message as unknown as Message;
}

/** Reads one member; answers `seen` with its bit. Tables have fewer than 31 members. */
function readMember(
  reader: JsonReader,
  members: readonly JsonMember[],
  name: string,
  into: Fields,
  seen: number,
): number {
  // Members usually come in the table's order: look behind the last one first.
  const after = 32 - Math.clz32(seen);
  const index = after < members.length && members[after]!.name === name
    ? after
    : members.findIndex((member) => member.name === name);
  if (index < 0) {
    reader.skip();
    return seen;
  }
  const bit = 1 << index;
  if ((seen & bit) !== 0) throw malformed(`two members ${name}`);
  readInto(reader, members[index]!, into);
  return seen | bit;
}

function readInto(reader: JsonReader, { name, shape, presence }: JsonMember, into: Fields): void {
  if (presence !== "required" && presence !== "default" && reader.isNull()) {
    if (presence !== "optional") into[name] = null;
  } else into[name] = readValue(reader, shape);
}

/** Gives members that did not come what their presence says. */
function fill(members: readonly JsonMember[], into: Fields, seen: number): void {
  for (let index = 0; index < members.length; index++) {
    if ((seen & (1 << index)) !== 0) continue;
    const { name, presence, value } = members[index]!;
    if (presence === "required" || presence === "present") throw malformed(`no member ${name}`);
    if (presence === "nullable") into[name] = null;
    else if (presence === "default") into[name] = value;
  }
}

function readValue(reader: JsonReader, shape: JsonShape): unknown {
  switch (shape.kind) {
    case "text":
      return reader.text();
    case "bytes":
      return reader.base64();
    case "u64":
      return reader.u64();
    case "uint":
      return reader.u32(shape.max);
    case "bool":
      return reader.bool();
    case "i64":
      return reader.i64();
    case "list":
      return readList(reader, shape.of);
    case "object":
      return readObject(reader, shape.members);
    case "word":
      return readWord(reader, shape.words);
    case "choice":
      return reader.peek() === 0x22
        ? readWord(reader, shape.words)
        : readChoice(reader, shape.members);
    case "tagged":
      return readTagged(reader, shape.tag, shape.variants);
    case "json":
      return readAny(reader);
  }
}

function readList(reader: JsonReader, of: JsonShape): unknown[] {
  const values: unknown[] = [];
  if (reader.openList()) { do values.push(readValue(reader, of)); while (reader.nextElement()); }
  return values;
}

function readObject(reader: JsonReader, members: readonly JsonMember[]): Fields {
  const fields: Fields = {};
  let seen = 0;
  if (reader.openObject()) {
    do seen = readMember(reader, members, reader.memberName(), fields, seen); while (
      reader.nextMember()
    );
  }
  fill(members, fields, seen);
  return fields;
}

function readWord(reader: JsonReader, words: readonly string[]): string {
  const word = reader.text();
  if (!words.includes(word)) throw malformed(`an unknown word ${JSON.stringify(word)}`);
  return word;
}

/** An object of exactly one member. */
function readChoice(reader: JsonReader, members: readonly JsonMember[]): Fields {
  if (!reader.openObject()) throw malformed("an object without its member");
  const name = reader.memberName();
  const member = members.find((known) => known.name === name);
  if (member === undefined) throw malformed(`an unknown choice ${JSON.stringify(name)}`);
  const fields: Fields = { [name]: readValue(reader, member.shape) };
  if (reader.nextMember()) throw malformed("more than one choice");
  return fields;
}

function readTagged(
  reader: JsonReader,
  tag: string,
  variants: Readonly<Record<string, readonly JsonMember[]>>,
): Fields {
  const start = reader.at;
  const depth = new JsonReader(reader.bytes);
  depth.at = start;
  const word = tagOf(depth, tag);
  const members = Object.hasOwn(variants, word) ? variants[word] : undefined;
  if (members === undefined) throw malformed(`an unknown word ${JSON.stringify(word)}`);
  const fields: Fields = { [tag]: word };
  let seen = 0;
  if (reader.openObject()) {
    do {
      const name = reader.memberName();
      if (name === tag) reader.text();
      else seen = readMember(reader, members, name, fields, seen);
    } while (reader.nextMember());
  }
  fill(members, fields, seen);
  return fields;
}

/** The word in the member `tag`, which may come anywhere and only once. */
function tagOf(reader: JsonReader, tag: string): string {
  let word: string | undefined;
  if (reader.openObject()) {
    do {
      if (reader.memberName() !== tag) reader.skip();
      else if (word !== undefined) throw malformed(`two members ${tag}`);
      else word = reader.text();
    } while (reader.nextMember());
  }
  if (word === undefined) throw malformed(`no member ${tag}`);
  return word;
}

/** Any value; its numbers are ordinary ones, for nobody here acts on them. */
function readAny(reader: JsonReader): unknown {
  reader.peek();
  const start = reader.at;
  reader.skip();
  return JSON.parse(new TextDecoder().decode(reader.bytes.subarray(start, reader.at)));
}

/** The type of a message that begins as encoders write it; `null` otherwise. */
function canonicalType(payload: Uint8Array): string | null {
  for (let at = 0; at < CANONICAL_START.length; at++) {
    if (payload[at] !== CANONICAL_START[at]) return null;
  }
  let type = "";
  for (let at = CANONICAL_START.length; at < payload.length; at++) {
    const byte = payload[at]!;
    if (byte === 0x22) return type;
    // Known types are lower-case words; anything else takes the general way.
    if (byte !== 0x5f && (byte < 0x61 || byte > 0x7a)) return null;
    type += String.fromCharCode(byte);
  }
  return null;
}

function findType(payload: Uint8Array): string {
  const reader = new JsonReader(payload);
  const type = tagOf(reader, "type");
  reader.end();
  return type;
}

/** A message of an unknown type must be sound JSON all the same (spec/wire.md §4.2). */
function unknownType(payload: Uint8Array, type: string): WireError {
  const reader = new JsonReader(payload);
  let sawType = false;
  let sawId = false;
  let requestId: bigint | undefined;
  if (reader.openObject()) {
    do {
      const name = reader.memberName();
      if (name === "type" ? sawType : name === "request_id" && sawId) {
        throw malformed(`two members ${name}`);
      }
      if (name === "type") sawType = true;
      if (name !== "request_id") reader.skip();
      else {
        sawId = true;
        requestId = readLooseId(reader);
      }
    } while (reader.nextMember());
  }
  reader.end();
  return new WireError("malformed", `an unknown type ${JSON.stringify(type)}`, {
    unknownType: { requestType: type, ...(requestId === undefined ? {} : { requestId }) },
  });
}

/** A request id if it is one; any other value reads as absent. */
function readLooseId(reader: JsonReader): bigint | undefined {
  reader.peek();
  const start = reader.at;
  reader.skip();
  const exact = new JsonReader(reader.bytes.subarray(start, reader.at));
  try {
    const id = exact.u64();
    exact.end();
    return id;
  } catch {
    return undefined;
  }
}
