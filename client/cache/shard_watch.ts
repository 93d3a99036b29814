// Watches one shard of a cache: reads event streams one after the other into a bounded buffer and
// opens the watch again after moves, losses and lags. The rule: what is in the buffer is complete
// up to where it says, and every break that cannot be mended is told (spec/client.md §9).

import { decodeMessage } from "@felix/wire";
import type { CacheEventMessage } from "@felix/wire";
import { parseToldAddress } from "../address.ts";
import type { BrokerAddress } from "../address.ts";
import { CallGuard } from "../call_guard.ts";
import { Deque } from "../deque.ts";
import { ClosedError, CursorError, SubscriptionLostError } from "../failure/classes.ts";
import type { FelixError } from "../failure/felix_error.ts";
import { asFelixError } from "../link/retrier.ts";
import { backoffDelayMs } from "../retry_policy.ts";
import type { ResolvedPolicy } from "../retry_policy.ts";
import { breach, endOf, readEventStream } from "../subscribe/read_event_stream.ts";
import type { FrameReceiver, StreamContext, StreamEnd } from "../subscribe/read_event_stream.ts";
import { WatchPosition } from "./watch_position.ts";
import type { WatchStart } from "./watch_position.ts";
import { discardWatch, openWatch, WATCH_OPERATION, watchContext } from "./watch_request.ts";
import type { OpenWatch, WatchTarget } from "./watch_request.ts";
import type { FeedItem } from "./watch_types.ts";

/** Bytes that an item counts for besides key and value. */
const ITEM_BYTES = 128;
/** Latest date there is. */
const LAST_DATE = 8_640_000_000_000_000n;

/** How one shard is watched. */
export interface ShardWatchSetup extends WatchTarget {
  readonly start: WatchStart;
  /** Bytes in the buffer at which reading stops. */
  readonly maxBytes: number;
  /** Milliseconds that an interruption may last. */
  readonly resumeDeadlineMs: number;
  readonly onLag: "rewatch" | "end";
}

interface Queued {
  readonly item: FeedItem;
  readonly bytes: number;
  /** Where to go on once it was handed out. */
  readonly resume: bigint | null;
}

/** The watch of one shard. */
export class ShardWatch implements FrameReceiver {
  readonly shard: number;
  /** Told when there is something to take, or it has ended. */
  onChange: () => void = () => undefined;
  /** Where to go on after what was handed out; `null` = only anew. */
  resume: bigint | null = null;
  /** Current values that were announced first; `null` when none were asked for. */
  retainedCount: bigint | null = null;
  readonly #setup: ShardWatchSetup;
  readonly #position: WatchPosition;
  readonly #queue: Deque<Queued> = new Deque();
  #bytes = 0;
  #ended = false;
  /** Whether it counts as active. */
  #counted = false;
  #open: OpenWatch | null = null;
  #resuming: CallGuard | null = null;
  #resumeReading: (() => void) | null = null;
  /** Times it was opened again in a row without any change coming in. */
  #fruitless = 0;
  /** Whether a change was ever put into the buffer. */
  #changed = false;

  /** A watch that is not open yet. */
  constructor(setup: ShardWatchSetup) {
    this.#setup = setup;
    this.shard = setup.shard;
    this.#position = new WatchPosition(setup.start);
  }

  /** Whether nothing more will be handed out. */
  get done(): boolean {
    return this.#ended && this.#queue.size === 0;
  }

  /** Whether reading waits for room in the buffer. */
  get paused(): boolean {
    return this.#resumeReading !== null;
  }

  /** Opens it for the first time. @throws {FelixError} */
  async open(guard: CallGuard): Promise<void> {
    const { start } = this.#setup;
    const open = await this.#ask(start, null, guard);
    if (this.#ended) return discardWatch(open);
    const { retained_count } = open.started;
    this.retainedCount = start.kind === "retained" ? retained_count ?? null : null;
    this.resume = start.kind === "from" ? start.offset : null;
    this.#setup.context.core.counters.subscribe.active++;
    this.#counted = true;
    this.#accept(start, open);
    if (start.kind === "live") this.resume = this.#position.resume;
    void this.#run(open);
  }

  /** Takes the next item. */
  take(): FeedItem | undefined {
    const queued = this.#queue.shift();
    if (queued === undefined) return undefined;
    this.#bytes -= queued.bytes;
    this.resume = queued.resume;
    if (this.#bytes * 2 <= this.#setup.maxBytes) this.#readOn();
    return queued.item;
  }

  /** Ends it; what is in the buffer is dropped. */
  close(): void {
    this.#queue.takeAll();
    this.#bytes = 0;
    this.#end();
    this.#open?.source.stream.cancel();
    this.#resuming?.cancel(new ClosedError({ message: "the watch is closed", ...this.#where() }));
    this.#readOn();
  }

  // FrameReceiver

  frame(flags: number, payload: Uint8Array): StreamEnd | null {
    if (this.#ended) return { kind: "stopped" };
    const context = this.#streamContext();
    if (flags !== 0) throw breach(context, `frame flags ${flags} on a watch`);
    const message = decodeMessage(payload);
    if (message.type !== "cache_event") return endOf(message, context);
    this.#event(message);
    return null;
  }

  room(): Promise<void> | null {
    if (this.#ended || this.#bytes < this.#setup.maxBytes) return null;
    return new Promise((resolve) => this.#resumeReading = resolve);
  }

  #event(message: CacheEventMessage): void {
    const { key, value = null, offset, expires_at_millis: expires } = message;
    const kind = this.#position.see(offset);
    if (kind === "known") return;
    this.#fruitless = 0;
    this.#changed = true;
    const at = expires > LAST_DATE ? LAST_DATE : expires;
    this.#push({
      type: "change",
      key,
      value,
      offset,
      shard: this.shard,
      expiresAt: at === 0n ? null : new Date(Number(at)),
      retained: kind !== "news",
    }, ITEM_BYTES + key.length * 2 + (value?.length ?? 0));
    if (kind === "lastCurrent") this.#push({ type: "snapshotEnd", shard: this.shard });
  }

  #push(item: FeedItem, bytes = ITEM_BYTES): void {
    this.#queue.push({ item, bytes, resume: this.#position.resume });
    this.#bytes += bytes;
    this.onChange();
  }

  #readOn(): void {
    const resume = this.#resumeReading;
    this.#resumeReading = null;
    resume?.();
  }

  #accept(asked: WatchStart, { started }: OpenWatch): void {
    const { resume_offset, resnapshot, retained_count = 0n } = started;
    this.#position.accepted(asked, {
      resumeOffset: resume_offset,
      resnapshot,
      retainedCount: retained_count,
    });
    const again = asked.kind === "retained" && this.#changed;
    if (again || (asked.kind === "from" && resnapshot)) {
      this.#push({ type: "resnapshot", shard: this.shard });
    }
    if (asked.kind === "retained" && retained_count === 0n) {
      this.#push({ type: "snapshotEnd", shard: this.shard });
    }
  }

  async #run(first: OpenWatch): Promise<void> {
    let open: OpenWatch | null = first;
    while (open !== null) {
      if (this.#ended) return discardWatch(open);
      this.#open = open;
      const end = await readEventStream(open.source, this.#streamContext(), this);
      this.#open = null;
      open.link.subscriptionEnded();
      open = this.#ended ? null : await this.#after(end, open.link.broker);
    }
  }

  /** What comes after the end of an event stream: the next one, or `null`. */
  async #after(end: StreamEnd, broker: string): Promise<OpenWatch | null> {
    switch (end.kind) {
      case "moved": {
        const { addr, node_id, generation, resume_from } = end.message;
        this.#moved(node_id, addr, generation);
        this.#position.moved(resume_from);
        this.#push({ type: "shardMoved", shard: this.shard, addr: addr ?? null });
        return await this.#again(parseToldAddress(addr), undefined);
      }
      case "lagged":
        this.#position.lagged(end.resumeFrom);
        if (this.#setup.onLag === "end") this.#end();
        this.#push({ type: "lagged", shard: this.shard, resumeFrom: end.resumeFrom });
        return this.#ended ? null : await this.#again(null, undefined);
      case "lost":
        this.#log("debug", "watch lost", end.cause, broker);
        return await this.#again(null, end.cause);
      case "refused":
        return this.#fail(end.error);
      default:
        return this.#fail(
          new ClosedError({ message: "the broker ended the watch", ...this.#where(), broker }),
        );
    }
  }

  #moved(nodeId: string | undefined, addr: string | undefined, generation: bigint): void {
    const { context, route } = this.#setup;
    const { shard } = this;
    route.forget(shard);
    if (nodeId !== undefined) context.routes.learn(route, shard, { nodeId, addr, generation });
    const { resource } = this.#where();
    const moved = { resource, shard, addr: addr ?? null, generation };
    context.core.hooks.call("onShardMoved", moved);
  }

  /** Opens it again where it stopped; `null` when that cannot be done, which is told. */
  async #again(hint: BrokerAddress | null, cause: unknown): Promise<OpenWatch | null> {
    const { core } = this.#setup.context;
    const policy = { ...core.settings.policy, attempts: Infinity };
    const guard = new CallGuard(WATCH_OPERATION, {}, this.#setup.resumeDeadlineMs);
    this.#resuming = guard;
    try {
      // The first time at once; a broker that accepts only to break off again is given a rest.
      const rests = this.#fruitless++;
      if (rests > 0) await guard.delay(backoffDelayMs(policy, rests - 1, core.random()));
      const { asked, open } = await this.#askAgain(hint, guard, policy);
      if (this.#ended) return open;
      core.counters.subscribe.resumes++;
      this.#accept(asked, open);
      return open;
    } catch (thrown) {
      return this.#ended ? null : this.#fail(this.#failure(thrown, cause));
    } finally {
      this.#resuming = null;
      guard.dispose();
    }
  }

  /** A watch of current values that cannot go on where it stopped starts with them again. */
  async #askAgain(
    hint: BrokerAddress | null,
    guard: CallGuard,
    policy: ResolvedPolicy,
  ): Promise<{ asked: WatchStart; open: OpenWatch }> {
    const asked = this.#position.start;
    const retained: WatchStart = { kind: "retained" };
    const restarts = this.#setup.start.kind === "retained" && asked.kind === "from";
    try {
      const open = await this.#ask(asked, hint, guard, policy);
      // Values that came uncounted would not say when they are complete.
      if (!restarts || !open.started.resnapshot) return { asked, open };
      discardWatch(open);
    } catch (error) {
      if (!restarts || !(error instanceof CursorError)) throw error;
      this.#log("warn", "watch starts anew", error, error.broker);
    }
    return { asked: retained, open: await this.#ask(retained, null, guard, policy) };
  }

  #ask(
    start: WatchStart,
    hint: BrokerAddress | null,
    guard: CallGuard,
    policy?: ResolvedPolicy,
  ): Promise<OpenWatch> {
    return openWatch(this.#setup, {
      start,
      hint,
      guard,
      ...(policy === undefined ? {} : { policy }),
    });
  }

  #failure(thrown: unknown, cause: unknown): FelixError {
    const error = asFelixError(thrown, WATCH_OPERATION);
    if (!error.retryable && error.code !== "timeout") return error;
    return new SubscriptionLostError({
      message: "the watch was interrupted and could not be resumed",
      ...this.#where(),
      broker: error.broker,
      resumeFrom: this.#position.resume,
      cause: error.code === "timeout" ? cause ?? error : error,
    });
  }

  #end(): void {
    if (this.#counted) this.#setup.context.core.counters.subscribe.active--;
    this.#counted = false;
    this.#ended = true;
  }

  #fail(error: FelixError): null {
    this.#end();
    this.#push({ type: "shardClosed", shard: this.shard, error });
    return null;
  }

  #log(level: "debug" | "warn", message: string, reason: unknown, broker?: string): void {
    const { context, route } = this.#setup;
    const fields = { namespace: route.namespace, cache: route.name, shard: this.shard };
    context.core.hooks.log(level, message, { ...fields, broker, reason: String(reason) });
  }

  #where(): { operation: string; resource: string } {
    return watchContext(this.#setup);
  }

  #streamContext(): StreamContext {
    return { operation: WATCH_OPERATION, broker: this.#open?.link.broker ?? "" };
  }
}
