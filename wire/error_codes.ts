// Error codes and retry classes, as text and as numbers (spec/wire.md §7). Both are open lists: a
// reader keeps a code it does not know and obeys its class; an unknown class reads as `fatal`.

/** What a client may do after an error (spec/wire.md §7.1). */
export type RetryClass = "retry" | "retry_after" | "redirect" | "outcome_unknown" | "fatal";

/** Codes of this version (spec/wire.md §7.2). */
export type ErrorCode =
  | "unauthenticated"
  | "forbidden"
  | "not_found"
  | "invalid_request"
  | "shard_unavailable"
  | "not_leader"
  | "quorum_timeout"
  | "leadership_lost"
  | "unacknowledged"
  | "overloaded"
  | "limit_exceeded"
  | "draining"
  | "internal"
  | "storage"
  | "stale_claim"
  | "revoked"
  | "stale_width"
  | "feature_not_enabled"
  | "stream_has_commits";

/** In the order of their numbers, from 1. */
const CODES: readonly ErrorCode[] = [
  "unauthenticated",
  "forbidden",
  "not_found",
  "invalid_request",
  "shard_unavailable",
  "not_leader",
  "quorum_timeout",
  "leadership_lost",
  "unacknowledged",
  "overloaded",
  "limit_exceeded",
  "draining",
  "internal",
  "storage",
  "stale_claim",
  "revoked",
  "stale_width",
  "feature_not_enabled",
  "stream_has_commits",
];

/** In the order of their bytes, from 1. */
const CLASSES: readonly RetryClass[] = [
  "retry",
  "retry_after",
  "redirect",
  "outcome_unknown",
  "fatal",
];

const NUMBERS: ReadonlyMap<string, number> = new Map(CODES.map((code, index) => [code, index + 1]));

/** The class that goes with a code unless something better is known. */
export const DEFAULT_RETRY: Readonly<Record<ErrorCode, RetryClass>> = {
  unauthenticated: "fatal",
  forbidden: "fatal",
  not_found: "retry_after",
  invalid_request: "fatal",
  shard_unavailable: "retry",
  not_leader: "redirect",
  quorum_timeout: "outcome_unknown",
  leadership_lost: "outcome_unknown",
  unacknowledged: "outcome_unknown",
  overloaded: "retry_after",
  limit_exceeded: "fatal",
  draining: "retry",
  internal: "outcome_unknown",
  storage: "outcome_unknown",
  stale_claim: "retry",
  revoked: "fatal",
  stale_width: "retry",
  feature_not_enabled: "fatal",
  stream_has_commits: "fatal",
};

/** The number of a code, also of `code_<n>`; `undefined` where it has none. */
export function codeNumber(code: string): number | undefined {
  const known = NUMBERS.get(code);
  if (known !== undefined) return known;
  const unknown = /^code_(\d{1,5})$/.exec(code);
  const number = unknown === null ? 0 : Number(unknown[1]);
  return number > CODES.length && number <= 0xffff ? number : undefined;
}

/** The code of a number; `code_<n>` where this version knows none. */
export function codeName(number: number): string {
  return CODES[number - 1] ?? `code_${number}`;
}

/** The byte of a retry class. */
export function retryByte(retry: RetryClass): number {
  return CLASSES.indexOf(retry) + 1;
}

/** The class of a byte; unknown bytes read as `fatal`. */
export function retryFromByte(byte: number): RetryClass {
  return CLASSES[byte - 1] ?? "fatal";
}

/** The class of a word; unknown words read as `fatal`. */
export function retryFromText(word: string | undefined): RetryClass {
  return CLASSES.find((known) => known === word) ?? "fatal";
}
