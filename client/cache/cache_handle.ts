// A cache as the application holds it. A miss is `null`, never an error (spec/client.md §9).
// Arguments are checked here, before a request exists.

import { fromUtf8, requireName, toBytes } from "../bytes.ts";
import { CallGuard, checkTimeout } from "../call_guard.ts";
import { InvalidArgumentError, UnsupportedError } from "../failure/classes.ts";
import type { ClientCore } from "../link/client_core.ts";
import { withRetries } from "../link/retrier.ts";
import type { Queries } from "../routing/queries.ts";
import type { BytesLike, CallOptions } from "../types.ts";
import { operationOf } from "./cache_call.ts";
import type { CacheRequest, CacheScope } from "./cache_call.ts";
import type { CacheEngine } from "./cache_engine.ts";
import { LiveMirror, systemClock } from "./cache_mirror.ts";
import type { CacheMirror, MirrorClock } from "./cache_mirror.ts";
import { resolveWatch } from "./watch_options.ts";
import type { CacheWatch, FeedItem, WatchItem, WatchOptions } from "./watch_types.ts";
import type { Watches } from "./watches.ts";

/** Milliseconds that a watch may be interrupted. */
const RESUME_DEADLINE_MS = 30_000;

/** Settings of a cache write. */
export interface CacheWriteOptions extends CallOptions {
  /**
   * Send it again when its outcome is unknown; default false. Harmless unless another writer comes
   * in between; a repeated `delete` may then answer `null`.
   */
  readonly idempotentRetry?: boolean;
}

/** Settings of `put`. */
export interface CachePutOptions extends CacheWriteOptions {
  /** Milliseconds until the entry expires, 1 or more; none: it does not. */
  readonly ttlMs?: number;
}

/** A cache. */
export interface CacheHandle {
  /** Its namespace. */
  readonly namespace: string;
  /** Its name. */
  readonly name: string;
  /**
   * Stores a value.
   *
   * @example
   * ```ts
   * import type { FelixClient } from "@felix/client";
   *
   * async function remember(client: FelixClient): Promise<string | null> {
   *   const sessions = client.cache("sessions");
   *   await sessions.put("user-7", "active", { ttlMs: 60_000 });
   *   return await sessions.getText("user-7");
   * }
   * ```
   * @throws {OutcomeUnknownError} it may have been stored; it was not sent again
   */
  put(key: string, value: BytesLike, options?: CachePutOptions): Promise<void>;
  /** The value of a key; `null` when there is none (any more). */
  get(key: string, options?: CallOptions): Promise<Uint8Array | null>;
  /** The value of a key as UTF-8 text. */
  getText(key: string, options?: CallOptions): Promise<string | null>;
  /** Removes a key and answers the value it had. */
  delete(key: string, options?: CacheWriteOptions): Promise<Uint8Array | null>;
  /** The values of several keys, asked for at once; keys without a value are left out. */
  getMany(keys: readonly string[], options?: CallOptions): Promise<Map<string, Uint8Array>>;
  /**
   * Watches a key or a prefix.
   *
   * @example
   * ```ts
   * import type { FelixClient } from "@felix/client";
   *
   * async function follow(client: FelixClient): Promise<void> {
   *   const sessions = client.cache("sessions");
   *   await using watch = await sessions.watch({ prefix: "user-", retained: true });
   *   for await (const item of watch) {
   *     if (item.type === "change") console.log(item.key, item.value ?? "removed");
   *     if (item.type === "shardClosed") throw item.error;
   *   }
   * }
   * ```
   * @throws {CursorError} `from` cannot be read
   * @throws {UnsupportedError} the broker has no watches, or not of this kind
   */
  watch(options: WatchOptions): Promise<CacheWatch>;
  /**
   * A copy of all keys that begin with `prefix`, kept up to date; resolves before it is complete,
   * see `ready`. Entries leave it when they expire by the clock of this machine.
   * @throws {UnsupportedError} the broker has no watches of current values
   */
  mirror(options: { readonly prefix: string } & CallOptions): Promise<CacheMirror>;
  /** Asks how many shards there are. */
  shards(options?: CallOptions): Promise<number>;
}

/** What a cache handle is made of. */
export interface CacheParts {
  readonly core: ClientCore;
  readonly engine: CacheEngine;
  readonly queries: Queries;
  readonly watches: Watches;
  /** What mirrors go by; default the clock of the machine. */
  readonly clock?: MirrorClock;
}

/** The handle behind the interface. */
export class FelixCache implements CacheHandle {
  readonly namespace: string;
  readonly name: string;
  readonly #core: ClientCore;
  readonly #engine: CacheEngine;
  readonly #queries: Queries;
  readonly #scope: CacheScope;
  readonly #watches: Watches;
  readonly #clock: MirrorClock;

  /** A handle for one cache. */
  constructor(parts: CacheParts, scope: CacheScope) {
    const { core, engine, queries, watches } = parts;
    this.namespace = scope.namespace;
    this.name = scope.cache;
    this.#core = core;
    this.#engine = engine;
    this.#queries = queries;
    this.#scope = scope;
    this.#watches = watches;
    this.#clock = parts.clock ?? systemClock;
  }

  async put(key: string, value: BytesLike, options: CachePutOptions = {}): Promise<void> {
    const { ttlMs } = options;
    if (ttlMs !== undefined && !(Number.isFinite(ttlMs) && ttlMs > 0)) {
      throw new InvalidArgumentError({
        message: `ttlMs must be positive, not ${ttlMs}`,
        operation: "cache.put",
      });
    }
    const bytes = toBytes(value, "cache.put");
    if (bytes.length * 4 / 3 > this.#core.settings.maxFrameBytes - 4096) {
      throw new InvalidArgumentError({
        message: `a value of ${bytes.length} bytes does not fit into a frame`,
        operation: "cache.put",
      });
    }
    await this.#ask({
      kind: "put",
      key,
      value: bytes,
      ttlMs: ttlMs === undefined ? null : Math.max(1, Math.round(ttlMs)),
      idempotentRetry: options.idempotentRetry ?? false,
      other: null,
    }, options);
  }

  get(key: string, options: CallOptions = {}): Promise<Uint8Array | null> {
    return this.#ask({
      kind: "get",
      key,
      value: null,
      ttlMs: null,
      idempotentRetry: true,
      other: null,
    }, options);
  }

  async getText(key: string, options: CallOptions = {}): Promise<string | null> {
    const value = await this.get(key, options);
    return value === null ? null : fromUtf8(value);
  }

  async delete(key: string, options: CacheWriteOptions = {}): Promise<Uint8Array | null> {
    if (!this.#queries.canAsk("cacheDelete")) {
      throw new UnsupportedError({
        message: "the broker cannot delete cache entries",
        operation: "cache.delete",
        resource: this.#scope.resource,
        feature: "cacheDelete",
      });
    }
    return await this.#ask({
      kind: "delete",
      key,
      value: null,
      ttlMs: null,
      idempotentRetry: options.idempotentRetry ?? false,
      other: null,
    }, options);
  }

  async getMany(
    keys: readonly string[],
    options: CallOptions = {},
  ): Promise<Map<string, Uint8Array>> {
    const unique = [...new Set(keys)];
    const values = await Promise.all(unique.map((key) => this.get(key, options)));
    const found = new Map<string, Uint8Array>();
    for (const [index, value] of values.entries()) {
      if (value !== null) found.set(unique[index]!, value);
    }
    return found;
  }

  async watch(options: WatchOptions): Promise<CacheWatch> {
    const passes = (item: FeedItem): item is WatchItem => item.type !== "snapshotEnd";
    const purpose = { passes, resumeDeadlineMs: RESUME_DEADLINE_MS };
    const resolved = resolveWatch(options);
    return await this.#watches.open(this.#scope.route, resolved, purpose, options);
  }

  async mirror(options: { readonly prefix: string } & CallOptions): Promise<CacheMirror> {
    const passes = (item: FeedItem): item is FeedItem => item !== null;
    // A mirror that is behind for a while is of more use than none.
    const purpose = { passes, resumeDeadlineMs: Infinity };
    const resolved = resolveWatch({ prefix: options.prefix, retained: true });
    const watch = await this.#watches.open(this.#scope.route, resolved, purpose, options);
    return new LiveMirror(watch, this.#clock);
  }

  async shards(options: CallOptions = {}): Promise<number> {
    const operation = "cache.shards";
    const { resource } = this.#scope;
    const guard = new CallGuard(operation, options, this.#core.settings.requestTimeoutMs);
    try {
      return await withRetries(
        this.#core,
        { operation, resource, guard },
        () => this.#queries.cacheShards(this.namespace, this.name),
      );
    } finally {
      guard.dispose();
    }
  }

  #ask(request: CacheRequest, options: CallOptions): Promise<Uint8Array | null> {
    const operation = operationOf(request.kind);
    try {
      requireName(request.key, "key", operation);
      checkTimeout(options.timeoutMs, operation);
    } catch (error) {
      return Promise.reject(error);
    }
    // The stream lets no other answer than a `cache_value` or `cache_ok` through to these.
    return this.#engine.request(this.#scope, request, options) as Promise<Uint8Array | null>;
  }
}
