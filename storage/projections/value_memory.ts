// Values of cache entries that are held in memory so that a get need not read the log. Rule: the
// values held never cost more than the budget; the one used least recently goes first, and only
// costs a read when it is wanted again.

import type { CacheEntry } from "./cache_entry.ts";

/** What a held value costs besides its key and bytes. */
const OVERHEAD_BYTES = 160;

/** The memory for values that all cache logs of a broker share. */
export class ValueMemory {
  /** Bytes of the values held. */
  bytes = 0;
  #newest: CacheEntry | null = null;
  #oldest: CacheEntry | null = null;

  /** `budgetBytes`: 0 or more. */
  constructor(readonly budgetBytes: number) {}

  /** Holds `value` for `entry`, which has none, unless it alone is too large. */
  hold(entry: CacheEntry, value: Uint8Array): void {
    const cost = costOf(entry, value);
    if (cost > this.budgetBytes) return;
    while (this.bytes + cost > this.budgetBytes) this.drop(this.#oldest!);
    entry.value = value;
    this.bytes += cost;
    this.#link(entry);
  }

  /** `entry` has just been used. */
  use(entry: CacheEntry): void {
    if (entry === this.#newest || entry.value === null) return;
    this.#unlink(entry);
    this.#link(entry);
  }

  /** Lets go of the value of `entry`, if it is held. */
  drop(entry: CacheEntry): void {
    if (entry.value === null) return;
    this.bytes -= costOf(entry, entry.value);
    entry.value = null;
    this.#unlink(entry);
  }

  #link(entry: CacheEntry): void {
    entry.older = this.#newest;
    if (this.#newest !== null) this.#newest.newer = entry;
    this.#newest = entry;
    this.#oldest ??= entry;
  }

  #unlink(entry: CacheEntry): void {
    const { newer, older } = entry;
    if (newer === null) this.#newest = older;
    else newer.older = older;
    if (older === null) this.#oldest = newer;
    else older.newer = newer;
    entry.newer = null;
    entry.older = null;
  }
}

function costOf(entry: CacheEntry, value: Uint8Array): number {
  return OVERHEAD_BYTES + 2 * entry.key.length + value.length;
}
