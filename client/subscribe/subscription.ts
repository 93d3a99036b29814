// A subscription as the application holds it. Reading from the network and handing out are apart:
// `EventFeed` fills the buffer and keeps the subscription alive, this file hands out. The rule: one
// that ends because of a fault says so; iteration never just stops because a connection died.

import { CallGuard } from "../call_guard.ts";
import { Deque } from "../deque.ts";
import { ClosedError } from "../failure/classes.ts";
import type { CallOptions, Offset } from "../types.ts";
import type { FelixEvent, ReceivedEvent } from "./event.ts";
import type { EventFeed, FeedStats } from "./event_feed.ts";

/** What a subscription counted. */
export interface SubscriptionStats {
  /** Events handed out. */
  readonly delivered: bigint;
  /** Records that were lost. */
  readonly dropped: bigint;
  /** Events that came twice and were thrown away. */
  readonly duplicatesDiscarded: bigint;
  /** Times it was opened again after a fault. */
  readonly resumes: number;
  /** Times its shard moved to another broker. */
  readonly moves: number;
  /** Events in the client's buffer. */
  readonly buffered: number;
}

/**
 * Events of one shard, in order. Iterate it, or call `next` or `readBatch`; concurrent reads are
 * served in the order they came.
 */
export interface Subscription extends AsyncIterable<FelixEvent>, AsyncDisposable {
  /** Name of the stream. */
  readonly stream: string;
  /** Shard that is read. */
  readonly shard: number;
  /** First offset that it delivers; `null` on a stream without a log. */
  readonly startOffset: Offset | null;
  /** The tail when it joined; `null` on a stream without a log. */
  readonly liveOffset: Offset | null;
  /** Resolves once everything below `liveOffset` was handed out; rejects if that cannot happen. */
  readonly caughtUp: Promise<void>;
  /** Last offset handed out. */
  readonly position: Offset | null;
  /** Counters. */
  readonly stats: SubscriptionStats;
  /** Whether it was closed or has ended. */
  readonly closed: boolean;
  /** The next event; `null` once it has ended. Giving up (`timeoutMs`, `signal`) loses nothing. */
  next(options?: CallOptions): Promise<FelixEvent | null>;
  /** 1 to `max` events that are there or the next to come; empty once it has ended. */
  readBatch(max: number, options?: CallOptions): Promise<FelixEvent[]>;
  /** The events as a web stream. */
  readable(): ReadableStream<FelixEvent>;
  /** Ends it. Never throws. */
  close(): Promise<void>;
}

interface Waiter {
  readonly max: number;
  resolve(events: ReceivedEvent[]): void;
  reject(error: unknown): void;
}

const DONE: IteratorReturnResult<undefined> = { done: true, value: undefined };

/** The subscription behind the interface. */
export class ShardSubscription implements Subscription {
  readonly caughtUp: Promise<void>;
  /** Told when there is something for `poll`, or it has ended. */
  onReady: () => void = () => undefined;
  readonly #feed: EventFeed;
  readonly #waiters: Deque<Waiter> = new Deque();
  #last: ReceivedEvent | null = null;
  #delivered = 0;
  #catchUpAt: bigint | null;
  #resolveCaughtUp!: () => void;
  #rejectCaughtUp!: (error: unknown) => void;

  /** Hands out what `feed` brings. */
  constructor(feed: EventFeed) {
    this.#feed = feed;
    this.caughtUp = new Promise((resolve, reject) => {
      this.#resolveCaughtUp = resolve;
      this.#rejectCaughtUp = reject;
    });
    this.caughtUp.catch(() => undefined);
    const { liveOffset, startOffset } = feed;
    this.#catchUpAt = liveOffset;
    if (liveOffset === null || (startOffset ?? 0n) >= liveOffset) this.#nowCaughtUp();
    feed.onChange = () => {
      this.#serve();
      this.onReady();
    };
  }

  get stream(): string {
    return this.#feed.origin.stream;
  }

  get shard(): number {
    return this.#feed.origin.shard;
  }

  get startOffset(): Offset | null {
    return this.#feed.startOffset;
  }

  get liveOffset(): Offset | null {
    return this.#feed.liveOffset;
  }

  get position(): Offset | null {
    return this.#last?.offset ?? null;
  }

  get closed(): boolean {
    return this.#feed.ended;
  }

  get stats(): SubscriptionStats {
    const stats: FeedStats = this.#feed.stats;
    return {
      delivered: BigInt(this.#delivered),
      dropped: stats.dropped,
      duplicatesDiscarded: stats.duplicatesDiscarded,
      resumes: stats.resumes,
      moves: stats.moves,
      buffered: this.#feed.queue.size,
    };
  }

  next(options?: CallOptions): Promise<FelixEvent | null> {
    if (options?.signal?.aborted) return Promise.reject(options.signal.reason);
    const event = this.#waiters.size === 0 ? this.#take() : undefined;
    if (event !== undefined) return Promise.resolve(event);
    return this.#wait(1, options).then((events) => events[0] ?? null);
  }

  readBatch(max: number, options?: CallOptions): Promise<FelixEvent[]> {
    if (options?.signal?.aborted) return Promise.reject(options.signal.reason);
    const wanted = Math.max(1, Math.floor(max));
    const events = this.#waiters.size === 0 ? this.#takeMany(wanted) : [];
    if (events.length > 0) return Promise.resolve(events);
    return this.#wait(wanted, options);
  }

  readable(): ReadableStream<FelixEvent> {
    return new ReadableStream<FelixEvent>({
      pull: async (controller) => {
        const event = await this.next();
        if (event === null) controller.close();
        else controller.enqueue(event);
      },
      cancel: () => this.close(),
    }, { highWaterMark: 0 });
  }

  /** The next event if it is here already. */
  poll(): FelixEvent | undefined {
    return this.#take();
  }

  /** Once everything was handed out: why it ended, `null` for a clean end. */
  outcome(): { readonly failure: unknown } | null {
    if (!this.#feed.ended || this.#feed.queue.size > 0) return null;
    return { failure: this.#feed.takeFailure(true) };
  }

  close(): Promise<void> {
    this.#feed.close();
    this.#serve();
    return Promise.resolve();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  [Symbol.asyncIterator](): AsyncIterator<FelixEvent, undefined> {
    const wrap = (event: FelixEvent | null): IteratorResult<FelixEvent, undefined> =>
      event === null ? DONE : { done: false, value: event };
    return {
      next: () => {
        const event = this.#waiters.size === 0 ? this.#take() : undefined;
        // The usual case: nothing but one promise for an event that is here already.
        if (event !== undefined) return Promise.resolve({ done: false, value: event });
        return this.#wait(1, undefined).then((events) => wrap(events[0] ?? null));
      },
      return: async () => {
        await this.close();
        return DONE;
      },
    };
  }

  #take(): ReceivedEvent | undefined {
    const feed = this.#feed;
    const event = feed.queue.take();
    if (event === undefined) return undefined;
    this.#delivered++;
    this.#last = event;
    if (this.#catchUpAt !== null) this.#checkCaughtUp(event);
    if (feed.paused && feed.queue.roomy) feed.resumeReading();
    return event;
  }

  #takeMany(max: number): ReceivedEvent[] {
    const events: ReceivedEvent[] = [];
    while (events.length < max) {
      const event = this.#take();
      if (event === undefined) break;
      events.push(event);
    }
    return events;
  }

  #wait(max: number, options: CallOptions | undefined): Promise<ReceivedEvent[]> {
    const waiting = this.#enqueue(max);
    if (options?.signal === undefined && options?.timeoutMs === undefined) return waiting.promise;
    const guard = new CallGuard("next", options, Infinity);
    return guard.wait(waiting.promise).catch((error) => {
      this.#waiters.remove(waiting.waiter);
      throw error;
    }).finally(() => guard.dispose());
  }

  #enqueue(max: number): { promise: Promise<ReceivedEvent[]>; waiter: Waiter } {
    let waiter!: Waiter;
    const promise = new Promise<ReceivedEvent[]>((resolve, reject) => {
      waiter = { max, resolve, reject };
    });
    this.#waiters.push(waiter);
    this.#serve();
    return { promise, waiter };
  }

  #serve(): void {
    const feed = this.#feed;
    while (this.#waiters.size > 0 && feed.queue.size > 0) {
      const waiter = this.#waiters.shift()!;
      waiter.resolve(this.#takeMany(waiter.max));
    }
    if (!feed.ended) return;
    const failure = feed.takeFailure(this.#waiters.size > 0 && feed.queue.size === 0);
    if (this.#catchUpAt !== null) {
      this.#catchUpAt = null;
      this.#rejectCaughtUp(
        failure ?? new ClosedError({
          message: "the subscription ended before it had caught up",
          operation: "subscribe",
        }),
      );
    }
    if (feed.queue.size > 0) return;
    for (const [index, waiter] of this.#waiters.takeAll().entries()) {
      if (index === 0 && failure !== null) waiter.reject(failure);
      else waiter.resolve([]);
    }
  }

  #checkCaughtUp(event: ReceivedEvent): void {
    const { offset } = event;
    if (offset !== null && offset + 1n >= this.#catchUpAt!) this.#nowCaughtUp();
  }

  #nowCaughtUp(): void {
    this.#catchUpAt = null;
    this.#resolveCaughtUp();
  }
}
