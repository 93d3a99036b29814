// The client as the application sees it. Only interfaces: what a program may rely on is here, how
// it is done is not.

import type { CacheHandle } from "./cache/cache_handle.ts";
import type { CounterHandle } from "./cache/counter_handle.ts";
import type { FeatureName } from "./features.ts";
import type { ClientMetrics } from "./metrics.ts";
import type { StreamHandle } from "./stream_handle.ts";
import type { BrokerInfo, CallOptions, ConnectionInfo, ShardOwner } from "./types.ts";

/** One namespace of the client's tenant. */
export interface NamespaceView {
  /** Its name. */
  readonly name: string;
  /** A stream in it. */
  stream(name: string): StreamHandle;
  /** A cache in it. */
  cache(name: string): CacheHandle;
  /** The counters of a cache in it. */
  counters(cache: string): CounterHandle;
}

/** A client of one tenant. Meant to be shared: everything may be called concurrently. */
export interface FelixClient extends AsyncDisposable {
  /** Tenant that everything happens in. */
  readonly tenant: string;
  /** Whether it was closed. */
  readonly closed: boolean;
  /** A view on one namespace. */
  namespace(name: string): NamespaceView;
  /** A stream; nothing is asked of a broker yet. */
  stream(name: string, options?: { namespace?: string }): StreamHandle;
  /** A cache; nothing is asked of a broker yet. */
  cache(name: string, options?: { namespace?: string }): CacheHandle;
  /** The counters of a cache; nothing is asked of a broker yet. */
  counters(cache: string, options?: { namespace?: string }): CounterHandle;
  /** Addresses that it may use: the ones it was given and the ones it learned. */
  endpoints(): readonly string[];
  /** Asks the entry broker which brokers there are. @throws {UnsupportedError} it does not say */
  refreshTopology(options?: CallOptions): Promise<readonly BrokerInfo[]>;
  /** Asks who owns the shards of a stream or cache. @throws {UnsupportedError} */
  shardOwners(
    kind: "stream" | "cache",
    name: string,
    options?: CallOptions & { readonly namespace?: string },
  ): Promise<readonly ShardOwner[]>;
  /** Whether the entry broker serves a feature. */
  supports(feature: FeatureName): boolean;
  /** All connections. */
  connections(): readonly ConnectionInfo[];
  /** Resolves once every publish with ack `none` has been taken by the transport. */
  flush(options?: CallOptions): Promise<void>;
  /** Counters so far. */
  metrics(): ClientMetrics;
  /**
   * Refuses new calls, waits up to `drainMs` (default 5000) for what is under way, then ends
   * subscriptions and connections. Idempotent; never throws.
   */
  close(options?: { readonly drainMs?: number }): Promise<void>;
}
