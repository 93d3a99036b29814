// Turns what callers pass as bytes into a view, without a copy where there is one already. What is
// neither bytes nor text is refused, and so is an empty name.

import type { BytesLike } from "./types.ts";
import { InvalidArgumentError } from "./failure/classes.ts";

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** The bytes of `value`; a view for binary input, UTF-8 for a string. */
export function toBytes(value: BytesLike, operation: string): Uint8Array {
  if (value instanceof Uint8Array) return value;
  if (typeof value === "string") return encoder.encode(value);
  if (value instanceof ArrayBuffer) return new Uint8Array(value);
  throw new InvalidArgumentError({
    message: "bytes must be a Uint8Array, an ArrayBuffer or a string",
    operation,
  });
}

/** Text of UTF-8 bytes. */
export function fromUtf8(bytes: Uint8Array): string {
  return decoder.decode(bytes);
}

/** Refuses an empty name. @throws {InvalidArgumentError} */
export function requireName(value: string, what: string, operation: string): string {
  if (typeof value === "string" && value.length > 0) return value;
  throw new InvalidArgumentError({ message: `${what} must not be empty`, operation });
}
