// The errors of the broker core: one class, one stable code per failure that a caller may meet, and
// the assertion that holds the invariants of README.md in production as well as in tests.

/** What went wrong. */
export type CoreErrorCode =
  | "durable_not_available"
  | "definition_changed"
  | "invalid_definition"
  | "invariant_violated";

/** A refused registration, or an invariant that did not hold. */
export class CoreError extends Error {
  override readonly name = "CoreError";

  /** `code` is stable; `message` is for people. */
  constructor(readonly code: CoreErrorCode, message: string) {
    super(message);
  }
}

/** Refuses an entry that can never fit the memory of the caches (`limit_exceeded`). */
export class CacheLimitError extends Error {
  override readonly name = "CacheLimitError";
  /** Stable code, as sent to a client. */
  readonly code = "limit_exceeded";
}

/** Throws unless `held`; `rule` names the invariant of README.md, as `B4: ...`. */
export function invariant(held: boolean, rule: string): asserts held {
  if (!held) throw new CoreError("invariant_violated", rule);
}
