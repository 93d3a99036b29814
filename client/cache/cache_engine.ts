// All cache requests of one client: which broker, which stream, how many at once, what is tried
// again. The rule: few streams, because what costs is a read or a write and not a request; another
// stream is opened only when each has plenty to do (spec/client.md §13.1).

import { Deque } from "../deque.ts";
import { ClosedError } from "../failure/classes.ts";
import type { FelixError } from "../failure/felix_error.ts";
import type { Broker } from "../link/broker.ts";
import type { ClientCore } from "../link/client_core.ts";
import type { Fleet } from "../link/fleet.ts";
import { endedAtOnce } from "../link/link.ts";
import { asFelixError, judge } from "../link/retrier.ts";
import type { Routes } from "../routing/routes.ts";
import type { CallOptions } from "../types.ts";
import { CacheCall, operationOf } from "./cache_call.ts";
import type { CacheAnswer, CacheRequest, CacheScope } from "./cache_call.ts";
import { CachePieces } from "./cache_frames.ts";
import { CacheStream } from "./cache_stream.ts";
import type { CacheStreamHost } from "./cache_stream.ts";

/** Unanswered requests from which a stream counts as busy. */
const BUSY_REQUESTS = 64;
/** Milliseconds without an answer after which a stream is given up, at least. */
const STALL_MS = 30_000;

const encoder = new TextEncoder();

interface BrokerStreams {
  readonly open: CacheStream[];
  opening: Promise<void> | null;
}

/** All cache requests of one client. */
export class CacheEngine implements CacheStreamHost {
  readonly stallMs: number;
  readonly #core: ClientCore;
  readonly #fleet: Fleet;
  readonly #routes: Routes;
  readonly #streams = new Map<Broker, BrokerStreams>();
  readonly #waiting: Deque<CacheCall> = new Deque();
  /** Calls that wait for a route, a stream or their next attempt. */
  readonly #parked = new Set<CacheCall>();
  readonly #settled = (call: CacheCall, answer: CacheAnswer | undefined): void =>
    this.#onSettled(call, answer);
  #inflight = 0;
  #idle: (() => void)[] = [];

  /** Nothing asked yet. */
  constructor(core: ClientCore, fleet: Fleet, routes: Routes) {
    this.#core = core;
    this.#fleet = fleet;
    this.#routes = routes;
    this.stallMs = Math.max(STALL_MS, core.settings.requestTimeoutMs);
  }

  /** One cache as requests see it. */
  scope(namespace: string, cache: string): CacheScope {
    const route = this.#routes.route("cache", namespace, cache);
    const pieces = new CachePieces(this.#core.settings.tenant, namespace, cache);
    return { namespace, cache, resource: `${namespace}/${cache}`, pieces, route };
  }

  /** Asks one thing. */
  request(
    scope: CacheScope,
    request: CacheRequest,
    options: CallOptions,
  ): Promise<CacheAnswer> {
    if (this.#core.closed) return Promise.reject(this.#closed(operationOf(request.kind)));
    if (options.signal?.aborted) return Promise.reject(options.signal.reason);
    const { settings, counters } = this.#core;
    const timeoutMs = settings.requestTimeoutMs;
    const call = new CacheCall(
      scope,
      request,
      options,
      timeoutMs,
      this.#core.clock.now(),
      this.#settled,
    );
    counters.cache.requests++;
    if (this.#inflight >= settings.cacheInflight) this.#waiting.push(call);
    else this.#admit(call);
    return call.promise;
  }

  /** Resolves once nothing is unsettled. */
  drained(): Promise<void> {
    if (this.#inflight + this.#waiting.size === 0) return Promise.resolve();
    return new Promise((resolve) => this.#idle.push(resolve));
  }

  /** Ends calls whose time is over. */
  sweep(nowMs: number): void {
    if (this.#inflight === 0) return;
    for (const call of this.#waiting) call.expire(nowMs);
    for (const call of this.#parked) call.expire(nowMs);
    for (const { open } of this.#streams.values()) {
      for (const stream of [...open]) stream.sweep(nowMs);
    }
  }

  /** Fails what is left and ends all streams. */
  close(): void {
    const error = this.#closed("cache");
    for (const call of this.#waiting.takeAll()) call.fail(error);
    for (const call of [...this.#parked]) call.cancel(error);
    const open = [...this.#streams.values()].flatMap((streams) => [...streams.open]);
    for (const stream of open) stream.channel.abandon(error);
  }

  // CacheStreamHost

  failed(call: CacheCall, error: FelixError): void {
    const decision = judge(this.#core, call, error, call.viaOwner);
    if (decision.kind === "reject") return this.#reject(call, error);
    if (!call.reads && error.brokerCode === undefined) call.ambiguous = true;
    if (call.viaOwner) call.scope.route.forget(call.shard, error.broker);
    this.#parked.add(call);
    if (decision.kind === "again") {
      call.later(decision.delayMs, () => this.#dispatch(call));
    } else {
      call.state = "waiting";
      queueMicrotask(() => call.state === "waiting" && this.#dispatch(call));
    }
  }

  ended(stream: CacheStream): void {
    for (const { open } of this.#streams.values()) {
      const at = open.indexOf(stream);
      if (at >= 0) open.splice(at, 1);
    }
  }

  #admit(call: CacheCall): void {
    this.#inflight++;
    this.#core.counters.cache.inflight = this.#inflight;
    call.counted = true;
    const preparing = this.#routes.prepare(call.scope.route, false);
    if (preparing === null) return this.#dispatch(call);
    this.#parked.add(call);
    void preparing.then(() => call.state === "waiting" && this.#dispatch(call));
  }

  #dispatch(call: CacheCall): void {
    const { route } = call.scope;
    let broker: Broker | null = null;
    call.viaOwner = false;
    if (route.hasOwners) {
      call.shard = route.shardOf(encoder.encode(call.request.key)) ?? 0;
      broker = this.#routes.ownerOf(route, call.shard);
      call.viaOwner = broker !== null;
    }
    const { entry } = this.#fleet;
    if (broker === null && entry.connected && !entry.suspect) broker = entry;
    const stream = broker === null ? undefined : this.#pick(broker);
    if (stream !== undefined) return this.#send(call, stream);
    this.#parked.add(call);
    void this.#openFor(call, broker);
  }

  #send(call: CacheCall, stream: CacheStream): void {
    if (this.#parked.size > 0) this.#parked.delete(call);
    const nowMs = call.attempts === 0 ? call.startedMs : this.#core.clock.now();
    stream.send(call, this.#core.nextRequestId(), nowMs);
  }

  #pick(broker: Broker): CacheStream | undefined {
    const streams = this.#streams.get(broker);
    if (streams === undefined) return undefined;
    let least: CacheStream | undefined;
    for (const stream of streams.open) {
      if (!stream.usable) continue;
      if (stream.outstanding < BUSY_REQUESTS) return stream;
      if (least === undefined || stream.outstanding < least.outstanding) least = stream;
    }
    const { cacheConnections, cacheStreams } = this.#core.settings.pools;
    if (least !== undefined && streams.open.length < cacheConnections * cacheStreams) {
      // All are busy: this request still goes out now, later ones will find one more.
      streams.opening ??= this.#openStream(broker, streams).catch(() => undefined);
    }
    return least;
  }

  async #openFor(call: CacheCall, known: Broker | null): Promise<void> {
    try {
      const broker = known ?? await this.#fleet.reach();
      let streams = this.#streams.get(broker);
      if (streams === undefined) this.#streams.set(broker, streams = { open: [], opening: null });
      if (!streams.open.some((stream) => stream.usable)) {
        await (streams.opening ??= this.#openStream(broker, streams));
      }
      if (call.state !== "waiting") return;
      const stream = this.#pick(broker);
      if (stream === undefined) throw endedAtOnce(call.operation, broker.address.text);
      this.#send(call, stream);
    } catch (error) {
      if (call.state !== "waiting") return;
      call.attempts++;
      this.failed(call, asFelixError(error, call.operation));
    }
  }

  async #openStream(broker: Broker, streams: BrokerStreams): Promise<void> {
    try {
      const { cacheStreams } = this.#core.settings.pools;
      const pool = broker.pool("cache");
      const usable = streams.open.filter((stream) => stream.usable).length;
      const link = await pool.acquireNth(Math.floor(usable / cacheStreams));
      const channel = await link.openChannel();
      streams.open.push(new CacheStream(this, link, channel));
    } finally {
      streams.opening = null;
    }
  }

  #reject(call: CacheCall, error: FelixError): void {
    this.#core.counters.cache.failed++;
    const ambiguous = call.ambiguous && !error.outcomeUnknown;
    call.fail(
      ambiguous
        ? call.unknown(error, error.broker, "an earlier attempt may have been applied")
        : error,
    );
  }

  #onSettled(call: CacheCall, answer: CacheAnswer | undefined): void {
    if (call.request.kind === "get" && answer !== undefined) {
      this.#core.counters.cache[answer === null ? "misses" : "hits"]++;
    }
    if (this.#parked.size > 0) this.#parked.delete(call);
    if (!call.counted) return this.#settleIdle();
    this.#inflight--;
    this.#core.counters.cache.inflight = this.#inflight;
    while (this.#waiting.size > 0 && this.#inflight < this.#core.settings.cacheInflight) {
      const next = this.#waiting.shift()!;
      if (next.state !== "done") this.#admit(next);
    }
    this.#settleIdle();
  }

  #settleIdle(): void {
    if (this.#idle.length === 0 || this.#inflight + this.#waiting.size > 0) return;
    const waiting = this.#idle;
    this.#idle = [];
    for (const resolve of waiting) resolve();
  }

  #closed(operation: string): ClosedError {
    return new ClosedError({ message: "the client is closed", operation });
  }
}
