// One subscription per shard, merged. The rule: shards take turns, a lost shard says so and is
// opened again behind its own last offset while the others go on (spec/client.md §8).

import { CallGuard } from "../call_guard.ts";
import { Deque } from "../deque.ts";
import { InvalidArgumentError } from "../failure/classes.ts";
import type { ClientCore } from "../link/client_core.ts";
import { asFelixError } from "../link/retrier.ts";
import { backoffDelayMs } from "../retry_policy.ts";
import type { CallOptions, Offset, StartPosition, StreamRouting } from "../types.ts";
import type { FelixEvent } from "./event.ts";
import type { MoveListener } from "./event_feed.ts";
import type {
  ShardedSubscribeOptions,
  ShardedSubscription,
  ShardItem,
  ShardPositions,
  StreamCheckpoint,
} from "./sharded_types.ts";
import type { SubscribeOptions } from "./subscribe_options.ts";
import type { ShardSubscription } from "./subscription.ts";

/** What opening needs. */
export interface ShardedContext {
  readonly core: ClientCore;
  readonly stream: string;
  open(options: SubscribeOptions, onMoved: MoveListener): Promise<ShardSubscription>;
  routing(): Promise<StreamRouting>;
}

/** Milliseconds that waits between attempts to get a lost shard back do not exceed. */
const MAX_RECOVERY_DELAY_MS = 30_000;

interface Shard {
  readonly number: number;
  /** `null` while it is lost or after it has ended. */
  subscription: ShardSubscription | null;
  ended: boolean;
  /** Offset to go on from; `null` on a stream without a log. */
  next: bigint | null;
  /** Last offset handed out. */
  position: bigint | null;
}

function resumeFrom(
  resume: ShardPositions | StreamCheckpoint | undefined,
  shard: number,
): bigint | undefined {
  if (resume === undefined) return undefined;
  if (isCheckpoint(resume)) {
    const next = resume.next[String(shard)];
    return next === undefined ? undefined : BigInt(next);
  }
  const last = resume instanceof Map
    ? resume.get(shard)
    : (resume as Readonly<Record<string, Offset>>)[String(shard)];
  return last === undefined ? undefined : last + 1n;
}

function isCheckpoint(resume: ShardPositions | StreamCheckpoint): resume is StreamCheckpoint {
  return "v" in resume && resume.v === 1 && "next" in resume;
}

/** Opens a subscription to several shards. @throws {FelixError} one of them could not be opened */
export async function openSharded(
  context: ShardedContext,
  options: ShardedSubscribeOptions,
): Promise<ShardedSubscription> {
  const { shards } = await context.routing();
  const all = Array.from({ length: shards }, (_, shard) => shard);
  const wanted = options.shards === undefined || options.shards === "all"
    ? all
    : [...new Set(options.shards)];
  const wrong = wanted.find((shard) => !all.includes(shard));
  if (wrong !== undefined || wanted.length === 0) {
    throw new InvalidArgumentError({
      message: `shard ${wrong} is not one of the ${shards} of ${context.stream}`,
      operation: "subscribeSharded",
    });
  }
  const merged = new MergedSubscription(context, options, wanted);
  await merged.open();
  return merged;
}

class MergedSubscription implements ShardedSubscription {
  readonly shards: number;
  readonly #context: ShardedContext;
  readonly #options: ShardedSubscribeOptions;
  readonly #shards: readonly Shard[];
  readonly #news: Deque<ShardItem> = new Deque();
  readonly #timers = new Set<ReturnType<typeof setTimeout>>();
  #turn = 0;
  #closed = false;
  #wake: (() => void)[] = [];

  constructor(
    context: ShardedContext,
    options: ShardedSubscribeOptions,
    shards: readonly number[],
  ) {
    this.#context = context;
    this.#options = options;
    this.shards = shards.length;
    this.#shards = shards.map((number) => ({
      number,
      subscription: null,
      ended: false,
      next: null,
      position: null,
    }));
  }

  async open(): Promise<void> {
    const opened = await Promise.allSettled(this.#shards.map((shard) => {
      const start = resumeFrom(this.#options.resume, shard.number) ?? this.#options.start;
      return this.#openShard(shard, start);
    }));
    const failed = opened.flatMap((result, index) =>
      result.status === "rejected" ? [{ shard: this.#shards[index]!, error: result.reason }] : []
    );
    if (failed.length === 0) return;
    await this.close();
    throw failed[0]!.error;
  }

  async next(options?: CallOptions): Promise<ShardItem | null> {
    options?.signal?.throwIfAborted();
    const ready = this.#poll();
    if (ready !== undefined) return ready;
    const guard = new CallGuard("next", options ?? {}, Infinity);
    try {
      for (;;) {
        await guard.wait(new Promise<void>((resolve) => this.#wake.push(resolve)));
        const item = this.#poll();
        if (item !== undefined) return item;
      }
    } finally {
      guard.dispose();
    }
  }

  async *events(): AsyncGenerator<FelixEvent, undefined> {
    for await (const item of this) {
      if (item.type === "event") yield item.event;
      else if (item.type === "shardLost") throw item.error;
    }
    return undefined;
  }

  positions(): Map<number, Offset> {
    const positions = new Map<number, Offset>();
    for (const { number, position } of this.#shards) {
      if (position !== null) positions.set(number, position);
    }
    return positions;
  }

  checkpoint(): StreamCheckpoint {
    const next: Record<string, string> = {};
    for (const shard of this.#shards) {
      if (shard.next !== null) next[String(shard.number)] = String(shard.next);
    }
    return { v: 1, stream: this.#context.stream, next };
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const timer of this.#timers) clearTimeout(timer);
    this.#timers.clear();
    await Promise.all(this.#shards.map((shard) => shard.subscription?.close()));
    this.#wakeUp();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<ShardItem, undefined> {
    try {
      for (;;) {
        const item = this.#poll() ?? await this.next();
        if (item === null) return undefined;
        yield item;
      }
    } finally {
      await this.close();
    }
  }

  async #openShard(shard: Shard, start: StartPosition | undefined): Promise<void> {
    const { shards: _shards, resume: _resume, start: _start, ...shared } = this.#options;
    const onMoved: MoveListener = (move) => {
      this.#news.push({ type: "shardMoved", shard: shard.number, ...move });
      this.#wakeUp();
    };
    const subscription = await this.#context.open({
      ...shared,
      shard: shard.number,
      ...(start === undefined ? {} : { start }),
    }, onMoved);
    if (this.#closed) return await subscription.close();
    shard.subscription = subscription;
    shard.next ??= subscription.startOffset ?? (typeof start === "bigint" ? start : null);
    subscription.onReady = () => this.#wakeUp();
    this.#wakeUp();
  }

  /** The next item that is here; `null` = all has ended; `undefined` = wait. */
  #poll(): ShardItem | null | undefined {
    if (this.#closed) return null;
    const news = this.#news.shift();
    if (news !== undefined) return news;
    const { length } = this.#shards;
    for (let step = 0; step < length; step++) {
      const shard = this.#shards[this.#turn++ % length]!;
      const item = this.#pollShard(shard);
      if (item !== undefined) return item;
    }
    return this.#shards.every((shard) => shard.ended) ? null : undefined;
  }

  #pollShard(shard: Shard): ShardItem | undefined {
    const { subscription } = shard;
    if (subscription === null) return undefined;
    const event = subscription.poll();
    if (event !== undefined) {
      const { offset } = event;
      if (offset !== null) {
        shard.position = offset;
        shard.next = offset + 1n;
      }
      return { type: "event", shard: shard.number, event };
    }
    const outcome = subscription.outcome();
    if (outcome === null) return undefined;
    shard.subscription = null;
    if (outcome.failure === null) {
      shard.ended = true;
      return { type: "shardEnded", shard: shard.number };
    }
    this.#recover(shard, 0);
    const error = asFelixError(outcome.failure, "subscribe");
    return { type: "shardLost", shard: shard.number, error };
  }

  #recover(shard: Shard, attempt: number): void {
    const { core } = this.#context;
    const policy = { ...core.settings.policy, maxBackoffMs: MAX_RECOVERY_DELAY_MS };
    const timer = setTimeout(async () => {
      this.#timers.delete(timer);
      try {
        await this.#openShard(shard, shard.next ?? this.#options.start);
        if (this.#closed) return;
        this.#news.push({ type: "shardRecovered", shard: shard.number });
        this.#wakeUp();
      } catch {
        if (!this.#closed && !core.closed) this.#recover(shard, attempt + 1);
      }
    }, backoffDelayMs(policy, attempt, core.random()));
    this.#timers.add(timer);
  }

  #wakeUp(): void {
    const waiting = this.#wake;
    if (waiting.length === 0) return;
    this.#wake = [];
    for (const wake of waiting) wake();
  }
}
