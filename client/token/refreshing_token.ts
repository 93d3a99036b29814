// A token that is fetched when first needed and replaced before it ends. The rule: callers that
// come together share one fetch, and a fetch that fails does not take away a token that still holds
// (spec/client.md §14).

import { refreshAtMs, tokenLife } from "./token_life.ts";
import type { TokenProvider } from "./token_provider.ts";

/** Settings of {@link refreshingToken}. */
export interface RefreshingTokenOptions {
  /** Fetches a token. The signal fires when nobody waits for it any more. */
  readonly fetch: (options: { signal: AbortSignal }) => Promise<string>;
  /** Token to begin with. */
  readonly initial?: string;
  /** Milliseconds until a failed fetch is tried again while the token is valid; default 5000. */
  readonly retryAfterMs?: number;
  /** Milliseconds since the Unix epoch; default `Date.now`. */
  readonly now?: () => number;
  /** Told after each fetch: the new token's end, or why there is none. */
  readonly onRefresh?: (info: { expiresAt: Date | null; error?: Error }) => void;
}

interface Fetching {
  readonly result: Promise<string>;
  readonly abort: AbortController;
  waiting: number;
}

class RefreshingToken implements TokenProvider {
  readonly #options: RefreshingTokenOptions;
  readonly #now: () => number;
  #held: string | null = null;
  #expiresMs = Infinity;
  #refreshMs = Infinity;
  #fetching: Fetching | null = null;

  constructor(options: RefreshingTokenOptions) {
    this.#options = options;
    this.#now = options.now ?? Date.now;
    if (options.initial !== undefined) this.#hold(options.initial);
  }

  async token(options: { signal?: AbortSignal } = {}): Promise<string> {
    options.signal?.throwIfAborted();
    const held = this.#held;
    const now = this.#now();
    if (held !== null && now < this.#refreshMs) return held;
    try {
      return await this.#fetch(options.signal);
    } catch (error) {
      options.signal?.throwIfAborted();
      if (held === null || held !== this.#held || this.#now() >= this.#expiresMs) throw error;
      this.#refreshMs = this.#now() + (this.#options.retryAfterMs ?? 5000);
      return held;
    }
  }

  invalidate(rejected: string): void {
    if (this.#held === rejected) this.#held = null;
  }

  #hold(token: string): void {
    const life = tokenLife(token);
    this.#held = token;
    this.#expiresMs = life === null ? Infinity : life.expiresMs;
    this.#refreshMs = life === null ? Infinity : refreshAtMs(life, this.#now());
  }

  #begin(): Fetching {
    const abort = new AbortController();
    const result = this.#run(abort.signal).finally(() => {
      if (this.#fetching?.abort === abort) this.#fetching = null;
    });
    result.catch(() => undefined);
    return this.#fetching = { result, abort, waiting: 0 };
  }

  async #run(signal: AbortSignal): Promise<string> {
    try {
      const token = await this.#options.fetch({ signal });
      this.#hold(token);
      const life = tokenLife(token);
      this.#options.onRefresh?.({ expiresAt: life === null ? null : new Date(life.expiresMs) });
      return token;
    } catch (cause) {
      const error = cause instanceof Error ? cause : new Error(String(cause));
      if (!signal.aborted) this.#options.onRefresh?.({ expiresAt: null, error });
      throw cause;
    }
  }

  async #fetch(signal: AbortSignal | undefined): Promise<string> {
    const fetching = this.#fetching ?? this.#begin();
    fetching.waiting++;
    let give = (): void => undefined;
    try {
      if (signal === undefined) return await fetching.result;
      const aborted = new Promise<never>((_, reject) => {
        const onAbort = (): void => reject(signal.reason);
        signal.addEventListener("abort", onAbort, { once: true });
        give = () => signal.removeEventListener("abort", onAbort);
      });
      return await Promise.race([fetching.result, aborted]);
    } finally {
      give();
      if (--fetching.waiting === 0 && this.#fetching === fetching) fetching.abort.abort();
    }
  }
}

/**
 * A token that is fetched on first use and replaced once two thirds of its remaining life (the
 * JWT's `exp`, which is not verified here) have passed. A token whose `exp` cannot be read is kept
 * until the broker refuses it.
 *
 * @example
 * ```ts
 * import { refreshingToken } from "@felix/client/tokens";
 *
 * const provider = refreshingToken({
 *   fetch: async ({ signal }) => {
 *     const answer = await fetch("https://login.example/token", { signal });
 *     return await answer.text();
 *   },
 * });
 * ```
 */
export function refreshingToken(options: RefreshingTokenOptions): TokenProvider {
  return new RefreshingToken(options);
}
