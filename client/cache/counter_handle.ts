// The counters of a cache: sums of 64 bits that the broker keeps. The rule: an `add` that may have
// been applied is never sent again, because a second application would count twice
// (spec/client.md §10).

import { requireName } from "../bytes.ts";
import { checkTimeout } from "../call_guard.ts";
import { InvalidArgumentError } from "../failure/classes.ts";
import type { CallOptions } from "../types.ts";
import { operationOf } from "./cache_call.ts";
import type { CacheScope, OtherRequest } from "./cache_call.ts";
import type { CacheEngine } from "./cache_engine.ts";

const LEAST = -(2n ** 63n);
const MOST = 2n ** 63n - 1n;

/**
 * The counters of a cache. Values are signed integers of 64 bits. A counter and a value of the
 * cache under the same key have nothing to do with each other.
 */
export interface CounterHandle {
  /** Its namespace. */
  readonly namespace: string;
  /** Name of the cache. */
  readonly cache: string;
  /**
   * Adds `delta` and answers the sum with it.
   *
   * @example
   * ```ts
   * import type { FelixClient } from "@felix/client";
   *
   * async function count(client: FelixClient): Promise<bigint> {
   *   return await client.counters("sessions").add("logins", 1);
   * }
   * ```
   * @throws {InvalidArgumentError} `delta` is no safe integer, or as a bigint has over 64 bits
   * @throws {OutcomeUnknownError} it may have been added; it was not sent again
   * @throws {UnsupportedError} the broker keeps no counters
   */
  add(key: string, delta: bigint | number, options?: CallOptions): Promise<bigint>;
  /** The sum; `null` when the counter was never written. @throws {UnsupportedError} */
  get(key: string, options?: CallOptions): Promise<bigint | null>;
}

/** The handle behind the interface. */
export class FelixCounters implements CounterHandle {
  readonly namespace: string;
  readonly cache: string;
  readonly #tenant: string;
  readonly #engine: CacheEngine;
  readonly #scope: CacheScope;

  /** The counters of one cache. */
  constructor(tenant: string, engine: CacheEngine, scope: CacheScope) {
    this.namespace = scope.namespace;
    this.cache = scope.cache;
    this.#tenant = tenant;
    this.#engine = engine;
    this.#scope = scope;
  }

  async add(key: string, delta: bigint | number, options: CallOptions = {}): Promise<bigint> {
    const wide = checkedDelta(delta);
    const scope = this.#names(key);
    // The stream takes an answer without a sum for a breach of the protocol.
    return await this.#ask("counterAdd", key, {
      feature: "counters",
      message: (request_id) => ({ type: "counter_add", ...scope, delta: wide, request_id }),
    }, options) as bigint;
  }

  async get(key: string, options: CallOptions = {}): Promise<bigint | null> {
    const scope = this.#names(key);
    return await this.#ask("counterGet", key, {
      feature: "counters",
      message: (request_id) => ({ type: "counter_get", ...scope, request_id }),
    }, options);
  }

  #names(key: string): { tenant_id: string; namespace: string; cache: string; key: string } {
    return { tenant_id: this.#tenant, namespace: this.namespace, cache: this.cache, key };
  }

  async #ask(
    kind: "counterAdd" | "counterGet",
    key: string,
    other: OtherRequest,
    options: CallOptions,
  ): Promise<bigint | null> {
    requireName(key, "key", operationOf(kind));
    checkTimeout(options.timeoutMs, operationOf(kind));
    const request = { kind, key, value: null, ttlMs: null, idempotentRetry: false, other };
    // The stream lets no other answer than a `counter_value` through to these kinds.
    return await this.#engine.request(this.#scope, request, options) as bigint | null;
  }
}

function checkedDelta(delta: bigint | number): bigint {
  const fits = typeof delta === "bigint"
    ? delta >= LEAST && delta <= MOST
    : Number.isSafeInteger(delta);
  if (fits) return BigInt(delta);
  throw new InvalidArgumentError({
    message: typeof delta === "bigint"
      ? `delta must fit into 64 bits with a sign, not ${delta}`
      : `delta must be a safe integer or a bigint, not ${delta}`,
    operation: operationOf("counterAdd"),
  });
}
