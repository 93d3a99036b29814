// Where access tokens come from. The rule: a token is asked for at every stream that
// authenticates, so providers keep theirs, and a token never shows in a log, an error or a hook.

/** Gives the access token of a stream that authenticates. */
export interface TokenProvider {
  /** The token to present; called for every stream, so providers cache. */
  token(options?: { signal?: AbortSignal }): Promise<string>;
  /** Tells the provider that the broker refused `rejected`. */
  invalidate?(rejected: string): void;
}

/**
 * A token that never changes.
 *
 * @example
 * ```ts
 * import { staticToken } from "@felix/client/tokens";
 *
 * const provider = staticToken("eyJhbGciOiJFZERTQSJ9.e30.c2ln");
 * ```
 */
export function staticToken(token: string): TokenProvider {
  return { token: () => Promise.resolve(token) };
}
