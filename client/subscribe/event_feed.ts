// Fills a subscription's buffer and keeps it filled: reads event streams one after the other,
// finds gaps, and opens the subscription again after moves, losses and lags. The rule: what is in
// the buffer has no gap that is not counted, and history is never dropped (spec/client.md §7).

import { parseToldAddress } from "../address.ts";
import type { BrokerAddress } from "../address.ts";
import { CallGuard } from "../call_guard.ts";
import { ClosedError, CursorError, TimeoutError } from "../failure/classes.ts";
import type { FelixError } from "../failure/felix_error.ts";
import type { ResolvedPolicy } from "../retry_policy.ts";
import type { Route } from "../routing/route.ts";
import type { CallOptions, StartPosition } from "../types.ts";
import { placeOf } from "./event.ts";
import type { EventOrigin } from "./event.ts";
import { EventQueue } from "./event_queue.ts";
import { EventReader } from "./event_reader.ts";
import type { EventSink, IncomingBatch } from "./event_reader.ts";
import { GapDetector } from "./gap_detector.ts";
import { laggedError, lostError } from "./feed_failures.ts";
import type { SubscribeContext } from "./open_event_stream.ts";
import type { OpenSubscription } from "./open_subscription.ts";
import type { StreamEnd } from "./read_event_stream.ts";
import { resumeStart } from "./resume_start.ts";
import { startSubscription } from "./start_subscription.ts";
import type { ResolvedSubscribe } from "./subscribe_options.ts";

/** Counters of a feed. */
export interface FeedStats {
  dropped: bigint;
  duplicatesDiscarded: bigint;
  resumes: number;
  moves: number;
}

/** Told when a shard moved to another broker. */
export type MoveListener = (move: {
  readonly nodeId: string | null;
  readonly addr: string | null;
  readonly generation: bigint;
}) => void;

/** Fills the buffer of one subscription. */
export class EventFeed implements EventSink {
  readonly origin: EventOrigin;
  readonly queue: EventQueue;
  readonly stats: FeedStats = { dropped: 0n, duplicatesDiscarded: 0n, resumes: 0, moves: 0 };
  /** First offset delivered, as the broker said. */
  startOffset: bigint | null = null;
  /** The tail when it joined. */
  liveOffset: bigint | null = null;
  /** Told when events came in or it ended. */
  onChange: () => void = () => undefined;
  /** Told when the shard moved. */
  onMoved: MoveListener = () => undefined;
  /** Whether reading waits for room in the buffer. */
  paused = false;
  readonly #context: SubscribeContext;
  readonly #route: Route;
  readonly #options: ResolvedSubscribe;
  readonly #onEnded: (feed: EventFeed) => void;
  readonly #gaps = new GapDetector();
  #open: OpenSubscription | null = null;
  #reader: EventReader | null = null;
  #resuming: CallGuard | null = null;
  #resumeReading: (() => void) | null = null;
  #ended = false;
  #failure: unknown = null;
  #receivedAny = false;
  #lastBase: bigint | null = null;
  /** Records lost in the client's buffer and not yet told with an event. */
  #untold = 0n;
  /** Set when reading stopped at a gap. */
  #gapped = false;

  /** A feed that is not open yet; `onEnded` is told once when it has ended. */
  constructor(
    context: SubscribeContext,
    route: Route,
    options: ResolvedSubscribe,
    onEnded: (feed: EventFeed) => void,
  ) {
    this.#context = context;
    this.#route = route;
    this.#options = options;
    this.#onEnded = onEnded;
    this.origin = {
      tenant: context.core.settings.tenant,
      namespace: route.namespace,
      stream: route.name,
      shard: options.shard,
    };
    this.queue = new EventQueue(this.origin, options.maxEvents, options.maxBytes);
  }

  /** `namespace/stream/shard`. */
  get resource(): string {
    return `${this.#route.resource}/${this.#options.shard}`;
  }

  /** Whether nothing more will come in. */
  get ended(): boolean {
    return this.#ended;
  }

  /** Opens it for the first time. @throws {FelixError} */
  async start(options: CallOptions): Promise<void> {
    const { core } = this.#context;
    const guard = new CallGuard("subscribe", options, core.settings.requestTimeoutMs);
    try {
      const open = await this.#openAt(this.#options.start, null, guard);
      this.startOffset = open.startOffset;
      this.liveOffset = open.liveOffset;
      core.counters.subscribe.active++;
      void this.#run(open);
    } finally {
      guard.dispose();
    }
  }

  /** Why it failed, once: after that it has just ended. `take`: someone is told now. */
  takeFailure(take: boolean): unknown {
    const failure = this.#failure;
    if (take) this.#failure = null;
    return failure;
  }

  /** There is room again. */
  resumeReading(): void {
    this.paused = false;
    const resume = this.#resumeReading;
    this.#resumeReading = null;
    resume?.();
  }

  /** Ends it; what is in the buffer is dropped. */
  close(): void {
    if (this.#ended) return this.queue.clear();
    this.queue.clear();
    this.#end(null);
    this.#reader?.cancel();
    this.#resuming?.cancel(
      new ClosedError({ message: "the subscription is closed", operation: "subscribe" }),
    );
    this.resumeReading();
  }

  // EventSink

  take(incoming: IncomingBatch): boolean {
    if (this.#ended) return false;
    const { base, run } = incoming;
    this.#receivedAny = true;
    let next = 0;
    let dropped = 0n;
    if (base !== null) {
      const verdict = this.#gaps.see(base, run.count, incoming.skippedBefore);
      next = verdict.duplicates;
      if (next > 0) this.stats.duplicatesDiscarded += BigInt(next);
      if (next === run.count) return true;
      if (verdict.dropped > 0n) {
        if (!this.#gap(verdict.dropped, base, incoming.skippedBefore)) return false;
        dropped = verdict.dropped;
      }
    }
    if (this.#overflows(base, run.count - next)) return true;
    const { counters } = this.#context.core;
    const bytes = this.queue.push({
      run,
      base,
      next,
      at: placeOf(run, next),
      skippedBefore: next === 0 ? incoming.skippedBefore : 0n,
      droppedBefore: dropped + this.#untold,
      publisher: incoming.publisher,
    });
    this.#untold = 0n;
    this.#lastBase = base;
    counters.subscribe.events += run.count - next;
    counters.subscribe.bytes += bytes;
    this.onChange();
    return true;
  }

  room(): Promise<void> | null {
    if (!this.queue.full || this.#ended) return null;
    const { overflow } = this.#options;
    const keeps = overflow === "block" ||
      this.#inHistory(overflow === "dropNew" ? this.#lastBase : this.queue.headOffset);
    if (!keeps) return null;
    this.paused = true;
    return new Promise((resolve) => this.#resumeReading = resolve);
  }

  #inHistory(offset: bigint | null): boolean {
    return offset !== null && this.liveOffset !== null && offset < this.liveOffset;
  }

  /** Makes room as the policy says; true = the new events are the ones that go. */
  #overflows(base: bigint | null, count: number): boolean {
    const { overflow } = this.#options;
    if (overflow === "block" || !this.queue.full || this.#inHistory(base)) return false;
    if (overflow === "dropNew") {
      this.#countDropped(BigInt(count), base);
      this.#untold += BigInt(count);
      return true;
    }
    while (this.queue.full && !this.#inHistory(this.queue.headOffset)) {
      const oldest = this.queue.take();
      if (oldest === undefined) break;
      this.#countDropped(1n, oldest.offset);
      this.#untold += 1n + oldest.droppedBefore;
    }
    return false;
  }

  #countDropped(count: bigint, from: bigint | null): void {
    this.stats.dropped += count;
    this.#context.core.counters.subscribe.dropped += Number(count);
    if (from === null) return;
    const { resource } = this;
    const { shard } = this.#options;
    const info = { resource, shard, dropped: count, from, to: from + count };
    this.#context.core.hooks.call("onDrop", info);
  }

  /** Records are missing before `base`. False = reading stops here. */
  #gap(missing: bigint, base: bigint, skipped: bigint): boolean {
    const { core } = this.#context;
    core.counters.subscribe.gaps++;
    if (this.#options.onGap === "report") {
      this.#countDropped(missing, base - skipped - missing);
      return true;
    }
    this.#gaps.resume(base - skipped - missing);
    this.#gapped = true;
    if (this.#options.onGap === "throw") this.#lagged(base - skipped - missing);
    return false;
  }

  #lagged(resumeFrom: bigint | null): void {
    this.#end(laggedError(this.resource, this.#gaps.next, resumeFrom));
  }

  async #run(first: OpenSubscription): Promise<void> {
    let open: OpenSubscription | null = first;
    while (open !== null && !this.#ended) {
      const reader = new EventReader(open.source, open.id, open.link.broker);
      this.#open = open;
      this.#reader = reader;
      const end = await reader.run(this);
      open.link.subscriptionEnded();
      this.#open = null;
      open = await this.#after(end, open);
    }
    // Closed while it was being opened again: what was opened is not wanted any more.
    if (open !== null) this.#discard(open);
  }

  #discard(open: OpenSubscription): void {
    if (this.#open === open) return;
    open.source.stream.cancel();
    open.link.subscriptionEnded();
  }

  /** What comes after the end of an event stream: the next one, or `null`. */
  async #after(end: StreamEnd, was: OpenSubscription): Promise<OpenSubscription | null> {
    if (this.#ended) return null;
    switch (end.kind) {
      case "finished":
      case "deleted":
        this.#end(null);
        return null;
      case "refused":
        this.#end(end.error);
        return null;
      case "moved": {
        const { addr, generation, resume_from } = end.message;
        this.#moved(end.message.node_id, addr, generation);
        return await this.#resume(resume_from, parseToldAddress(addr), end);
      }
      case "lagged":
        this.#context.core.counters.subscribe.gaps++;
        if (this.#options.onGap === "throw") {
          this.#lagged(end.resumeFrom);
          return null;
        }
        return await this.#resume(undefined, null, end);
      case "stopped":
        return this.#gapped ? await this.#resume(undefined, null, end) : null;
      case "lost":
        this.#context.core.hooks.log("debug", "event stream lost", {
          broker: was.link.broker,
          stream: this.origin.stream,
          shard: this.#options.shard,
          reason: String(end.cause),
        });
        return await this.#resume(undefined, null, end);
    }
  }

  #moved(nodeId: string | undefined, addr: string | undefined, generation: bigint): void {
    const { shard } = this.#options;
    this.stats.moves++;
    this.#route.forget(shard);
    if (nodeId !== undefined) {
      this.#context.routes.learn(this.#route, shard, { nodeId, addr, generation });
    }
    this.onMoved({ nodeId: nodeId ?? null, addr: addr ?? null, generation });
    this.#context.core.hooks.call("onShardMoved", {
      resource: this.resource,
      shard,
      addr: addr ?? null,
      generation,
    });
  }

  async #resume(
    movedFrom: bigint | undefined,
    hint: BrokerAddress | null,
    end: StreamEnd,
  ): Promise<OpenSubscription | null> {
    const next = this.#gaps.next;
    const cause = end.kind === "lost" ? end.cause : undefined;
    if (!this.#options.follow) {
      this.#lost(next, cause);
      return null;
    }
    this.#gapped = false;
    const start = resumeStart({
      next,
      start: this.#options.start,
      liveOffset: this.liveOffset,
      movedFrom,
      receivedAny: this.#receivedAny,
    });
    const { core } = this.#context;
    const guard = new CallGuard("subscribe", {}, this.#options.resumeDeadlineMs);
    this.#resuming = guard;
    try {
      const policy = { ...core.settings.policy, attempts: Infinity };
      const open = await this.#openAt(start, hint, guard, policy);
      this.#resumed(start, next);
      return open;
    } catch (error) {
      if (this.#ended) return null;
      if (error instanceof CursorError) this.#end(error);
      else this.#lost(next, error instanceof TimeoutError ? cause ?? error : error);
      return null;
    } finally {
      this.#resuming = null;
      guard.dispose();
    }
  }

  #resumed(start: StartPosition, next: bigint | null): void {
    const { counters, hooks } = this.#context.core;
    this.stats.resumes++;
    counters.subscribe.resumes++;
    if (typeof start === "bigint") this.#gaps.resume(start);
    else this.#gaps.reset();
    if (next !== null || typeof start === "bigint") return;
    hooks.call("onGapPossible", { resource: this.resource, shard: this.#options.shard });
  }

  #lost(next: bigint | null, cause: unknown): void {
    this.#end(lostError(this.resource, next ?? this.liveOffset, cause));
  }

  #openAt(
    start: StartPosition,
    hint: BrokerAddress | null,
    guard: CallGuard,
    policy?: ResolvedPolicy,
  ): Promise<OpenSubscription> {
    return startSubscription(this.#context, {
      origin: this.origin,
      route: this.#route,
      options: this.#options,
      start,
      hint,
      guard,
      ...(policy === undefined ? {} : { policy }),
      moved: (error) => {
        this.#gaps.reset();
        if (error.available <= error.requested) return;
        this.#context.core.counters.subscribe.gaps++;
        this.#countDropped(error.available - error.requested, error.requested);
      },
    });
  }

  #end(failure: FelixError | null): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#failure = failure;
    this.#context.core.counters.subscribe.active--;
    this.#onEnded(this);
    this.onChange();
  }
}
