// The streams and caches that this broker serves, as its catalog file lists them. The file is the
// authority: applying it adds what is new and removes what is gone. What may not change in place
// (width, routing, durability) is refused by name and stays as it was.

import type {
  CacheEnvironment,
  LogStore,
  RetentionPolicy,
  SegmentLog,
  ShardKey,
} from "@felix/storage";
import { StorageError } from "@felix/storage";
import { CacheRegistry, CoreError, StreamRegistry } from "../core/mod.ts";
import type { CacheDefinition, StreamDefinition } from "../core/mod.ts";
import type { StreamRegistryOptions } from "../core/mod.ts";
import type { CatalogFile } from "./catalog_file.ts";
import { DurableCaches } from "./durable_caches.ts";

/** What one broker serves. */
export interface Catalog {
  /** Ids of the tenants that exist. */
  readonly tenants: ReadonlySet<string>;
  readonly streams: StreamRegistry;
  readonly caches: CacheRegistry;
}

/** What applying a catalog file did. */
export interface CatalogChange {
  /** Names as `stream t1/default/events`. */
  readonly added: readonly string[];
  readonly removed: readonly string[];
  /** Definitions that were refused, each with why. */
  readonly refused: readonly { readonly name: string; readonly error: string }[];
}

/** Needs of a `FileCatalog`. */
export interface CatalogOptions {
  readonly streams: StreamRegistryOptions;
  /** Memory of all caches together, in bytes. */
  readonly cacheMemoryBytes: number;
  /** Where durable streams and caches are kept; `null`: durable streams are refused. */
  readonly store: LogStore | null;
  /** What caches on logs share. */
  readonly cacheEnvironment: CacheEnvironment;
  /** What is kept of a durable stream's shard. */
  readonly retention: RetentionPolicy;
}

/** A catalog that follows a file. */
export class FileCatalog implements Catalog {
  readonly streams: StreamRegistry;
  readonly caches: CacheRegistry;
  readonly #tenants = new Set<string>();
  readonly #store: LogStore | null;
  readonly #retention: RetentionPolicy;
  readonly #durableCaches: DurableCaches | null;

  /** An empty catalog. */
  constructor(options: CatalogOptions) {
    this.streams = new StreamRegistry(options.streams);
    this.caches = new CacheRegistry({ budgetBytes: options.cacheMemoryBytes });
    this.#store = options.store;
    this.#retention = options.retention;
    this.#durableCaches = options.store === null
      ? null
      : new DurableCaches(options.store, options.cacheEnvironment);
  }

  /** Ids of the tenants that exist. */
  get tenants(): ReadonlySet<string> {
    return this.#tenants;
  }

  /**
   * Makes the catalog what `file` lists. A durable stream or cache that is removed keeps what it
   * holds on disk, and has it again when it is listed again.
   */
  async apply(file: CatalogFile): Promise<CatalogChange> {
    const change = { added: [] as string[], removed: [] as string[], refused: [] as Refusal[] };
    await this.#removeStreams(file.streams, change.removed);
    await this.#removeCaches(file.caches, change.removed);
    for (const definition of file.streams) await this.#addStream(definition, change);
    for (const definition of file.caches) await this.#addCache(definition, change);
    this.#tenants.clear();
    for (const tenant of file.tenants) this.#tenants.add(tenant);
    return change;
  }

  /** Ends what runs in the background on the logs, before the store is closed. */
  async close(): Promise<void> {
    await this.#durableCaches?.stop();
  }

  async #removeStreams(wanted: readonly StreamDefinition[], removed: string[]): Promise<void> {
    const names = new Set(wanted.map(streamName));
    for (const { definition } of this.streams.list()) {
      if (names.has(streamName(definition))) continue;
      this.streams.remove(definition.tenant, definition.namespace, definition.stream);
      removed.push(streamName(definition));
      for (const key of shardKeys(definition)) await this.#store?.closeLog("streams", key);
    }
  }

  async #removeCaches(wanted: readonly CacheDefinition[], removed: string[]): Promise<void> {
    const names = new Set(wanted.map(cacheName));
    for (const { definition, logs } of this.caches.list()) {
      if (names.has(cacheName(definition))) continue;
      this.caches.remove(definition.tenant, definition.namespace, definition.cache);
      removed.push(cacheName(definition));
      if (logs !== null) await this.#durableCaches?.close(logs);
    }
  }

  async #addStream(definition: StreamDefinition, change: Change): Promise<void> {
    const { tenant, namespace, stream } = definition;
    const name = streamName(definition);
    const known = this.streams.find(tenant, namespace, stream) !== undefined;
    try {
      const logs = known || !definition.durable ? [] : await this.#openLogs(definition);
      register(name, known, change, () => this.streams.register(definition, logs));
    } catch (error) {
      if (!(error instanceof StorageError)) throw error;
      change.refused.push({ name, error: error.message });
    }
  }

  async #openLogs(definition: StreamDefinition): Promise<SegmentLog[]> {
    const store = this.#store;
    if (store === null) return [];
    const logs: SegmentLog[] = [];
    for (const key of shardKeys(definition)) {
      logs.push(await store.openLog("streams", key, this.#retention));
    }
    return logs;
  }

  async #addCache(definition: CacheDefinition, change: Change): Promise<void> {
    const { tenant, namespace, cache } = definition;
    const name = cacheName(definition);
    const known = this.caches.find(tenant, namespace, cache) !== undefined;
    try {
      const logs = known ? null : await this.#durableCaches?.open(definition) ?? null;
      register(name, known, change, () => this.caches.register(definition, logs));
    } catch (error) {
      if (!(error instanceof StorageError)) throw error;
      change.refused.push({ name, error: error.message });
    }
  }
}

interface Refusal {
  readonly name: string;
  readonly error: string;
}

interface Change {
  readonly added: string[];
  readonly refused: Refusal[];
}

function register(name: string, known: boolean, change: Change, add: () => unknown): void {
  try {
    add();
    if (!known) change.added.push(name);
  } catch (error) {
    if (!(error instanceof CoreError) || error.code === "invariant_violated") throw error;
    change.refused.push({ name, error: error.message });
  }
}

function streamName(definition: StreamDefinition): string {
  return `stream ${definition.tenant}/${definition.namespace}/${definition.stream}`;
}

function cacheName(definition: CacheDefinition): string {
  return `cache ${definition.tenant}/${definition.namespace}/${definition.cache}`;
}

function shardKeys(definition: StreamDefinition): ShardKey[] {
  if (!definition.durable) return [];
  const { tenant, namespace, stream: name } = definition;
  return Array.from({ length: definition.shards }, (_, shard) => ({
    tenant,
    namespace,
    name,
    shard,
  }));
}
