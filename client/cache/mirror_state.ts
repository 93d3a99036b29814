// What a mirror holds: the entries, what of them is doubtful, when they expire. Pure: time comes
// in. The rule: an entry goes when its time has come, because a broker may say nothing when it
// lapses (spec/client.md §9).

import { ExpiryQueue } from "./expiry_queue.ts";
import type { CacheChangeItem } from "./watch_types.ts";

/** A key of a mirror changed. */
export interface CacheChange {
  /** The key. */
  readonly key: string;
  /** Its value now; `null` = none. */
  readonly value: Uint8Array | null;
  /** Its value before; `undefined` = none. */
  readonly previous: Uint8Array | undefined;
}

interface Entry {
  readonly value: Uint8Array;
  readonly offset: bigint;
  readonly shard: number;
  /** Milliseconds since the Unix epoch; `null` = never. */
  readonly expiresMs: number | null;
}

/** The entries of a mirror. */
export class MirrorState {
  readonly #changed: (change: CacheChange) => void;
  readonly #entries = new Map<string, Entry>();
  /** Keys of shards that start again and that have not come again, by shard. */
  readonly #doubtful = new Map<number, Set<string>>();
  readonly #expiries: ExpiryQueue;
  /** Entries that expire. */
  #expiring = 0;

  /** Empty; `changed` is told of each change after it was made. */
  constructor(changed: (change: CacheChange) => void) {
    this.#changed = changed;
    this.#expiries = new ExpiryQueue(({ key, atMs }) => this.#entries.get(key)?.expiresMs === atMs);
  }

  /** Number of entries. */
  get size(): number {
    return this.#entries.size;
  }

  /** When the next entry expires, in milliseconds since the Unix epoch; `null` = none does. */
  get nextExpiryMs(): number | null {
    return this.#expiries.peek()?.atMs ?? null;
  }

  /** The value of a key. */
  get(key: string): Uint8Array | undefined {
    return this.#entries.get(key)?.value;
  }

  /** All entries. */
  *entries(): IterableIterator<[string, Uint8Array]> {
    for (const [key, { value }] of this.#entries) yield [key, value];
  }

  /** Takes a change in. */
  apply(item: CacheChangeItem, nowMs: number): void {
    const { key, value, offset, shard } = item;
    this.#doubtful.get(shard)?.delete(key);
    const expiresMs = item.expiresAt?.getTime() ?? null;
    if (value === null || (expiresMs !== null && expiresMs <= nowMs)) return this.#remove(key);
    const before = this.#entries.get(key);
    if (before?.offset === offset) return;
    this.#put(key, { value, offset, shard, expiresMs }, before);
    this.#changed({ key, value, previous: before?.value });
  }

  /** A shard starts again from its current values. */
  restart(shard: number): void {
    const keys = [...this.#entries].filter(([, entry]) => entry.shard === shard);
    this.#doubtful.set(shard, new Set(keys.map(([key]) => key)));
  }

  /** All current values of a shard have come: what did not come again is gone. */
  complete(shard: number): void {
    const gone = this.#doubtful.get(shard) ?? [];
    this.#doubtful.delete(shard);
    for (const key of gone) this.#remove(key);
  }

  /** Removes what has expired. */
  expire(nowMs: number): void {
    for (let due = this.#expiries.due(nowMs); due !== undefined;) {
      this.#remove(due.key);
      due = this.#expiries.due(nowMs);
    }
  }

  #put(key: string, entry: Entry, before: Entry | undefined): void {
    const { expiresMs } = entry;
    if (before !== undefined && before.expiresMs !== null) this.#expiring--;
    this.#entries.set(key, entry);
    if (expiresMs === null) return;
    this.#expiring++;
    if (before?.expiresMs !== expiresMs) {
      this.#expiries.add({ key, atMs: expiresMs }, this.#expiring);
    }
  }

  #remove(key: string): void {
    const before = this.#entries.get(key);
    if (before === undefined) return;
    this.#entries.delete(key);
    if (before.expiresMs !== null) this.#expiring--;
    this.#changed({ key, value: null, previous: before.value });
  }
}
