// Reads JSON off bytes, strictly and without building a tree first (spec/wire.md §4.1): integers
// are exact, base64 is canonical, text has no lone surrogates and no bare control characters, and
// what nobody wants is skipped but checked all the same.

import { decodeBase64 } from "./base64.ts";
import { WireError } from "./wire_error.ts";

/** Levels of nesting that are read, the outer object counted. */
const MAX_DEPTH = 127;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;
/** Text up to this length is built from char codes, which is cheaper than a decoder call. */
const SHORT_TEXT = 32;

const MAX_U64 = 0xffff_ffff_ffff_ffffn;
const MAX_I64 = 0x7fff_ffff_ffff_ffffn;

const strictUtf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** A position in JSON text. Every method moves past what it read or throws `malformed`. */
export class JsonReader {
  /** Next byte. */
  at = 0;
  #depth = 0;

  /** `bytes`: the text. */
  constructor(readonly bytes: Uint8Array) {}

  /** Moves past white space; answers the next byte, -1 at the end. */
  peek(): number {
    const { bytes } = this;
    let at = this.at;
    let byte = bytes[at];
    while (byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09) byte = bytes[++at];
    this.at = at;
    return byte ?? -1;
  }

  /** Moves past `expected` if exactly these bytes come next. */
  take(expected: Uint8Array): boolean {
    const { bytes, at } = this;
    const { length } = expected;
    // Most members that are not the expected one differ in the first letter of their names.
    if (bytes[at + 2] !== expected[2]) return false;
    for (let index = 0; index < length; index++) {
      if (bytes[at + index] !== expected[index]) return false;
    }
    this.at = at + length;
    return true;
  }

  /** As `take`, for the beginning of an object with its first member. */
  enter(start: Uint8Array): boolean {
    if (!this.take(start)) return false;
    this.#depth++;
    return true;
  }

  /** Enters an object; `false` = it is empty and has been left. */
  openObject(): boolean {
    return this.#open(OPEN_OBJECT, CLOSE_OBJECT);
  }

  /** Enters a list; `false` = it is empty and has been left. */
  openList(): boolean {
    return this.#open(OPEN_LIST, CLOSE_LIST);
  }

  /** Reads the name of the next member and its colon. */
  memberName(): string {
    const name = this.text();
    if (this.peek() !== COLON) throw malformed("a member without a value");
    this.at++;
    return name;
  }

  /** After a member: whether another one follows; otherwise the object has been left. */
  nextMember(): boolean {
    return this.#next(CLOSE_OBJECT);
  }

  /** After an element: whether another one follows; otherwise the list has been left. */
  nextElement(): boolean {
    return this.#next(CLOSE_LIST);
  }

  /** Nothing but white space may follow. */
  end(): void {
    if (this.peek() !== -1) throw malformed("bytes after the message");
  }

  /** Reads `null` if it comes next. */
  isNull(): boolean {
    if (this.peek() !== 0x6e) return false;
    this.#word("null");
    return true;
  }

  /** Reads a boolean. */
  bool(): boolean {
    const first = this.peek();
    if (first === 0x74) return this.#word("true"), true;
    if (first === 0x66) return this.#word("false"), false;
    throw malformed("not a boolean");
  }

  /** Reads an unsigned integer of up to `max` (at most 2^32 - 1). */
  u32(max: number): number {
    this.peek();
    const start = this.at;
    const digits = this.#digits();
    if (digits > 10) throw malformed("a number out of range");
    const value = this.#small(start, digits);
    if (value > max) throw malformed("a number out of range");
    return value;
  }

  /** Reads an unsigned 64-bit integer. */
  u64(): bigint {
    this.peek();
    const start = this.at;
    return this.#magnitude(start, this.#digits(), MAX_U64);
  }

  /** Reads a signed 64-bit integer. */
  i64(): bigint {
    if (this.peek() !== 0x2d) {
      const start = this.at;
      return this.#magnitude(start, this.#digits(), MAX_I64);
    }
    const start = ++this.at;
    const value = this.#magnitude(start, this.#digits(), MAX_I64 + 1n);
    if (value === 0n) throw malformed("minus zero");
    return -value;
  }

  /** Reads text. */
  text(): string {
    const start = this.#openText();
    const end = this.#plainEnd(start);
    if (end < 0) return this.#escaped(start);
    this.at = end + 1;
    return asciiText(this.bytes, start, end);
  }

  /** Reads canonical base64 (standard letters, padded) into bytes of their own. */
  base64(): Uint8Array {
    const start = this.#openText();
    const end = this.bytes.indexOf(QUOTE, start);
    if (end < 0) throw malformed("text without an end");
    const decoded = decodeBase64(this.bytes, start, end);
    if (decoded === null) return this.#escapedBase64(start);
    this.at = end + 1;
    return decoded;
  }

  /** Moves past any one value, checking it. */
  skip(): void {
    const first = this.peek();
    if (first === QUOTE) this.text();
    else if (first === OPEN_OBJECT) {
      if (this.openObject()) {
        do {
          this.memberName();
          this.skip();
        } while (this.nextMember());
      }
    } else if (first === OPEN_LIST) {
      if (this.openList()) { do this.skip(); while (this.nextElement()); }
    } else if (first === 0x74) this.#word("true");
    else if (first === 0x66) this.#word("false");
    else if (first === 0x6e) this.#word("null");
    else this.#skipNumber();
  }

  /** Base64 letters may be escaped like any others (`\/`). */
  #escapedBase64(start: number): Uint8Array {
    this.at = start - 1;
    const text = new TextEncoder().encode(this.text());
    const decoded = decodeBase64(text, 0, text.length);
    if (decoded === null) throw malformed("not base64");
    return decoded;
  }

  #open(opening: number, closing: number): boolean {
    if (this.peek() !== opening) throw malformed("another type of value was due");
    if (++this.#depth > MAX_DEPTH) throw malformed("nested too deeply");
    this.at++;
    if (this.peek() !== closing) return true;
    this.at++;
    this.#depth--;
    return false;
  }

  #next(closing: number): boolean {
    const byte = this.peek();
    this.at++;
    if (byte === COMMA) return true;
    if (byte !== closing) throw malformed("a comma or an end was due");
    this.#depth--;
    return false;
  }

  #word(word: string): void {
    for (let index = 0; index < word.length; index++) {
      if (this.bytes[this.at++] !== word.charCodeAt(index)) throw malformed("an unknown word");
    }
  }

  /** Counts the digits of an integer from `at` on and moves past them. */
  #digits(): number {
    const { bytes } = this;
    const start = this.at;
    let at = start;
    while (bytes[at]! >= 0x30 && bytes[at]! <= 0x39) at++;
    const digits = at - start;
    if (digits === 0) throw malformed("not an integer");
    if (digits > 1 && bytes[start] === 0x30) throw malformed("a number with a leading zero");
    const after = bytes[at];
    if (after === 0x2e || after === 0x65 || after === 0x45) throw malformed("not an integer");
    this.at = at;
    return digits;
  }

  /** The integer of up to 15 digits at `start`. */
  #small(start: number, digits: number): number {
    let value = 0;
    for (let at = start; at < start + digits; at++) value = value * 10 + this.bytes[at]! - 0x30;
    return value;
  }

  #magnitude(start: number, digits: number, max: bigint): bigint {
    if (digits <= 15) return BigInt(this.#small(start, digits));
    if (digits > 20) throw malformed("a number out of range");
    const value = BigInt(asciiText(this.bytes, start, start + digits));
    if (value > max) throw malformed("a number out of range");
    return value;
  }

  #skipNumber(): void {
    const { bytes } = this;
    if (bytes[this.at] === 0x2d) this.at++;
    const start = this.at;
    this.#run();
    if (this.at - start > 1 && bytes[start] === 0x30) throw malformed("a leading zero");
    if (bytes[this.at] === 0x2e) {
      this.at++;
      this.#run();
    }
    if (bytes[this.at] === 0x65 || bytes[this.at] === 0x45) {
      this.at++;
      if (bytes[this.at] === 0x2b || bytes[this.at] === 0x2d) this.at++;
      this.#run();
    }
  }

  #run(): void {
    const start = this.at;
    while (this.bytes[this.at]! >= 0x30 && this.bytes[this.at]! <= 0x39) this.at++;
    if (this.at === start) throw malformed("not a value");
  }

  #openText(): number {
    if (this.peek() !== QUOTE) throw malformed("not text");
    return ++this.at;
  }

  /** Where text that begins at `start` ends; -1 if it is not plain ASCII without escapes. */
  #plainEnd(start: number): number {
    const { bytes } = this;
    for (let at = start; at < bytes.length; at++) {
      const byte = bytes[at]!;
      if (byte === QUOTE) return at;
      if (byte === BACKSLASH || byte >= 0x80) return -1;
      if (byte < 0x20) throw malformed("a bare control character");
    }
    throw malformed("text without an end");
  }

  /** Text with escapes or beyond ASCII. */
  #escaped(start: number): string {
    const { bytes } = this;
    const parts: string[] = [];
    let from = start;
    let at = start;
    for (;;) {
      const byte = bytes[at];
      if (byte === undefined) throw malformed("text without an end");
      if (byte < 0x20) throw malformed("a bare control character");
      if (byte === QUOTE) break;
      if (byte !== BACKSLASH) {
        at++;
        continue;
      }
      parts.push(this.#utf8(from, at));
      this.at = at + 1;
      parts.push(this.#escape());
      from = at = this.at;
    }
    parts.push(this.#utf8(from, at));
    this.at = at + 1;
    return parts.join("");
  }

  #utf8(start: number, end: number): string {
    if (start === end) return "";
    try {
      return strictUtf8.decode(this.bytes.subarray(start, end));
    } catch {
      throw malformed("text that is not UTF-8");
    }
  }

  #escape(): string {
    const byte = this.bytes[this.at++];
    if (byte === 0x75) return this.#unicodeEscape();
    const simple = byte === undefined ? undefined : ESCAPES.get(byte);
    if (simple === undefined) throw malformed("an unknown escape");
    return simple;
  }

  #unicodeEscape(): string {
    const unit = this.#hex4();
    if (unit < 0xd800 || unit > 0xdfff) return String.fromCharCode(unit);
    const low = unit < 0xdc00 && this.bytes[this.at] === BACKSLASH &&
        this.bytes[this.at + 1] === 0x75
      ? (this.at += 2, this.#hex4())
      : 0;
    if (low < 0xdc00 || low > 0xdfff) throw malformed("a lone surrogate");
    return String.fromCharCode(unit, low);
  }

  #hex4(): number {
    let value = 0;
    for (let digit = 0; digit < 4; digit++) {
      const byte = this.bytes[this.at++] ?? 0;
      const lower = byte | 0x20;
      if (byte >= 0x30 && byte <= 0x39) value = value * 16 + byte - 0x30;
      else if (lower >= 0x61 && lower <= 0x66) value = value * 16 + lower - 0x57;
      else throw malformed("not a hexadecimal digit");
    }
    return value;
  }
}

const ESCAPES: ReadonlyMap<number, string> = new Map([
  [0x22, '"'],
  [0x5c, "\\"],
  [0x2f, "/"],
  [0x62, "\b"],
  [0x66, "\f"],
  [0x6e, "\n"],
  [0x72, "\r"],
  [0x74, "\t"],
]);

/** Text of plain ASCII. Calls of up to 8 char codes are the cheapest way to make short text. */
function asciiText(bytes: Uint8Array, start: number, end: number): string {
  if (end - start > SHORT_TEXT) return strictUtf8.decode(bytes.subarray(start, end));
  const char = String.fromCharCode;
  let text = "";
  let at = start;
  for (; end - at >= 8; at += 8) {
    text += char(
      bytes[at]!,
      bytes[at + 1]!,
      bytes[at + 2]!,
      bytes[at + 3]!,
      bytes[at + 4]!,
      bytes[at + 5]!,
      bytes[at + 6]!,
      bytes[at + 7]!,
    );
  }
  if (end - at >= 4) {
    text += char(bytes[at]!, bytes[at + 1]!, bytes[at + 2]!, bytes[at + 3]!);
    at += 4;
  }
  for (; at < end; at++) text += char(bytes[at]!);
  return text;
}

/** The failure of a payload that is not the JSON that was due. */
export function malformed(what: string): WireError {
  return new WireError("malformed", what);
}
