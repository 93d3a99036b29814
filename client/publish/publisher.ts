// All publishes of one client. Order of a call: route (asked once per stream), bytes of the budget
// (first come first served), lane of its shard, writer, answer. The rule: a frame whose outcome is
// unknown is never sent again unless the caller asked for `atLeastOnce` (spec/client.md §5).

import { ByteBudget } from "../byte_budget.ts";
import { errorFromRefusal } from "../failure/broker_failure.ts";
import { ClosedError, InvalidArgumentError } from "../failure/classes.ts";
import type { FelixError } from "../failure/felix_error.ts";
import type { Broker } from "../link/broker.ts";
import type { ClientCore } from "../link/client_core.ts";
import type { Fleet } from "../link/fleet.ts";
import { asFelixError, judge } from "../link/retrier.ts";
import type { Routes } from "../routing/routes.ts";
import { BrokerWriters } from "./broker_writers.ts";
import { PublishCall } from "./publish_call.ts";
import type { CallOwner } from "./publish_call.ts";
import type { PublishAnswer } from "./publish_answer.ts";
import { framePayloadBytes } from "./publish_frame.ts";
import { PublishLane } from "./publish_lane.ts";
import type { LaneHost } from "./publish_lane.ts";
import type { PublishOptions, PublishResult } from "./publish_options.ts";
import type { PublishWriter, WriterHost } from "./publish_writer.ts";
import { StreamScope } from "./stream_scope.ts";

/** Milliseconds without an answer after which a stream is given up, at least. */
const STALL_MS = 30_000;
const HEADER_BYTES = 12;

/** All publishes of one client. */
export class Publisher implements CallOwner, LaneHost, WriterHost {
  readonly stallMs: number;
  readonly #core: ClientCore;
  readonly #fleet: Fleet;
  readonly #routes: Routes;
  /** Bytes that all publishes of the client share. */
  readonly budget: ByteBudget;
  readonly #waitingForBytes = new Set<PublishCall>();
  readonly #backingOff = new Set<PublishCall>();
  readonly #scopes = new Map<string, StreamScope>();
  readonly #writers = new Map<Broker, BrokerWriters>();
  readonly #seed: number;
  #turn = 0;
  #active = 0;
  #unackedActive = 0;
  #idle: { done: () => void; unackedOnly: boolean }[] = [];

  /** Nothing published yet. */
  constructor(core: ClientCore, fleet: Fleet, routes: Routes) {
    this.#core = core;
    this.#fleet = fleet;
    this.#routes = routes;
    this.budget = new ByteBudget(core.settings.publishInflightBytes);
    this.#seed = Math.floor(core.random() * 0x7fff_ffff);
    this.stallMs = Math.max(STALL_MS, core.settings.requestTimeoutMs);
  }

  /** Bytes of publish frames on their way. */
  get inflightBytes(): number {
    return this.budget.usedBytes;
  }

  /** The stream as publishes see it. */
  scope(namespace: string, stream: string): StreamScope {
    const key = JSON.stringify([namespace, stream]);
    let scope = this.#scopes.get(key);
    if (scope === undefined) {
      const route = this.#routes.route("stream", namespace, stream);
      scope = new StreamScope(this.#core.settings.tenant, route);
      this.#scopes.set(key, scope);
    }
    return scope;
  }

  /** Publishes one frame. */
  publish(
    scope: StreamScope,
    payloads: readonly Uint8Array[],
    request: { operation: string; key: Uint8Array | null; ack: 0 | 1 | 2 },
    options: PublishOptions,
  ): Promise<PublishResult> {
    const { operation, key, ack } = request;
    if (this.#core.closed) return Promise.reject(this.#closed(operation));
    if (options.signal?.aborted) return Promise.reject(options.signal.reason);
    const { settings, counters } = this.#core;
    const bytes = framePayloadBytes({ scope, payloads, key, ack });
    if (bytes > settings.maxFrameBytes || (key !== null && key.length > 0xffff)) {
      return Promise.reject(this.#tooLarge(operation, bytes));
    }
    const call = new PublishCall({
      owner: this,
      operation,
      scope,
      payloads,
      key,
      ack,
      budgetBytes: bytes + HEADER_BYTES,
      options,
      defaultTimeoutMs: settings.requestTimeoutMs,
      nowMs: this.#core.clock.now(),
    });
    counters.publish.requests++;
    counters.publish.records += payloads.length;
    counters.publish.bytes += call.budgetBytes;
    this.#active++;
    if (ack === 0) this.#unackedActive++;
    this.#start(call);
    return call.promise;
  }

  /** Resolves once every unacked publish has been taken by the transport. */
  async flush(): Promise<void> {
    await this.#whenIdle(true);
    await Promise.all(this.#allWriters().map((writer) => writer.drained()));
  }

  /**
   * Resolves once nothing is unsettled and brokers have read all streams to their end: what the
   * transport took but did not deliver would be lost with the connection.
   */
  async drained(): Promise<void> {
    await this.#whenIdle(false);
    await Promise.all(this.#allWriters().map((writer) => writer.finish()));
  }

  /** Ends calls whose time is over. */
  sweep(nowMs: number): void {
    if (this.#active === 0) return;
    for (const call of this.#waitingForBytes) call.expire(nowMs);
    for (const call of this.#backingOff) call.expire(nowMs);
    for (const scope of this.#scopes.values()) {
      for (const call of scope.starting) call.expire(nowMs);
      for (const lane of scope.lanes) for (const call of lane.waiting) call.expire(nowMs);
    }
    for (const writer of this.#allWriters()) writer.sweep(nowMs);
  }

  /** Fails what is left and ends all streams. */
  close(): void {
    const error = this.#closed("publish");
    const writers = this.#allWriters();
    for (const scope of this.#scopes.values()) {
      for (const call of scope.starting.takeAll()) call.fail(error);
      for (const lane of scope.lanes) lane.close(error);
    }
    for (const call of [...this.#waitingForBytes]) call.fail(error);
    for (const call of [...this.#backingOff]) call.cancel(error);
    for (const writer of writers) writer.close(error);
  }

  // CallOwner

  settled(call: PublishCall): void {
    this.#active--;
    if (call.ack === 0) this.#unackedActive--;
    this.#backingOff.delete(call);
    if (!call.holdsBytes && this.#waitingForBytes.delete(call)) this.budget.cancel(call);
    if (call.holdsBytes) {
      call.holdsBytes = false;
      this.budget.release(call.budgetBytes);
    }
    if (this.#idle.length > 0) this.#settleIdle();
  }

  admitted(call: PublishCall): void {
    this.#waitingForBytes.delete(call);
    this.#enqueue(call);
  }

  // WriterHost

  answered(call: PublishCall, answer: PublishAnswer | null, writer: PublishWriter): void {
    const { broker } = writer;
    if (answer === null) return call.succeed({ offset: null, broker, forwarded: false });
    const { refusal, owner } = answer;
    const { counters } = this.#core;
    if (refusal !== undefined) {
      const { operation, resource, attempts } = call;
      const context = { operation, resource, broker, attempts };
      if (refusal.code === "stale_width") call.scope.route.forgetWidth();
      return this.#failed(call, errorFromRefusal(refusal, context));
    }
    counters.publish.acked++;
    if (owner !== undefined) this.#forwarded(call, owner);
    call.succeed({ offset: answer.offset, broker, forwarded: owner !== undefined });
  }

  lost(call: PublishCall, cause: unknown, writer: PublishWriter): void {
    const why = "the stream ended before the publish was answered";
    this.#failed(call, call.unknown(cause ?? undefined, writer.broker, why));
  }

  unackedTaken(bytes: number): void {
    this.budget.release(bytes);
  }

  unackedLost(broker: string, frames: number, bytes: number): void {
    this.budget.release(bytes);
    this.#core.counters.publish.unackedLost += frames;
    this.#core.hooks.call("onUnackedLoss", { broker, frames, bytes });
  }

  ended(writer: PublishWriter): void {
    for (const writers of this.#writers.values()) writers.remove(writer);
  }

  // LaneHost

  ownerAddress(lane: PublishLane): string | undefined {
    if (lane.shard === null) return undefined;
    return lane.scope.route.owner(lane.shard)?.address.text;
  }

  async bind(lane: PublishLane): Promise<{ writer: PublishWriter; viaOwner: boolean }> {
    const owner = this.#routes.ownerOf(lane.scope.route, lane.shard);
    const broker = owner ?? await this.#fleet.reach();
    let writers = this.#writers.get(broker);
    if (writers === undefined) {
      const { pools, publishQueueDepth } = this.#core.settings;
      writers = new BrokerWriters({
        broker,
        pools,
        host: this,
        seed: this.#seed,
        depth: publishQueueDepth,
      });
      this.#writers.set(broker, writers);
    }
    try {
      return { writer: await writers.writerFor(lane), viaOwner: owner !== null };
    } catch (error) {
      if (owner !== null) lane.scope.route.forget(lane.shard ?? 0, owner.address.text);
      throw error;
    }
  }

  bindFailed(
    _lane: PublishLane,
    calls: readonly PublishCall[],
    thrown: unknown,
  ): { kept: PublishCall[]; delayMs: number } {
    const error = asFelixError(thrown, "publish");
    const kept: PublishCall[] = [];
    let delayMs = 0;
    for (const call of calls) {
      call.attempts++;
      const decision = judge(this.#core, call, error, false);
      if (decision.kind !== "again") {
        this.#reject(call, error);
        continue;
      }
      if (kept.length === 0) delayMs = decision.delayMs;
      kept.push(call);
    }
    return { kept, delayMs };
  }

  #start(call: PublishCall): void {
    const { scope } = call;
    if (scope.starting.size > 0) return scope.starting.push(call);
    const preparing = this.#routes.prepare(scope.route, call.key !== null);
    if (preparing === null) return this.#acquire(call);
    scope.starting.push(call);
    void preparing.then(() => this.#startWaiting(scope));
  }

  #startWaiting(scope: StreamScope): void {
    // Whatever could not be found out by now is not waited for again.
    for (const call of scope.starting.takeAll()) if (call.state !== "done") this.#acquire(call);
  }

  #acquire(call: PublishCall): void {
    if (call.holdsBytes) return this.#enqueue(call);
    if (this.budget.acquire(call)) {
      call.holdsBytes = true;
      this.#enqueue(call);
    } else {
      this.#waitingForBytes.add(call);
    }
  }

  #enqueue(call: PublishCall): void {
    const { scope } = call;
    const shard = scope.route.shardOf(call.key);
    const { roundRobin, publishConnections, publishStreams } = this.#core.settings.pools;
    const turn = roundRobin ? this.#turn++ % (publishConnections * publishStreams) : 0;
    const lane = scope.lane(shard, turn, () => new PublishLane(this, scope, shard, turn));
    call.lane = lane;
    lane.enqueue(call);
  }

  #failed(call: PublishCall, error: FelixError): void {
    const lane = call.lane!;
    const decision = judge(this.#core, call, error, lane.viaOwner);
    if (decision.kind === "reject") return this.#reject(call, error);
    if (error.outcomeUnknown) call.ambiguous = true;
    if (lane.viaOwner && lane.shard !== null) {
      lane.scope.route.forget(lane.shard, error.broker);
    }
    if (decision.kind === "again") return this.#later(call, decision.delayMs);
    call.state = "waiting";
    // The writer is still settling this call: it takes its place again right after.
    queueMicrotask(() => call.state === "waiting" && this.#start(call));
  }

  #later(call: PublishCall, delayMs: number): void {
    this.#backingOff.add(call);
    call.later(delayMs, () => {
      this.#backingOff.delete(call);
      this.#start(call);
    });
  }

  #reject(call: PublishCall, error: FelixError): void {
    const { counters } = this.#core;
    if (error.outcomeUnknown || call.ambiguous) counters.publish.outcomeUnknown++;
    else counters.publish.failed++;
    const ambiguous = call.ambiguous && !error.outcomeUnknown;
    call.fail(
      ambiguous
        ? call.unknown(error, error.broker, "an earlier attempt may have been applied")
        : error,
    );
  }

  #forwarded(call: PublishCall, owner: NonNullable<PublishAnswer["owner"]>): void {
    this.#core.counters.publish.forwarded++;
    const shard = call.lane!.shard;
    if (shard === null) return;
    this.#routes.learn(call.scope.route, shard, owner);
    const { resource } = call.scope;
    this.#core.hooks.call("onForwarded", { resource, shard, owner: owner.nodeId });
  }

  #allWriters(): PublishWriter[] {
    return [...this.#writers.values()].flatMap((writers) => [...writers.writers]);
  }

  #whenIdle(unackedOnly: boolean): Promise<void> {
    if ((unackedOnly ? this.#unackedActive : this.#active) === 0) return Promise.resolve();
    return new Promise((done) => this.#idle.push({ done, unackedOnly }));
  }

  #settleIdle(): void {
    this.#idle = this.#idle.filter(({ done, unackedOnly }) => {
      if ((unackedOnly ? this.#unackedActive : this.#active) > 0) return true;
      done();
      return false;
    });
  }

  #closed(operation: string): ClosedError {
    return new ClosedError({ message: "the client is closed", operation });
  }

  #tooLarge(operation: string, bytes: number): InvalidArgumentError {
    return new InvalidArgumentError({
      message: `a frame of ${bytes} bytes is over the limit of ` +
        `${this.#core.settings.maxFrameBytes}, or its key is over 65535`,
      operation,
    });
  }
}
