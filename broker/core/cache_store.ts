// The entries of one cache shard in memory: last write wins, expiry is absolute and looked at on
// every read (spec/semantics.md §6.1, §6.2). All shards of a broker share one `CacheMemory`, which
// is never exceeded (B11): the entry used least recently, in whichever shard, makes room for a new
// one.

import { CacheLimitError, invariant } from "./core_error.ts";

/** What an entry costs besides its key and value: map slot, links and views. */
export const ENTRY_OVERHEAD_BYTES = 160;

/** One entry, linked into the order of use of its memory. */
export class CacheEntry {
  /** The entry used next after this one. */
  newer: CacheEntry | null = null;
  /** The entry used last before this one. */
  older: CacheEntry | null = null;
  /** Milliseconds since the Unix epoch; 0 = never. */
  expiresAtMs = 0;

  /** An entry of `store`; `value` is its own. */
  constructor(
    readonly store: CacheStore,
    readonly key: string,
    readonly value: Uint8Array,
  ) {}

  /** What it costs. */
  get bytes(): number {
    return costOf(this.key, this.value);
  }
}

/** The memory of all caches of one broker. */
export class CacheMemory {
  /** Bytes of all entries. */
  bytes = 0;
  /** Entries that made room for others. */
  evicted = 0;
  /** Entries removed because their time had passed. */
  expired = 0;
  #newest: CacheEntry | null = null;
  #oldest: CacheEntry | null = null;

  /** `budgetBytes`: 0 or more. */
  constructor(readonly budgetBytes: number) {}

  /** Counts `entry` in as the one used last; for `CacheStore`. */
  add(entry: CacheEntry): void {
    this.bytes += entry.bytes;
    invariant(this.bytes <= this.budgetBytes, "B11: the caches stay within their memory");
    this.#link(entry);
  }

  /** Counts `entry` out; for `CacheStore`. */
  remove(entry: CacheEntry): void {
    this.bytes -= entry.bytes;
    invariant(this.bytes >= 0, "B11: an entry is counted out once");
    this.#unlink(entry);
  }

  /** Marks `entry` as the one used last; for `CacheStore`. */
  use(entry: CacheEntry): void {
    if (this.#newest === entry) return;
    this.#unlink(entry);
    this.#link(entry);
  }

  /** Evicts the entries used least recently until `bytes` more fit; for `CacheStore`. */
  makeRoom(bytes: number): void {
    if (bytes > this.budgetBytes) {
      const message = `an entry of ${bytes} bytes exceeds the ${this.budgetBytes} of all caches`;
      throw new CacheLimitError(message);
    }
    while (this.bytes + bytes > this.budgetBytes) {
      const oldest = this.#oldest;
      invariant(oldest !== null, "B11: what is counted is held by an entry");
      this.evicted++;
      oldest.store.forget(oldest);
    }
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

/** One shard of one cache. */
export class CacheStore {
  readonly #memory: CacheMemory;
  readonly #entries = new Map<string, CacheEntry>();
  #sweep: MapIterator<CacheEntry> | null = null;
  /** Entries that expire; without any a sweep has nothing to do. */
  #mortal = 0;
  #bytes = 0;

  /** `memory` is shared by every store of the broker. */
  constructor(memory: CacheMemory) {
    this.#memory = memory;
  }

  /** Entries held, expired ones that nobody has met yet included. */
  get size(): number {
    return this.#entries.size;
  }

  /** Bytes that they cost. */
  get bytes(): number {
    return this.#bytes;
  }

  /**
   * Stores a copy of `value`. `ttlMs`: life in milliseconds, 0 = it has passed at once, `null` = no
   * end; it replaces the one that the key had. `wallMs`: milliseconds since the Unix epoch.
   *
   * @throws {CacheLimitError} when the entry can never fit; what the key had stays.
   */
  put(key: string, value: Uint8Array, ttlMs: number | null, wallMs: number): void {
    const expiresAtMs = ttlMs === null ? 0 : Math.max(1, wallMs + ttlMs);
    const known = this.#entries.get(key);
    if (known !== undefined && known.value.length === value.length) {
      known.value.set(value);
      this.#setExpiry(known, expiresAtMs);
      this.#memory.use(known);
      return;
    }
    const bytes = costOf(key, value);
    // The key's own old entry makes room first, but only once it is sure that the new one fits.
    if (bytes > this.#memory.budgetBytes) this.#memory.makeRoom(bytes);
    if (known !== undefined) this.forget(known);
    this.#memory.makeRoom(bytes);
    const entry = new CacheEntry(this, key, value.slice());
    this.#setExpiry(entry, expiresAtMs);
    this.#entries.set(key, entry);
    this.#bytes += bytes;
    this.#memory.add(entry);
  }

  /** The value; `null` if missing or expired. The view holds until this store's next change. */
  get(key: string, wallMs: number): Uint8Array | null {
    const entry = this.#entries.get(key);
    if (entry === undefined) return null;
    if (isExpired(entry, wallMs)) {
      this.#expire(entry);
      return null;
    }
    this.#memory.use(entry);
    return entry.value;
  }

  /** Removes the key. Answers the value it had; `null` if it was missing or expired. */
  delete(key: string, wallMs: number): Uint8Array | null {
    const entry = this.#entries.get(key);
    if (entry === undefined) return null;
    if (isExpired(entry, wallMs)) {
      this.#expire(entry);
      return null;
    }
    this.forget(entry);
    return entry.value;
  }

  /** Looks at up to `maxEntries` entries, going round. Answers how many expired ones it removed. */
  sweep(wallMs: number, maxEntries: number): number {
    let removed = 0;
    for (let looked = 0; looked < maxEntries && this.#mortal > 0; looked++) {
      this.#sweep ??= this.#entries.values();
      const { value: entry, done } = this.#sweep.next();
      if (done) {
        this.#sweep = null;
        break;
      }
      if (!isExpired(entry, wallMs)) continue;
      this.#expire(entry);
      removed++;
    }
    return removed;
  }

  /** Removes everything: the cache is gone. */
  clear(): void {
    for (const entry of [...this.#entries.values()]) this.forget(entry);
    this.#sweep = null;
  }

  /** Removes one entry; for `CacheMemory`. */
  forget(entry: CacheEntry): void {
    this.#setExpiry(entry, 0);
    this.#entries.delete(entry.key);
    this.#bytes -= entry.bytes;
    this.#memory.remove(entry);
  }

  #expire(entry: CacheEntry): void {
    this.#memory.expired++;
    this.forget(entry);
  }

  #setExpiry(entry: CacheEntry, expiresAtMs: number): void {
    if (entry.expiresAtMs !== 0) this.#mortal--;
    if (expiresAtMs !== 0) this.#mortal++;
    entry.expiresAtMs = expiresAtMs;
  }
}

function costOf(key: string, value: Uint8Array): number {
  // A string may take two bytes per unit.
  return ENTRY_OVERHEAD_BYTES + 2 * key.length + value.length;
}

function isExpired(entry: CacheEntry, wallMs: number): boolean {
  return entry.expiresAtMs !== 0 && entry.expiresAtMs <= wallMs;
}
