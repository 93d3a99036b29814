// The caches of one broker: found like streams, of a width in shards, each in the one memory that
// they share or on logs of its own. A cache and a stream may share a name; they know nothing of
// each other.

import type { CacheLog, CounterLog } from "@felix/storage";
import { CacheMemory, CacheStore } from "./cache_store.ts";
import { CoreError } from "./core_error.ts";
import { checkScope, checkShards, scopeKey } from "./scope.ts";

/** What a cache is declared to be (spec/semantics.md §6). */
export interface CacheDefinition {
  readonly tenant: string;
  readonly namespace: string;
  readonly cache: string;
  /** Width, 1 to 1024. */
  readonly shards: number;
}

/** What a cache on logs has open. */
export interface CacheLogs {
  /** Its shards by index. */
  readonly shards: readonly CacheLog[];
  /** The counters of a shard, opened when they are first wanted. */
  counters(shard: number): Promise<CounterLog>;
}

/** A registered cache. */
export class Cache {
  /** Its shards by index; none when it is on logs. */
  readonly shards: CacheStore[] = [];
  /** `false` once removed. */
  active = true;

  /** Made by `CacheRegistry.register`. `logs`: where it is kept; `null`: in memory. */
  constructor(readonly definition: CacheDefinition, readonly logs: CacheLogs | null) {}
}

/** The caches that one broker serves. */
export class CacheRegistry {
  /** The memory of all of them. */
  readonly memory: CacheMemory;
  readonly #caches = new Map<string, Cache>();
  /** Where the next sweep goes on: cache and shard in the order of registration. */
  #sweepCache = 0;
  #sweepShard = 0;

  /** `budgetBytes`: memory of all caches together. */
  constructor(options: { readonly budgetBytes: number }) {
    this.memory = new CacheMemory(options.budgetBytes);
  }

  /**
   * Registers a cache, or answers the one that already has this very definition. `logs`: where it
   * is kept; without them it is in memory.
   *
   * @throws {CoreError} `invalid_definition`, or `definition_changed` for another width.
   */
  register(definition: CacheDefinition, logs: CacheLogs | null = null): Cache {
    const { tenant, namespace, cache: name, shards } = definition;
    checkScope(tenant, namespace, name);
    checkShards(shards);
    const key = scopeKey(tenant, namespace, name);
    const known = this.#caches.get(key);
    if (known !== undefined) {
      if (known.definition.shards === shards) return known;
      const message = `cache ${tenant}/${namespace}/${name} exists with another width`;
      throw new CoreError("definition_changed", message);
    }
    const cache = new Cache({ ...definition }, logs);
    if (logs === null) {
      for (let index = 0; index < shards; index++) cache.shards.push(new CacheStore(this.memory));
    }
    this.#caches.set(key, cache);
    return cache;
  }

  /** Removes a cache and its entries and answers it; `undefined` if there is none. */
  remove(tenant: string, namespace: string, cache: string): Cache | undefined {
    const key = scopeKey(tenant, namespace, cache);
    const removed = this.#caches.get(key);
    if (removed === undefined) return undefined;
    this.#caches.delete(key);
    removed.active = false;
    for (const store of removed.shards) store.clear();
    return removed;
  }

  /** The cache of this name. */
  find(tenant: string, namespace: string, cache: string): Cache | undefined {
    return this.#caches.get(scopeKey(tenant, namespace, cache));
  }

  /** Every cache, in order of registration. */
  list(): Cache[] {
    return [...this.#caches.values()];
  }

  /** Ends up to `maxEntries` entries of every shard on a log whose time has passed. */
  sweepLogs(wallMs: number, maxEntries: number): void {
    for (const { logs } of this.#caches.values()) {
      for (const shard of logs?.shards ?? []) shard.sweep(wallMs, maxEntries);
    }
  }

  /**
   * Sweeps one shard in memory a call, each in its turn: up to `maxEntries`. Answers how many it
   * removed.
   */
  sweep(wallMs: number, maxEntries: number): number {
    const caches = this.list();
    const cache = caches[this.#sweepCache];
    const store = cache?.shards[this.#sweepShard];
    if (store === undefined) {
      this.#sweepShard = 0;
      this.#sweepCache = this.#sweepCache + 1 < caches.length ? this.#sweepCache + 1 : 0;
      return 0;
    }
    this.#sweepShard++;
    return store.sweep(wallMs, maxEntries);
  }
}
