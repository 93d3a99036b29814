// Message to JSON payload: members in the tables' order, no white space, only the escapes that
// spec/wire.md §4.1 names. Writes straight into the caller's buffer.

import { base64Length, encodeBase64 } from "./base64.ts";
import type { ByteWriter } from "./byte_writer.ts";
import { beginFrame, endFrame } from "./frame.ts";
import type { JsonMember, JsonShape } from "./json_schema.ts";
import type { Message } from "./messages.ts";
import { SCHEMAS } from "./schemas.ts";

const QUOTE = 0x22;
const COMMA = 0x2c;

/** Bytes of `{"type":"…"` and of `,"member":`, made once. */
const texts = new TextEncoder();
const NAMES = new Map<string, Uint8Array>();
const STARTS = new Map<string, Uint8Array>();
for (const { type, members } of SCHEMAS.values()) {
  STARTS.set(type, texts.encode(`{"type":"${type}"`));
  for (const { name } of members) NAMES.set(name, texts.encode(`,"${name}":`));
}

type Fields = Readonly<Record<string, unknown>>;

/** Appends the frame of a message. */
export function encodeMessage(message: Message, out: ByteWriter): void {
  const start = beginFrame(out, 0);
  out.bytes(STARTS.get(message.type)!);
  const fields = message as unknown as Fields;
  for (const member of SCHEMAS.get(message.type)!.members) {
    if (!isWritten(member, fields)) continue;
    out.bytes(NAMES.get(member.name)!);
    writeMember(out, member, fields);
  }
  out.u8(0x7d);
  endFrame(out, start);
}

function isWritten({ name, presence, always, value, shape }: JsonMember, fields: Fields): boolean {
  const given = fields[name];
  if (presence === "optional") return given !== undefined;
  if (presence !== "default" || always === true || given === undefined) {
    return presence !== "default" || always === true;
  }
  return shape.kind === "list" ? (given as unknown[]).length > 0 : given !== value;
}

function writeMember(out: ByteWriter, { name, shape, value }: JsonMember, fields: Fields): void {
  const given = fields[name] ?? value ?? null;
  if (given === null) out.ascii("null");
  else writeValue(out, shape, given);
}

function writeValue(out: ByteWriter, shape: JsonShape, value: unknown): void {
  switch (shape.kind) {
    case "text":
    case "word":
      return writeText(out, value as string);
    case "bytes":
      return writeBase64(out, value as Uint8Array);
    case "u64":
    case "i64":
    case "uint":
      return out.ascii(String(value));
    case "bool":
      return out.ascii(value === true ? "true" : "false");
    case "list":
      return writeList(out, shape.of, value as readonly unknown[]);
    case "object":
      return writeObject(out, shape.members, value as Fields);
    case "choice":
      if (typeof value === "string") return writeText(out, value);
      return writeObject(out, chosen(shape.members, value as Fields), value as Fields);
    case "tagged": {
      const fields = value as Fields;
      const word = fields[shape.tag] as string;
      const tag: JsonMember = { name: shape.tag, shape: { kind: "text" }, presence: "required" };
      return writeObject(out, [tag, ...shape.variants[word]!], fields);
    }
    case "json":
      out.utf8(JSON.stringify(value));
      return;
  }
}

function chosen(members: readonly JsonMember[], fields: Fields): readonly JsonMember[] {
  return members.filter(({ name }) => fields[name] !== undefined);
}

function writeList(out: ByteWriter, of: JsonShape, values: readonly unknown[]): void {
  out.u8(0x5b);
  for (let index = 0; index < values.length; index++) {
    if (index > 0) out.u8(COMMA);
    writeValue(out, of, values[index]);
  }
  out.u8(0x5d);
}

function writeObject(out: ByteWriter, members: readonly JsonMember[], fields: Fields): void {
  out.u8(0x7b);
  let first = true;
  for (const member of members) {
    if (!isWritten(member, fields)) continue;
    if (!first) out.u8(COMMA);
    first = false;
    out.u8(QUOTE);
    out.ascii(member.name);
    out.u8(QUOTE);
    out.u8(0x3a);
    writeMember(out, member, fields);
  }
  out.u8(0x7d);
}

function writeBase64(out: ByteWriter, value: Uint8Array): void {
  out.ensure(base64Length(value.length) + 2);
  out.u8(QUOTE);
  out.length = encodeBase64(value, out.buffer, out.length);
  out.u8(QUOTE);
}

/** Text in quotes; lone surrogates, which no JSON may hold, become U+FFFD. */
function writeText(out: ByteWriter, text: string): void {
  const { length } = text;
  out.ensure(length * 3 + 2);
  const { buffer } = out;
  let at = out.length;
  buffer[at++] = QUOTE;
  for (let index = 0; index < length; index++) {
    const unit = text.charCodeAt(index);
    if (unit < 0x20 || unit === QUOTE || unit === 0x5c || unit > 0x7e) {
      return writeUnusualText(out, text);
    }
    buffer[at++] = unit;
  }
  buffer[at++] = QUOTE;
  out.length = at;
}

function writeUnusualText(out: ByteWriter, text: string): void {
  out.u8(QUOTE);
  // deno-lint-ignore no-control-regex -- control characters are what is looked for
  out.utf8(text.replace(/["\\\u0000-\u001f]/g, escapeOf));
  out.u8(QUOTE);
}

const SHORT_ESCAPES: Readonly<Record<string, string>> = {
  '"': '\\"',
  "\\": "\\\\",
  "\b": "\\b",
  "\f": "\\f",
  "\n": "\\n",
  "\r": "\\r",
  "\t": "\\t",
};

function escapeOf(character: string): string {
  return SHORT_ESCAPES[character] ??
    `\\u00${character.charCodeAt(0).toString(16).padStart(2, "0")}`;
}
