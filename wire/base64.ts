// Canonical base64 between bytes: standard letters, padded, no white space, no stray bits
// (spec/wire.md §4.1). Short values are converted in place; long ones go through the runtime.

const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const PAD = 0x3d;
/** Bytes from which on the runtime's conversion is cheaper than a loop. */
const LONG_BYTES = 1024;

const texts = new TextEncoder();
const ENCODE: Uint8Array = texts.encode(LETTERS);
/** Bits of a letter in each place of a group of four; negative = not a letter. */
const FIRST: Int32Array = new Int32Array(256).fill(-1);
const SECOND: Int32Array = new Int32Array(256).fill(-1);
const THIRD: Int32Array = new Int32Array(256).fill(-1);
const FOURTH: Int32Array = new Int32Array(256).fill(-1);
for (let value = 0; value < 64; value++) {
  const letter = ENCODE[value]!;
  FIRST[letter] = value << 18;
  SECOND[letter] = value << 12;
  THIRD[letter] = value << 6;
  FOURTH[letter] = value;
}

const latin1 = new TextDecoder("latin1");

/** Bytes that `bytes` bytes take as base64. */
export function base64Length(bytes: number): number {
  return Math.ceil(bytes / 3) * 4;
}

/** Writes `value` as base64 to `into` from `at` on; answers where it ends. */
export function encodeBase64(value: Uint8Array, into: Uint8Array, at: number): number {
  const { length } = value;
  if (length >= LONG_BYTES) {
    const text = (value as Uint8Array & { toBase64(): string }).toBase64();
    return at + texts.encodeInto(text, into.subarray(at)).written;
  }
  let from = 0;
  for (const whole = length - length % 3; from < whole; from += 3) {
    const group = (value[from]! << 16) | (value[from + 1]! << 8) | value[from + 2]!;
    into[at] = ENCODE[group >> 18]!;
    into[at + 1] = ENCODE[(group >> 12) & 63]!;
    into[at + 2] = ENCODE[(group >> 6) & 63]!;
    into[at + 3] = ENCODE[group & 63]!;
    at += 4;
  }
  const rest = length - from;
  if (rest === 0) return at;
  const group = (value[from]! << 16) | ((rest === 2 ? value[from + 1]! : 0) << 8);
  into[at] = ENCODE[group >> 18]!;
  into[at + 1] = ENCODE[(group >> 12) & 63]!;
  into[at + 2] = rest === 2 ? ENCODE[(group >> 6) & 63]! : PAD;
  into[at + 3] = PAD;
  return at + 4;
}

/** Bytes that the base64 in `bytes` from `start` to `end` stands for; -1 = it cannot be base64. */
export function decodedLength(bytes: Uint8Array, start: number, end: number): number {
  const length = end - start;
  if (length === 0) return 0;
  if (length % 4 !== 0) return -1;
  const padding = bytes[end - 1] !== PAD ? 0 : bytes[end - 2] !== PAD ? 1 : 2;
  return length / 4 * 3 - padding;
}

/** Reads the base64 in `bytes` from `start` to `end`; `null` = it is not canonical. */
export function decodeBase64(bytes: Uint8Array, start: number, end: number): Uint8Array | null {
  const size = decodedLength(bytes, start, end);
  if (size < 0) return null;
  const value = new Uint8Array(size);
  return decodeBase64Into(bytes, start, end, value) ? value : null;
}

/**
 * Reads base64 into `value`, which is as long as `decodedLength` says; `false` = it is not
 * canonical, and `value` holds anything.
 */
export function decodeBase64Into(
  bytes: Uint8Array,
  start: number,
  end: number,
  value: Uint8Array,
): boolean {
  const length = end - start;
  if (length >= LONG_BYTES) return decodeLong(bytes.subarray(start, end), value);
  const rest = value.length % 3;
  let at = 0;
  let from = start;
  // One letter that is none makes everything negative: one check at the end is enough.
  let all = 0;
  for (const whole = rest === 0 ? end : end - 4; from < whole; from += 4) {
    const group = FIRST[bytes[from]!]! | SECOND[bytes[from + 1]!]! | THIRD[bytes[from + 2]!]! |
      FOURTH[bytes[from + 3]!]!;
    all |= group;
    value[at] = group >> 16;
    value[at + 1] = group >> 8;
    value[at + 2] = group;
    at += 3;
  }
  if (all < 0) return false;
  if (rest === 0) return true;
  const group = FIRST[bytes[from]!]! | SECOND[bytes[from + 1]!]! |
    (rest === 2 ? THIRD[bytes[from + 2]!]! : 0);
  if (group < 0 || (group & (rest === 2 ? 0xff : 0xffff)) !== 0) return false;
  value[at] = group >> 16;
  if (rest === 2) value[at + 1] = group >> 8;
  return true;
}

interface Base64Target {
  setFromBase64(
    text: string,
    options: { lastChunkHandling: "strict" },
  ): { readonly read: number; readonly written: number };
}

function decodeLong(text: Uint8Array, value: Uint8Array): boolean {
  // The runtime passes over white space, which is not canonical; nothing else makes it read as
  // much text for fewer bytes.
  try {
    const target = value as unknown as Base64Target;
    const { read, written } = target.setFromBase64(latin1.decode(text), {
      lastChunkHandling: "strict",
    });
    return read === text.length && written === value.length;
  } catch {
    return false;
  }
}
