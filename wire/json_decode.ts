// JSON payload to message, directed by the tables: members land where their table says, unknown
// ones are checked and skipped, duplicates of known ones are refused (spec/wire.md §4.1).

import { JsonReader, malformed } from "./json_reader.ts";
import type { JsonMember, JsonShape, MessageSchema } from "./json_schema.ts";
import type { Message } from "./messages.ts";
import { SCHEMAS } from "./schemas.ts";
import { WireError } from "./wire_error.ts";

type Fields = Record<string, unknown>;

/** Where the type is in a message that begins as encoders write it. */
const TYPE_AT = '{"type":"'.length;
/** No type is longer. */
const TYPE_MAX_BYTES = 32;
const QUOTE = 0x22;

/** The tables by a hash of their types. */
const BY_HASH: ReadonlyMap<number, MessageSchema> = new Map(
  [...SCHEMAS.values()].map((schema) => [hashOfType(schema.start), schema]),
);

/**
 * Decodes the payload of a frame without flags.
 * @throws {WireError} `malformed`; with `unknownType` when the JSON is sound and only its type is
 * not known
 */
export function decodeMessage(payload: Uint8Array): Message {
  const reader = new JsonReader(payload);
  const canonical = BY_HASH.get(hashOfType(payload));
  if (canonical !== undefined && reader.enter(canonical.start)) {
    return readMessage(reader, canonical, true);
  }
  const type = findType(payload);
  const schema = SCHEMAS.get(type);
  if (schema === undefined) throw unknownType(payload, type);
  return readMessage(reader, schema, false);
}

/** A hash of the type of a message that begins as encoders write it; of no meaning otherwise. */
function hashOfType(payload: Uint8Array): number {
  let hash = 0;
  const end = Math.min(payload.length, TYPE_AT + TYPE_MAX_BYTES + 1);
  for (let at = TYPE_AT; at < end; at++) {
    const byte = payload[at]!;
    if (byte === QUOTE) return hash;
    hash = (Math.imul(hash, 31) + byte) & 0x3fff_ffff;
  }
  return -1;
}

/** Reads a message; `inside`: its type has been read and its other members come next. */
function readMessage(reader: JsonReader, schema: MessageSchema, inside: boolean): Message {
  const { type, members } = schema;
  const message: Fields = { type };
  let sawType = inside;
  let seen = inside ? readInOrder(reader, members, message, 0) : 0;
  for (let more = inside ? reader.nextMember() : reader.openObject(); more;) {
    const name = reader.memberName();
    if (name === "type") {
      if (sawType) throw malformed("two types");
      sawType = true;
      reader.text();
    } else seen = readMember(reader, members, name, message, seen);
    more = reader.nextMember();
  }
  reader.end();
  fill(members, message, seen);
  return message as unknown as Message;
}

/**
 * Reads the members that follow as encoders write them: in the table's order, without white space.
 * Their names are compared as bytes. Answers `seen` with their bits; tables have fewer than 31
 * members.
 */
function readInOrder(
  reader: JsonReader,
  members: readonly JsonMember[],
  into: Fields,
  seen: number,
): number {
  let read = seen;
  for (let index = 32 - Math.clz32(seen); index < members.length; index++) {
    const member = members[index]!;
    if (!reader.take(member.lead)) continue;
    readInto(reader, member, into);
    read |= 1 << index;
  }
  return read;
}

/** Reads one member that may come at any place; answers `seen` with its bit. */
function readMember(
  reader: JsonReader,
  members: readonly JsonMember[],
  name: string,
  into: Fields,
  seen: number,
): number {
  const index = members.findIndex((member) => member.name === name);
  if (index < 0) {
    reader.skip();
    return seen;
  }
  const bit = 1 << index;
  if ((seen & bit) !== 0) throw malformed(`two members ${name}`);
  readInto(reader, members[index]!, into);
  return seen | bit;
}

function readInto(reader: JsonReader, member: JsonMember, into: Fields): void {
  const { name, presence } = member;
  if (presence === "required" || presence === "default" || !reader.isNull()) {
    into[name] = readValue(reader, member.shape);
  } else if (presence !== "optional") into[name] = null;
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
        : readChoice(reader, shape.words, shape.members);
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
    seen = readMember(reader, members, reader.memberName(), fields, 0);
    seen = readInOrder(reader, members, fields, seen);
    while (reader.nextMember()) {
      seen = readMember(reader, members, reader.memberName(), fields, seen);
    }
  }
  fill(members, fields, seen);
  return fields;
}

function readWord(reader: JsonReader, words: readonly string[]): string {
  const word = reader.text();
  if (!words.includes(word)) throw malformed(`an unknown word ${JSON.stringify(word)}`);
  return word;
}

/** An object of exactly one member; a word may be spelled so too, with `null` (§4.1). */
function readChoice(
  reader: JsonReader,
  words: readonly string[],
  members: readonly JsonMember[],
): Fields | string {
  if (!reader.openObject()) throw malformed("an object without its member");
  const name = reader.memberName();
  const member = members.find((known) => known.name === name);
  const isWord = member === undefined && words.includes(name) && reader.isNull();
  if (member === undefined && !isWord) throw malformed(`an unknown choice ${JSON.stringify(name)}`);
  const chosen = member === undefined ? name : { [name]: readValue(reader, member.shape) };
  if (reader.nextMember()) throw malformed("more than one choice");
  return chosen;
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

/** Any value; its numbers are doubles, for nobody here acts on them. */
function readAny(reader: JsonReader): unknown {
  reader.peek();
  const start = reader.at;
  reader.skip();
  const text = new TextDecoder().decode(reader.bytes.subarray(start, reader.at));
  return JSON.parse(text, (_, value) => {
    if (value === Infinity || value === -Infinity) throw malformed("a number out of range");
    return value;
  });
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
