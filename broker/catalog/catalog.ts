// The streams and caches that this broker serves, as its catalog file lists them. The file is the
// authority: applying it adds what is new and removes what is gone. What may not change in place
// (width, routing, durability) is refused by name and stays as it was.

import { CacheRegistry, CoreError, StreamRegistry } from "../core/mod.ts";
import type { CacheDefinition, StreamDefinition } from "../core/mod.ts";
import type { StreamRegistryOptions } from "../core/mod.ts";
import type { CatalogFile } from "./catalog_file.ts";

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
}

/** A catalog that follows a file. */
export class FileCatalog implements Catalog {
  readonly streams: StreamRegistry;
  readonly caches: CacheRegistry;
  readonly #tenants = new Set<string>();

  /** An empty catalog. */
  constructor(options: CatalogOptions) {
    this.streams = new StreamRegistry(options.streams);
    this.caches = new CacheRegistry({ budgetBytes: options.cacheMemoryBytes });
  }

  /** Ids of the tenants that exist. */
  get tenants(): ReadonlySet<string> {
    return this.#tenants;
  }

  /** Makes the catalog what `file` lists. */
  apply(file: CatalogFile): CatalogChange {
    const change = { added: [] as string[], removed: [] as string[], refused: [] as Refusal[] };
    this.#removeStreams(file.streams, change.removed);
    this.#removeCaches(file.caches, change.removed);
    for (const definition of file.streams) this.#addStream(definition, change);
    for (const definition of file.caches) this.#addCache(definition, change);
    this.#tenants.clear();
    for (const tenant of file.tenants) this.#tenants.add(tenant);
    return change;
  }

  #removeStreams(wanted: readonly StreamDefinition[], removed: string[]): void {
    const names = new Set(wanted.map(streamName));
    for (const { definition } of this.streams.list()) {
      if (names.has(streamName(definition))) continue;
      this.streams.remove(definition.tenant, definition.namespace, definition.stream);
      removed.push(streamName(definition));
    }
  }

  #removeCaches(wanted: readonly CacheDefinition[], removed: string[]): void {
    const names = new Set(wanted.map(cacheName));
    for (const { definition } of this.caches.list()) {
      if (names.has(cacheName(definition))) continue;
      this.caches.remove(definition.tenant, definition.namespace, definition.cache);
      removed.push(cacheName(definition));
    }
  }

  #addStream(definition: StreamDefinition, change: Change): void {
    const { tenant, namespace, stream } = definition;
    const known = this.streams.find(tenant, namespace, stream) !== undefined;
    register(streamName(definition), known, change, () => this.streams.register(definition));
  }

  #addCache(definition: CacheDefinition, change: Change): void {
    const { tenant, namespace, cache } = definition;
    const known = this.caches.find(tenant, namespace, cache) !== undefined;
    register(cacheName(definition), known, change, () => this.caches.register(definition));
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
