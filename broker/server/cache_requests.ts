// Cache requests of one stream, answered in order (spec/wire.md §4.6): those to a cache in memory
// at once, before the next frame is looked at, those to a cache on logs when the log has done its
// part.

import { encodeMessage } from "@felix/wire";
import type { CacheDeleteMessage, CacheGetMessage, CachePutMessage } from "@felix/wire";
import { CacheLimitError } from "../core/mod.ts";
import type { Cache, CacheLogs, CacheStore } from "../core/mod.ts";
import { cacheShardOf } from "./cache_shard.ts";
import type { AnswerBudget } from "./answer_budget.ts";
import type { BrokerContext } from "./context.ts";
import { LogCacheRequests } from "./log_cache_requests.ts";
import type { LogCacheRequest } from "./log_cache_requests.ts";
import type { Peer } from "./negotiation.ts";
import { OrderedAnswers } from "./ordered_answers.ts";
import type { Outbox } from "./outbox.ts";
import { MAX_RECORD_BYTES } from "./publisher.ts";
import { QuickCache } from "./quick_cache.ts";
import { cacheNotFound, encodeError, REFUSAL } from "./refusal.ts";
import type { Refusal } from "./refusal.ts";

/** A cache request; what is not a get, put or delete needs a cache on logs. */
export type CacheRequest = LogCacheRequest;

/** The caches that one client stream talks to. */
export class CacheRequests {
  readonly #context: BrokerContext;
  readonly #peer: Peer;
  readonly #outbox: Outbox;
  // The cache of the last request and what was granted on it: most streams stay with one.
  #namespace = "";
  #name = "";
  #cache: Cache | undefined;
  #mayRead = false;
  #mayWrite = false;
  #quick: QuickCache | null = null;
  /** What caches on logs owe. */
  readonly answers: OrderedAnswers;
  readonly #logs: LogCacheRequests;

  constructor(context: BrokerContext, peer: Peer, outbox: Outbox, budget: AnswerBudget) {
    this.#context = context;
    this.#peer = peer;
    this.#outbox = outbox;
    this.answers = new OrderedAnswers(budget, () => context.turn.flushLater(outbox));
    this.#logs = new LogCacheRequests(context, peer, outbox, this.answers);
  }

  /** Serves a request that can be read in place; `false` = decode it and call `serve`. */
  serveQuick(payload: Uint8Array): boolean {
    const quick = this.#quick;
    const request = this.#context.quickRequest;
    const cache = this.#cache;
    if (quick === null || cache?.active !== true || !quick.read(payload, request)) return false;
    const { operation, key, value } = request;
    const tooLarge = operation === "put" && value!.length > MAX_RECORD_BYTES;
    if (tooLarge || !(operation === "get" ? this.#mayRead : this.#mayWrite)) return false;
    const shard = cacheShardOf(key, cache.definition.shards);
    if (cache.logs !== null) return this.#quickOnLog(cache.logs, shard, quick, payload);
    const store = cache.shards[shard]!;
    const now = this.#context.wallMs();
    const out = this.#outbox.writer;
    if (operation === "get") {
      quick.answerValue(out, payload, request, this.#get(store, key, now));
    } else if (operation === "delete") {
      this.#context.metrics.cache.deletes++;
      quick.answerValue(out, payload, request, store.delete(key, now));
    } else {
      if (!this.#store(store, key, value!, null, now)) return false;
      quick.answerOk(out, payload, request);
    }
    return true;
  }

  /** Serves one request. Answers whether the stream goes on. */
  serve(request: CacheRequest): boolean {
    if (request.tenant_id !== this.#peer.tenant) return this.#end(REFUSAL.tenantMismatch);
    this.#remember(request.namespace, request.cache);
    const reads = request.type === "cache_get" || request.type === "counter_get";
    if (!(reads ? this.#mayRead : this.#mayWrite)) return this.#end(REFUSAL.forbidden);
    const cache = this.#cache;
    if (cache === undefined) {
      this.#fail(cacheNotFound(request.tenant_id, request.namespace, request.cache));
    } else {
      const shard = cacheShardOf(request.key, cache.definition.shards);
      if (cache.logs === null) this.#serve(request, cache.shards[shard]!);
      else this.#serveOnLog(request, cache.logs, shard);
    }
    return request.request_id !== undefined;
  }

  #quickOnLog(
    logs: CacheLogs,
    shard: number,
    quick: QuickCache,
    payload: Uint8Array,
  ): boolean {
    const request = this.#context.quickRequest;
    const log = logs.shards[shard]!;
    if (request.operation === "put") {
      this.#logs.put(log, request.key, request.value!, quick.requestId(payload, request));
      return true;
    }
    if (request.operation !== "get") return false;
    const found = this.#logs.quickValue(log, request.key);
    if (found === undefined) return false;
    quick.answerValue(this.#outbox.writer, payload, request, found.value, found.version);
    return true;
  }

  #serveOnLog(request: CacheRequest, logs: CacheLogs, shard: number): void {
    if ("value" in request && request.value.length > MAX_RECORD_BYTES) {
      const message = "cache put not served: the value is too large";
      return this.#fail({ code: "limit_exceeded", message });
    }
    this.#logs.serve(request, logs.shards[shard]!, () => logs.counters(shard));
  }

  #serve(request: CacheRequest, store: CacheStore): void {
    const now = this.#context.wallMs();
    switch (request.type) {
      case "cache_get":
        return this.#value(request, this.#get(store, request.key, now));
      case "cache_delete":
        this.#context.metrics.cache.deletes++;
        return this.#value(request, store.delete(request.key, now));
      case "cache_put":
        return this.#put(request, store, now);
      default: {
        // A broker with storage keeps every cache on logs, and only such a broker advertises these.
        const message = `${request.type} not served: the cache is in memory`;
        return this.#fail({ code: "invalid_request", message });
      }
    }
  }

  #get(store: CacheStore, key: string, now: number): Uint8Array | null {
    const { cache } = this.#context.metrics;
    const value = store.get(key, now);
    cache.gets++;
    if (value === null) cache.misses++;
    else cache.hits++;
    return value;
  }

  /** Stores a value; `false` = it can never fit. */
  #store(
    store: CacheStore,
    key: string,
    value: Uint8Array,
    ttlMs: number | null,
    now: number,
  ): boolean {
    try {
      store.put(key, value, ttlMs, now);
    } catch (error) {
      if (error instanceof CacheLimitError) return false;
      throw error;
    }
    this.#context.metrics.cache.puts++;
    return true;
  }

  #put({ key, value, ttl_ms, request_id }: CachePutMessage, store: CacheStore, now: number): void {
    const ttlMs = ttl_ms === null ? null : Number(ttl_ms);
    if (value.length > MAX_RECORD_BYTES || !this.#store(store, key, value, ttlMs, now)) {
      const message = "cache put not served: the value is too large";
      return this.#fail({ code: "limit_exceeded", message });
    }
    const out = this.#outbox.writer;
    if (request_id === undefined) encodeMessage({ type: "ok" }, out);
    else encodeMessage({ type: "cache_ok", request_id }, out);
  }

  #value(request: CacheGetMessage | CacheDeleteMessage, value: Uint8Array | null): void {
    const { tenant_id, namespace, cache, key, request_id } = request;
    encodeMessage(
      request_id === undefined
        ? { type: "cache_value", tenant_id, namespace, cache, key, value }
        : { type: "cache_value", tenant_id, namespace, cache, key, value, request_id },
      this.#outbox.writer,
    );
  }

  #remember(namespace: string, name: string): void {
    if (namespace === this.#namespace && name === this.#name && this.#cache?.active) return;
    const { tenant, grants } = this.#peer;
    const object = `cache:${tenant}/${namespace}/${name}`;
    this.#namespace = namespace;
    this.#name = name;
    this.#cache = this.#context.catalog.caches.find(tenant, namespace, name);
    this.#mayRead = grants.allows("cache.read", object);
    this.#mayWrite = grants.allows("cache.write", object);
    this.#quick = new QuickCache(tenant, namespace, name);
  }

  #fail(refusal: Refusal): void {
    this.#context.metrics.cache.failed++;
    encodeError(refusal, this.#peer.readsCodes, this.#outbox.writer);
  }

  #end(refusal: Refusal): false {
    encodeError(refusal, this.#peer.readsCodes, this.#outbox.writer);
    return false;
  }
}
