// The client: puts the parts together, keeps the clockwork going (time limits, discovery) and
// ends everything in order (spec/client.md §3, §15).

import { requireName } from "./bytes.ts";
import { CacheEngine } from "./cache/cache_engine.ts";
import { FelixCache } from "./cache/cache_handle.ts";
import type { CacheHandle } from "./cache/cache_handle.ts";
import { FelixCounters } from "./cache/counter_handle.ts";
import type { CounterHandle } from "./cache/counter_handle.ts";
import { Watches } from "./cache/watches.ts";
import { CallGuard } from "./call_guard.ts";
import type { FelixClient, NamespaceView } from "./client_types.ts";
import { ClosedError, UnsupportedError } from "./failure/classes.ts";
import { serves } from "./features.ts";
import type { FeatureName } from "./features.ts";
import { HookRunner } from "./hooks.ts";
import type { Broker } from "./link/broker.ts";
import type { ClientCore } from "./link/client_core.ts";
import { Fleet } from "./link/fleet.ts";
import { withRetries } from "./link/retrier.ts";
import { Counters } from "./metrics.ts";
import type { ClientMetrics } from "./metrics.ts";
import type { ConnectOptions } from "./options.ts";
import { Producers } from "./publish/idempotent_producer.ts";
import { Publisher } from "./publish/publisher.ts";
import { Queries } from "./routing/queries.ts";
import { Routes } from "./routing/routes.ts";
import { TurnClock } from "./turn_clock.ts";
import { backgroundInterval, monotonicMs } from "./runtime/deno.ts";
import { resolveSettings } from "./settings.ts";
import type { Settings } from "./settings.ts";
import { FelixStream } from "./stream_handle.ts";
import type { StreamHandle } from "./stream_handle.ts";
import { Subscriptions } from "./subscribe/subscriptions.ts";
import { refreshingToken } from "./token/refreshing_token.ts";
import { staticToken } from "./token/token_provider.ts";
import type { TokenProvider } from "./token/token_provider.ts";
import type { BrokerInfo, CallOptions, ConnectionInfo, ShardOwner } from "./types.ts";

/** Milliseconds between two looks at time limits. */
const SWEEP_MS = 250;
/** Milliseconds between two questions about the topology. */
const DISCOVERY_MS = 60_000;

class Core implements ClientCore {
  readonly clock: TurnClock = new TurnClock();
  readonly random = Math.random;
  closed = false;
  #requestId = 0;

  constructor(
    readonly settings: Settings,
    readonly counters: Counters,
    readonly hooks: HookRunner,
    readonly tokens: TokenProvider,
  ) {}

  nextRequestId(): number {
    return ++this.#requestId;
  }
}

function tokenProvider(
  token: ConnectOptions["token"],
  counters: Counters,
  hooks: HookRunner,
): TokenProvider {
  if (typeof token === "string") return staticToken(token);
  if (typeof token === "object") return token;
  return refreshingToken({
    fetch: async () => await token(),
    onRefresh: (info) => {
      counters.tokenRefreshes++;
      hooks.call("onTokenRefresh", info);
    },
  });
}

/** The client behind the interface. */
export class Client implements FelixClient {
  readonly tenant: string;
  readonly #core: Core;
  readonly #fleet: Fleet;
  readonly #queries: Queries;
  readonly #publisher: Publisher;
  readonly #producers: Producers;
  readonly #cache: CacheEngine;
  readonly #subscriptions: Subscriptions;
  readonly #watches: Watches;
  readonly #routes: Routes;
  readonly #stops: (() => void)[] = [];
  #discovering = false;
  #closing: Promise<void> | null = null;

  /** A client that is not connected; use `connect`. */
  constructor(settings: Settings, options: ConnectOptions) {
    const counters = new Counters();
    const hooks = new HookRunner(options.hooks, options.logger, options.clientName);
    const tokens = tokenProvider(options.token, counters, hooks);
    this.tenant = settings.tenant;
    this.#core = new Core(settings, counters, hooks, tokens);
    this.#fleet = new Fleet(this.#core, (entry) => void this.#discover(entry));
    this.#queries = new Queries(this.#core, this.#fleet);
    this.#routes = new Routes(this.#core, this.#fleet, this.#queries);
    this.#publisher = new Publisher(this.#core, this.#fleet, this.#routes);
    this.#producers = new Producers({
      core: this.#core,
      fleet: this.#fleet,
      routes: this.#routes,
      queries: this.#queries,
      budget: this.#publisher.budget,
      stallMs: this.#publisher.stallMs,
    });
    this.#cache = new CacheEngine(this.#core, this.#fleet, this.#routes);
    const context = { core: this.#core, fleet: this.#fleet, routes: this.#routes };
    this.#subscriptions = new Subscriptions(context);
    this.#watches = new Watches(context, this.#queries);
  }

  /** Connects to the first broker that can be reached. */
  async open(signal: AbortSignal | undefined): Promise<void> {
    const { settings } = this.#core;
    const call = signal === undefined ? {} : { signal };
    const guard = new CallGuard("connect", call, Infinity);
    try {
      await withRetries(
        this.#core,
        { operation: "connect", resource: undefined, guard },
        () => this.#fleet.reach(),
      );
      if (settings.pools.eager) await guard.wait(this.#openAll());
    } catch (error) {
      await this.close({ drainMs: 0 });
      throw error;
    } finally {
      guard.dispose();
    }
    this.#stops.push(backgroundInterval(() => this.#sweep(), SWEEP_MS));
    if (settings.discovery) {
      const again = (): void => void this.#discover(this.#fleet.entry);
      this.#stops.push(backgroundInterval(again, DISCOVERY_MS));
    }
  }

  get closed(): boolean {
    return this.#core.closed;
  }

  namespace(name: string): NamespaceView {
    const namespace = requireName(name, "namespace", "namespace");
    return {
      name: namespace,
      stream: (stream) => this.stream(stream, { namespace }),
      cache: (cache) => this.cache(cache, { namespace }),
      counters: (cache) => this.counters(cache, { namespace }),
    };
  }

  stream(name: string, options: { namespace?: string } = {}): StreamHandle {
    const stream = requireName(name, "stream", "stream");
    const scope = this.#publisher.scope(this.#namespace(options), stream);
    const parts = {
      publisher: this.#publisher,
      producers: this.#producers,
      queries: this.#queries,
      core: this.#core,
      subscriptions: this.#subscriptions,
    };
    return new FelixStream(parts, scope, this.#core.settings.ack);
  }

  cache(name: string, options: { namespace?: string } = {}): CacheHandle {
    const cache = requireName(name, "cache", "cache");
    const scope = this.#cache.scope(this.#namespace(options), cache);
    const parts = {
      core: this.#core,
      engine: this.#cache,
      queries: this.#queries,
      watches: this.#watches,
    };
    return new FelixCache(parts, scope);
  }

  counters(name: string, options: { namespace?: string } = {}): CounterHandle {
    const cache = requireName(name, "cache", "counters");
    const scope = this.#cache.scope(this.#namespace(options), cache);
    return new FelixCounters(this.tenant, this.#cache, scope);
  }

  endpoints(): readonly string[] {
    return this.#fleet.endpoints().map((address) => address.text);
  }

  async refreshTopology(options: CallOptions = {}): Promise<readonly BrokerInfo[]> {
    return await this.#ask("topology", undefined, options, async () => {
      const entry = await this.#fleet.reach();
      if (!this.#queries.canAsk("topology")) throw this.#unsupported("topology");
      const brokers = await this.#queries.topology(entry);
      this.#fleet.discover(brokers);
      return brokers;
    });
  }

  async shardOwners(
    kind: "stream" | "cache",
    name: string,
    options: CallOptions & { readonly namespace?: string } = {},
  ): Promise<readonly ShardOwner[]> {
    const namespace = this.#namespace(options);
    requireName(name, kind, "shardOwners");
    return await this.#ask("shardOwners", `${namespace}/${name}`, options, async () => {
      const owners = await this.#queries.shardOwners(kind, namespace, name);
      const route = this.#routes.route(kind, namespace, name);
      for (const owner of owners) this.#routes.learn(route, owner.shard, owner);
      return owners;
    });
  }

  supports(feature: FeatureName): boolean {
    const with_ = this.#fleet.entry.negotiated;
    return with_ !== null && serves(with_, feature);
  }

  connections(): readonly ConnectionInfo[] {
    return this.#fleet.connections();
  }

  async flush(options: CallOptions = {}): Promise<void> {
    const guard = new CallGuard("flush", options, this.#core.settings.requestTimeoutMs);
    try {
      await guard.wait(this.#publisher.flush());
    } finally {
      guard.dispose();
    }
  }

  metrics(): ClientMetrics {
    const { counters } = this.#core;
    counters.publish.inflightBytes = this.#publisher.inflightBytes;
    counters.subscribe.buffered = this.#subscriptions.buffered;
    return counters.snapshot();
  }

  close(options: { readonly drainMs?: number } = {}): Promise<void> {
    return this.#closing ??= this.#close(options.drainMs ?? 5000);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #close(drainMs: number): Promise<void> {
    this.#core.closed = true;
    for (const stop of this.#stops) stop();
    const drained = Promise.all([
      this.#publisher.drained(),
      this.#producers.drained(),
      this.#cache.drained(),
    ]);
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<void>((resolve) => timer = setTimeout(resolve, drainMs));
    await Promise.race([drained, late]);
    clearTimeout(timer);
    this.#publisher.close();
    this.#producers.close();
    this.#cache.close();
    this.#subscriptions.close();
    this.#watches.close();
    await this.#fleet.close();
  }

  #namespace(options: { readonly namespace?: string }): string {
    const { namespace } = this.#core.settings;
    return options.namespace === undefined
      ? namespace
      : requireName(options.namespace, "namespace", "namespace");
  }

  async #ask<T>(
    operation: string,
    resource: string | undefined,
    options: CallOptions,
    run: () => Promise<T>,
  ): Promise<T> {
    if (this.closed) throw new ClosedError({ message: "the client is closed", operation });
    const guard = new CallGuard(operation, options, this.#core.settings.requestTimeoutMs);
    try {
      return await withRetries(this.#core, { operation, resource, guard }, run);
    } finally {
      guard.dispose();
    }
  }

  async #openAll(): Promise<void> {
    const { entry } = this.#fleet;
    const { pools } = this.#core.settings;
    if (pools.shared) return;
    await Promise.all([entry.pool("event").acquire(), entry.pool("cache").acquire()]);
  }

  async #discover(entry: Broker): Promise<void> {
    const { settings, hooks } = this.#core;
    const asks = settings.discovery && !this.closed && entry.connected &&
      entry.negotiated !== null && serves(entry.negotiated, "topology");
    if (!asks || this.#discovering) return;
    this.#discovering = true;
    try {
      this.#fleet.discover(await this.#queries.topology(entry));
    } catch (error) {
      hooks.log("debug", "discovery failed", {
        broker: entry.address.text,
        reason: String(error),
      });
    } finally {
      this.#discovering = false;
    }
  }

  #sweep(): void {
    const now = monotonicMs();
    this.#publisher.sweep(now);
    this.#cache.sweep(now);
    for (const broker of this.#fleet.brokers) {
      for (const link of broker.links) link.router.sweep(now);
    }
  }

  #unsupported(feature: FeatureName): UnsupportedError {
    return new UnsupportedError({
      message: `the broker does not serve ${feature}`,
      operation: feature,
      feature,
    });
  }
}

/**
 * Connects to Felix. Resolves once one broker was reached and accepted the token.
 *
 * @example
 * ```ts
 * import { connect } from "@felix/client";
 *
 * await using client = await connect({
 *   addresses: "localhost:5000",
 *   tenant: "t1",
 *   token: "…",
 *   tls: { caFile: "ca.pem" },
 * });
 * await client.stream("orders").publish("hello");
 * ```
 * @throws {InvalidArgumentError} an option makes no sense
 * @throws {UnsupportedError} `runtime_unsupported`: no QUIC in this runtime
 * @throws {AuthError} the token was refused
 * @throws {ConnectionError} no broker could be reached
 */
export async function connect(options: ConnectOptions): Promise<FelixClient> {
  const settings = await resolveSettings(options);
  options.signal?.throwIfAborted();
  const client = new Client(settings, options);
  await client.open(options.signal);
  return client;
}
