// Verdicts about tokens, so that the forty streams of one client cost one signature check
// (spec/wire.md §1.8). A verdict holds until its token expires or the keys it was made with change.
// Bounded in entries and in bytes of tokens; the one used longest ago goes first.

import type { Grants } from "./grants.ts";
import type { KeySet } from "./key_set.ts";
import { LEEWAY_SECONDS } from "./token.ts";

interface Verdict {
  readonly grants: Grants;
  readonly keySet: KeySet;
  readonly size: number;
}

/** Remembered verdicts. */
export class Verdicts {
  readonly #entries = new Map<string, Verdict>();
  #size = 0;

  constructor(readonly maxEntries: number, readonly maxSize: number) {}

  /** Verdicts held now. */
  get count(): number {
    return this.#entries.size;
  }

  /** The grants of `token`, if they still hold with `keySet` at `nowSeconds`. */
  find(tenant: string, token: string, keySet: KeySet, nowSeconds: number): Grants | null {
    const key = keyOf(tenant, token);
    const verdict = this.#entries.get(key);
    if (verdict === undefined) return null;
    const lives = nowSeconds <= verdict.grants.expiresAtSeconds + LEEWAY_SECONDS;
    this.#entries.delete(key);
    if (!lives || verdict.keySet !== keySet) {
      this.#size -= verdict.size;
      return null;
    }
    this.#entries.set(key, verdict);
    return verdict.grants;
  }

  /** Remembers that `token` was verified with `keySet`. */
  add(tenant: string, token: string, keySet: KeySet, grants: Grants): void {
    const key = keyOf(tenant, token);
    this.#drop(key);
    this.#entries.set(key, { grants, keySet, size: key.length });
    this.#size += key.length;
    for (const oldest of this.#entries.keys()) {
      if (this.#entries.size <= this.maxEntries && this.#size <= this.maxSize) break;
      this.#drop(oldest);
    }
  }

  #drop(key: string): void {
    this.#size -= this.#entries.get(key)?.size ?? 0;
    this.#entries.delete(key);
  }
}

/** A tenant id has no line break, so two pairs never share a key. */
function keyOf(tenant: string, token: string): string {
  return `${tenant}\n${token}`;
}
