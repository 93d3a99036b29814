// Message to JSON payload: members in the tables' order, no white space, only the escapes that
// spec/wire.md §4.1 names. Writes straight into the caller's buffer.

import { base64Length, encodeBase64 } from "./base64.ts";
import type { ByteWriter } from "./byte_writer.ts";
import { abandonFrame, beginFrame, endFrame } from "./frame.ts";
import { required, TEXT } from "./json_schema.ts";
import type { JsonMember, JsonShape, MessageSchema } from "./json_schema.ts";
import type { Message } from "./messages.ts";
import { SCHEMAS } from "./schemas.ts";

const QUOTE = 0x22;
const COMMA = 0x2c;

type Fields = Readonly<Record<string, unknown>>;

/**
 * Appends the frame of a message.
 * @throws {RangeError} an integer outside its range
 * @throws {TypeError} the body of an `extension` that JSON cannot hold
 */
export function encodeMessage(message: Message, out: ByteWriter): void {
  const schema = SCHEMAS.get(message.type)!;
  const start = beginFrame(out, 0);
  try {
    writeMessage(out, schema, message as unknown as Fields);
  } catch (error) {
    abandonFrame(out, start);
    throw error;
  }
  endFrame(out, start);
}

function writeMessage(out: ByteWriter, { start, members }: MessageSchema, fields: Fields): void {
  out.bytes(start);
  for (const member of members) {
    if (!isWritten(member, fields)) continue;
    out.bytes(member.lead);
    writeMember(out, member, fields);
  }
  out.u8(0x7d);
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
      return writeInteger(out, value as bigint, BigInt.asUintN(64, value as bigint));
    case "i64":
      return writeInteger(out, value as bigint, BigInt.asIntN(64, value as bigint));
    case "uint":
      return writeInteger(out, value as number, Math.min((value as number) >>> 0, shape.max));
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
      return writeObject(out, [required(shape.tag, TEXT), ...shape.variants[word]!], fields);
    }
    case "json":
      out.utf8(JSON.stringify(value));
      return;
  }
}

/** Writes an integer that has to equal itself cut to its range. */
function writeInteger<T extends bigint | number>(out: ByteWriter, value: T, cut: T): void {
  if (value !== cut) throw new RangeError(`the integer ${value} is out of range`);
  out.ascii(String(value));
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
    out.bytes(first ? member.lead.subarray(1) : member.lead);
    first = false;
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
