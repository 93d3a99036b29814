// How a JSON message is described: one table a message, members in the order they are written.
// Decoder, encoder and the property test all follow the tables, so none can forget a member.

/** A value of one shape. */
export type JsonShape =
  | { readonly kind: "text" | "bytes" | "bool" | "json" | "u64" | "i64" }
  | { readonly kind: "uint"; readonly max: number }
  | { readonly kind: "word"; readonly words: readonly string[] }
  | { readonly kind: "list"; readonly of: JsonShape }
  | { readonly kind: "object"; readonly members: readonly JsonMember[] }
  /** A word, or an object of exactly one member. */
  | {
    readonly kind: "choice";
    readonly words: readonly string[];
    readonly members: readonly JsonMember[];
  }
  /** One of several objects, told apart by the word in the member `tag`. */
  | {
    readonly kind: "tagged";
    readonly tag: string;
    readonly variants: Readonly<Record<string, readonly JsonMember[]>>;
  };

/** A member of an object. */
export interface JsonMember {
  readonly name: string;
  /** `,"name":`, as every encoder writes it. */
  readonly lead: Uint8Array;
  readonly shape: JsonShape;
  /**
   * `required`: malformed when absent or `null`. `optional`: left out when unset; `null` reads as
   * absent. `nullable`: always written; absent reads as `null`. `present`: always written, perhaps
   * as `null`; malformed when absent. `default`: `value` when absent; `null` is malformed.
   */
  readonly presence: "required" | "optional" | "nullable" | "present" | "default";
  /** What an absent member with a default reads as. */
  readonly value?: unknown;
  /** Whether a member with a default is written at its default. */
  readonly always?: boolean;
}

/** A message: its type and members. */
export interface MessageSchema {
  readonly type: string;
  /** `{"type":"…"`, as every encoder writes it. */
  readonly start: Uint8Array;
  readonly members: readonly JsonMember[];
}

/** The default of a list. Defaults are shared by all messages, so nobody may change them. */
export const NONE: readonly never[] = Object.freeze([]);
/** Text. */
export const TEXT: JsonShape = { kind: "text" };
/** Bytes, as base64. */
export const BYTES: JsonShape = { kind: "bytes" };
/** A boolean. */
export const BOOL: JsonShape = { kind: "bool" };
/** Any JSON value. */
export const JSON_VALUE: JsonShape = { kind: "json" };
/** An integer of 16 bits. */
export const U16: JsonShape = { kind: "uint", max: 0xffff };
/** An integer of 32 bits. */
export const U32: JsonShape = { kind: "uint", max: 0xffff_ffff };
/** An integer of 64 bits, a `bigint`. */
export const U64: JsonShape = { kind: "u64" };
/** A signed integer of 64 bits, a `bigint`. */
export const I64: JsonShape = { kind: "i64" };

/** One of these words. */
export function word(...words: readonly string[]): JsonShape {
  return { kind: "word", words };
}

/** A list. */
export function list(of: JsonShape): JsonShape {
  return { kind: "list", of };
}

/** An object. */
export function object(...members: readonly JsonMember[]): JsonShape {
  return { kind: "object", members };
}

const texts = new TextEncoder();

function member(
  name: string,
  shape: JsonShape,
  presence: JsonMember["presence"],
  fallback: Pick<JsonMember, "value" | "always"> = {},
): JsonMember {
  return { name, lead: texts.encode(`,"${name}":`), shape, presence, ...fallback };
}

/** A required member. */
export function required(name: string, shape: JsonShape): JsonMember {
  return member(name, shape, "required");
}

/** A member that is left out when unset. */
export function optional(name: string, shape: JsonShape): JsonMember {
  return member(name, shape, "optional");
}

/** A member that is always written, as `null` when unset. */
export function nullable(name: string, shape: JsonShape): JsonMember {
  return member(name, shape, "nullable");
}

/** A member that is always there, perhaps as `null`. */
export function present(name: string, shape: JsonShape): JsonMember {
  return member(name, shape, "present");
}

/** A member that is always written and has a default for readers. */
export function defaulted(name: string, shape: JsonShape, value: unknown): JsonMember {
  return member(name, shape, "default", { value, always: true });
}

/** A member that is left out at its default. */
export function omitted(name: string, shape: JsonShape, value: unknown): JsonMember {
  return member(name, shape, "default", { value, always: false });
}

/** A message. */
export function message(type: string, ...members: readonly JsonMember[]): MessageSchema {
  return { type, start: texts.encode(`{"type":"${type}"`), members };
}
