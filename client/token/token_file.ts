// A token kept in a file that something else rotates. The rule: the file is read again when the
// time is up or the broker refused what was in it, and a failed read keeps the last token.

import { readTextFile } from "../runtime/deno.ts";
import type { TokenProvider } from "./token_provider.ts";

/** Settings of {@link tokenFile}. */
export interface TokenFileOptions {
  /** Milliseconds after which the file is read again; default 30 000. */
  readonly rereadMs?: number;
  /** Milliseconds since any fixed point; default `Date.now`. */
  readonly now?: () => number;
}

/**
 * A token read from a file (white space around it is dropped). Needs `--allow-read` for it.
 *
 * @example
 * ```ts
 * import { tokenFile } from "@felix/client/tokens";
 *
 * const provider = tokenFile("/run/secrets/felix-token", { rereadMs: 10_000 });
 * ```
 */
export function tokenFile(path: string | URL, options: TokenFileOptions = {}): TokenProvider {
  const rereadMs = options.rereadMs ?? 30_000;
  const now = options.now ?? Date.now;
  let held: string | null = null;
  let readMs = 0;
  let reading: Promise<string> | null = null;

  async function read(): Promise<string> {
    try {
      held = (await readTextFile(path)).trim();
    } catch (error) {
      if (held === null) throw error;
    } finally {
      reading = null;
    }
    readMs = now();
    return held;
  }

  return {
    token() {
      if (held !== null && now() - readMs < rereadMs) return Promise.resolve(held);
      return reading ??= read();
    },
    invalidate(rejected) {
      if (held === rejected) readMs = -Infinity;
    },
  };
}
