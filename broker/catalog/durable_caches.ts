// The logs of caches: opened when a cache is registered, its counters when they are first wanted,
// closed when it is removed. All share one memory for values and one allowance for compaction.

import { CacheLog, CounterLog } from "@felix/storage";
import type { CacheEnvironment, LogKind, LogStore, ShardKey } from "@felix/storage";
import type { CacheDefinition, CacheLogs } from "../core/mod.ts";

class OpenCache implements CacheLogs {
  readonly shards: CacheLog[] = [];
  readonly #counters: (Promise<CounterLog> | undefined)[] = [];

  constructor(
    readonly store: LogStore,
    readonly environment: CacheEnvironment,
    readonly keys: readonly ShardKey[],
  ) {}

  counters(shard: number): Promise<CounterLog> {
    const known = this.#counters[shard];
    if (known !== undefined) return known;
    const opening = this.store.openLog("counters", this.keys[shard]!)
      .then((log) => CounterLog.open(log, this.environment));
    this.#counters[shard] = opening;
    // The next request tries again.
    opening.catch(() => delete this.#counters[shard]);
    return opening;
  }

  /** Ends watches and compactions. */
  async stop(): Promise<void> {
    for (const shard of this.shards) await shard.close();
    for (const opening of this.#counters) await opening?.then((log) => log.close(), () => {});
  }
}

/** The caches of one broker that are kept on logs. */
export class DurableCaches {
  readonly #store: LogStore;
  readonly #environment: CacheEnvironment;
  readonly #open = new Set<OpenCache>();

  constructor(store: LogStore, environment: CacheEnvironment) {
    this.#store = store;
    this.#environment = environment;
  }

  /** Opens a cache and builds its index. @throws {StorageError} and leaves nothing open */
  async open(definition: CacheDefinition): Promise<CacheLogs> {
    const cache = new OpenCache(this.#store, this.#environment, keysOf(definition));
    try {
      for (const key of cache.keys) {
        const log = await this.#store.openLog("caches", key);
        cache.shards.push(await CacheLog.open(log, this.#environment));
      }
    } catch (error) {
      await cache.stop();
      await this.#closeLogs("caches", cache.keys);
      throw error;
    }
    this.#open.add(cache);
    return cache;
  }

  /** Closes a cache; what it holds stays on disk. */
  async close(logs: CacheLogs): Promise<void> {
    const cache = [...this.#open].find((open) => open === logs);
    if (cache === undefined) return;
    this.#open.delete(cache);
    await cache.stop();
    await this.#closeLogs("caches", cache.keys);
    await this.#closeLogs("counters", cache.keys);
  }

  /** Ends watches and compactions, so that the logs can be closed. */
  async stop(): Promise<void> {
    for (const cache of this.#open) await cache.stop();
    this.#open.clear();
  }

  async #closeLogs(kind: LogKind, keys: readonly ShardKey[]): Promise<void> {
    for (const key of keys) await this.#store.closeLog(kind, key);
  }
}

function keysOf({ tenant, namespace, cache: name, shards }: CacheDefinition): ShardKey[] {
  return Array.from({ length: shards }, (_, shard) => ({ tenant, namespace, name, shard }));
}
