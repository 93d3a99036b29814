// Keys per tenant fetched over HTTP and kept for an hour (spec/auth.md §9.2). Callers of a tenant
// share a fetch, at most eight run at once, a failure is remembered for five seconds, and keys past
// their hour serve on while no newer ones can be fetched. Every table here has a bound.

import { AuthRefused } from "./grants.ts";
import type { AuthRefusal } from "./grants.ts";
import { parseKeySet } from "./key_set.ts";
import type { KeySet } from "./key_set.ts";
import { messageOf } from "./key_source.ts";
import type { AuthClock, KeySource } from "./key_source.ts";
import type { BrokerLog } from "../log/broker_log.ts";
import type { AuthMetrics } from "../metrics/counters.ts";

const LIFE_MS = 3_600_000;
const FETCH_TIMEOUT_MS = 5000;
const FAILURE_MS = 5000;
const RETRY_STALE_MS = 30_000;
const REFRESH_MS = 30_000;
const MAX_FETCHES = 8;
const MAX_WAITING = 1024;
const MAX_TENANTS = 4096;
const MAX_BODY_BYTES = 1024 * 1024;
const LOG_EVERY_MS = 10_000;

/** Needs of a `UrlKeySource`. */
export interface UrlKeySourceOptions {
  /** The JWKS address of a tenant. */
  urlOf(tenant: string): string;
  /** Seconds that keys serve on past their hour. */
  readonly staleMaxSeconds: number;
  readonly fetch: typeof fetch;
  readonly clock: AuthClock;
  readonly log: BrokerLog;
  readonly metrics: AuthMetrics;
  /** A signal that aborts after `ms`; injected so that tests hold no timer. */
  readonly timeout?: (ms: number) => AbortSignal;
}

interface CachedKeys {
  readonly keys: KeySet;
  readonly fetchedMs: number;
  /** Last attempt to replace them. */
  attemptedMs: number;
}

interface Failure {
  readonly atMs: number;
  readonly reason: AuthRefusal;
}

/** Keys of each tenant from its own URL. */
export class UrlKeySource implements KeySource {
  readonly #options: UrlKeySourceOptions;
  readonly #cached = new Map<string, CachedKeys>();
  readonly #failures = new Map<string, Failure>();
  readonly #fetching = new Map<string, Promise<KeySet>>();
  readonly #waiting: (() => void)[] = [];
  #fetches = 0;
  #loggedMs = -Infinity;

  constructor(options: UrlKeySourceOptions) {
    this.#options = options;
  }

  current(tenant: string): KeySet | null {
    const cached = this.#cached.get(tenant);
    if (cached === undefined) return null;
    const now = this.#options.clock.monotonicMs();
    if (now - cached.fetchedMs < LIFE_MS) return cached.keys;
    // Past their hour: the first caller waits for new ones, later ones only if that worked.
    if (!this.#mayServeStale(cached, now) || cached.attemptedMs === cached.fetchedMs) return null;
    this.#options.metrics.staleKeySets++;
    if (now - cached.attemptedMs >= RETRY_STALE_MS) this.#fetchShared(tenant).catch(() => {});
    return cached.keys;
  }

  async load(tenant: string): Promise<KeySet> {
    const now = this.#options.clock.monotonicMs();
    const failure = this.#failures.get(tenant);
    const cached = this.#cached.get(tenant);
    const serves = cached !== undefined && this.#mayServeStale(cached, now);
    if (failure !== undefined && !serves && now - failure.atMs < FAILURE_MS) {
      throw new AuthRefused(failure.reason, "the tenant's keys could not be fetched just now");
    }
    try {
      return await this.#fetchShared(tenant);
    } catch (error) {
      // The fetch itself drops keys that the answer took out of force.
      const kept = this.#cached.get(tenant);
      if (kept === undefined) throw error;
      const later = this.#options.clock.monotonicMs();
      if (later - kept.fetchedMs >= LIFE_MS && !this.#mayServeStale(kept, later)) throw error;
      return kept.keys;
    }
  }

  async refresh(tenant: string, known: KeySet): Promise<KeySet> {
    const cached = this.#cached.get(tenant);
    if (cached !== undefined && cached.keys !== known) return cached.keys;
    const now = this.#options.clock.monotonicMs();
    if (cached !== undefined && now - cached.attemptedMs < REFRESH_MS) {
      return await (this.#fetching.get(tenant)?.catch(() => known) ?? known);
    }
    return await this.#fetchShared(tenant).catch(() => known);
  }

  #mayServeStale(cached: CachedKeys, now: number): boolean {
    return now - cached.fetchedMs < LIFE_MS + this.#options.staleMaxSeconds * 1000;
  }

  #fetchShared(tenant: string): Promise<KeySet> {
    const running = this.#fetching.get(tenant);
    if (running !== undefined) return running;
    const fetching = this.#fetchKeys(tenant).finally(() => this.#fetching.delete(tenant));
    this.#fetching.set(tenant, fetching);
    return fetching;
  }

  async #fetchKeys(tenant: string): Promise<KeySet> {
    const { clock, metrics } = this.#options;
    const cached = this.#cached.get(tenant);
    if (cached !== undefined) cached.attemptedMs = clock.monotonicMs();
    await this.#enter();
    try {
      const keys = await this.#request(tenant);
      const now = clock.monotonicMs();
      // The same document keeps its object: what was verified with it stays verified.
      const kept = cached?.keys.fingerprint === keys.fingerprint ? cached.keys : keys;
      if (kept === keys) metrics.malformedKeys += keys.malformed;
      metrics.keySetLoads++;
      this.#failures.delete(tenant);
      remember(this.#cached, tenant, { keys: kept, fetchedMs: now, attemptedMs: now });
      return kept;
    } catch (error) {
      throw this.#failed(tenant, error);
    } finally {
      this.#leave();
    }
  }

  async #request(tenant: string): Promise<KeySet> {
    const { fetch, urlOf, timeout = (ms) => AbortSignal.timeout(ms) } = this.#options;
    const response = await fetch(urlOf(tenant), {
      redirect: "error",
      signal: timeout(FETCH_TIMEOUT_MS),
      headers: { accept: "application/json" },
    });
    if (response.status !== 200) {
      await response.body?.cancel();
      if (response.status === 404) throw new AuthRefused("unknown_tenant", "no such tenant");
      throw new AuthRefused("keys_unavailable", `the key server answered ${response.status}`);
    }
    const keys = await parseKeySet(await boundedText(response));
    if (keys.keys.length === 0) {
      this.#options.metrics.malformedKeys += keys.malformed;
      throw new AuthRefused("no_usable_keys", "the tenant has no usable key");
    }
    return keys;
  }

  #failed(tenant: string, error: unknown): AuthRefused {
    const { clock, log, metrics } = this.#options;
    const refused = error instanceof AuthRefused
      ? error
      : new AuthRefused("keys_unavailable", "the tenant's keys could not be fetched", {
        cause: error,
      });
    const now = clock.monotonicMs();
    metrics.keySetFailures++;
    // The server answered, and there is no key to trust any more.
    if (refused.reason !== "keys_unavailable") this.#cached.delete(tenant);
    remember(this.#failures, tenant, { atMs: now, reason: refused.reason });
    const fields = { tenant, reason: refused.reason, error: messageOf(refused.cause ?? refused) };
    if (refused.reason === "unknown_tenant" || now - this.#loggedMs < LOG_EVERY_MS) {
      log.debug("tenant keys could not be loaded", fields);
    } else {
      this.#loggedMs = now;
      log.warn("tenant keys could not be loaded", fields);
    }
    return refused;
  }

  async #enter(): Promise<void> {
    if (this.#fetches < MAX_FETCHES) {
      this.#fetches++;
      return;
    }
    if (this.#waiting.length >= MAX_WAITING) {
      throw new AuthRefused("keys_unavailable", "too many tenants wait for their keys");
    }
    await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  /** Hands the place to the one that waits longest. */
  #leave(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#fetches--;
    else next();
  }
}

/** Puts an entry last and lets the first ones go while there are too many. */
function remember<V>(table: Map<string, V>, key: string, value: V): void {
  table.delete(key);
  table.set(key, value);
  for (const oldest of table.keys()) {
    if (table.size <= MAX_TENANTS) break;
    table.delete(oldest);
  }
}

async function boundedText(response: Response): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length;
    if (bytes > MAX_BODY_BYTES) {
      throw new AuthRefused("keys_unavailable", "the key set is larger than 1 MiB");
    }
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}
