// A watch as it is read: the buffers of its shards, merged. The rule: shards take turns, a read
// that is given up takes nothing, and nothing ends without an item that says why
// (spec/client.md §9).

import { CallGuard } from "../call_guard.ts";
import { Deque } from "../deque.ts";
import type { CallOptions, Offset } from "../types.ts";
import type { ShardWatch } from "./shard_watch.ts";
import type { FeedItem } from "./watch_types.ts";

/** How shards are merged. */
export interface MergeSetup<I extends FeedItem> {
  readonly shards: readonly ShardWatch[];
  readonly retained: boolean;
  readonly onLag: "rewatch" | "end";
  /** What is handed out. */
  readonly passes: (item: FeedItem) => item is I;
  /** Told once when it was closed or has ended. */
  readonly onEnded: (watch: MergedWatch<I>) => void;
}

interface Waiter<I> {
  resolve(item: I | null): void;
}

const DONE: IteratorReturnResult<undefined> = { done: true, value: undefined };

/** Items of several shards. */
export class MergedWatch<I extends FeedItem> implements AsyncIterable<I>, AsyncDisposable {
  readonly retainedCount: bigint | null;
  readonly #setup: MergeSetup<I>;
  readonly #waiters: Deque<Waiter<I>> = new Deque();
  /** Shards whose current values were not all handed out; `null` = told already, or not asked. */
  #incomplete: Set<number> | null;
  #turn = 0;
  #closed = false;

  /** Reads shards that are open. */
  constructor(setup: MergeSetup<I>) {
    const { shards, retained } = setup;
    this.#setup = setup;
    this.#incomplete = retained ? new Set(shards.map(({ shard }) => shard)) : null;
    this.retainedCount = retained
      ? shards.reduce((sum, { retainedCount }) => sum + (retainedCount ?? 0n), 0n)
      : null;
    for (const shard of shards) shard.onChange = () => this.#serve();
  }

  get resumeOffset(): Offset | null {
    const { shards } = this.#setup;
    return shards.length === 1 ? shards[0]!.resume : null;
  }

  resumeOffsets(): Map<number, Offset> {
    const offsets = new Map<number, Offset>();
    for (const { shard, resume } of this.#setup.shards) {
      if (resume !== null) offsets.set(shard, resume);
    }
    return offsets;
  }

  next(options?: CallOptions): Promise<I | null> {
    if (options?.signal?.aborted) return Promise.reject(options.signal.reason);
    const item = this.#waiters.size === 0 ? this.#poll() : undefined;
    if (item !== undefined) return Promise.resolve(item);
    let waiter!: Waiter<I>;
    const waiting = new Promise<I | null>((resolve) => waiter = { resolve });
    if (options?.signal === undefined && options?.timeoutMs === undefined) {
      this.#waiters.push(waiter);
      return waiting;
    }
    return this.#guarded(waiting, waiter, options);
  }

  close(): Promise<void> {
    this.#end();
    this.#serve();
    return Promise.resolve();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  [Symbol.asyncIterator](): AsyncIterator<I, undefined> {
    return {
      next: async () => {
        const item = await this.next();
        return item === null ? DONE : { done: false, value: item };
      },
      return: async () => {
        await this.close();
        return DONE;
      },
    };
  }

  async #guarded(
    waiting: Promise<I | null>,
    waiter: Waiter<I>,
    options: CallOptions,
  ): Promise<I | null> {
    const guard = new CallGuard("next", options, Infinity);
    this.#waiters.push(waiter);
    // Taking an item and resolving are one step: a waiter that is gone has taken nothing.
    const given = guard.wait(waiting);
    guard.signal.addEventListener("abort", () => this.#waiters.remove(waiter), { once: true });
    try {
      return await given;
    } finally {
      guard.dispose();
    }
  }

  #serve(): void {
    while (this.#waiters.size > 0) {
      const item = this.#poll();
      if (item === undefined) return;
      this.#waiters.shift()!.resolve(item);
    }
  }

  /** The next item that is here; `null` = it has ended; `undefined` = wait. */
  #poll(): I | null | undefined {
    if (this.#closed) return null;
    const { shards, passes } = this.#setup;
    for (let idle = 0; idle < shards.length;) {
      const complete = this.#stateComplete();
      if (complete !== undefined && passes(complete)) return complete;
      const item = shards[this.#turn++ % shards.length]!.take();
      if (item === undefined) {
        idle++;
        continue;
      }
      idle = 0;
      this.#note(item);
      if (passes(item)) return item;
    }
    const complete = this.#stateComplete();
    if (complete !== undefined && passes(complete)) return complete;
    if (!shards.every((shard) => shard.done)) return undefined;
    this.#end();
    return null;
  }

  #note(item: FeedItem): void {
    if (item.type === "snapshotEnd") this.#incomplete?.delete(item.shard);
    else if (item.type === "resnapshot") this.#incomplete?.add(item.shard);
    else if (item.type === "lagged" && this.#setup.onLag === "end") this.#end();
  }

  #stateComplete(): FeedItem | undefined {
    if (this.#incomplete === null || this.#incomplete.size > 0) return undefined;
    this.#incomplete = null;
    return { type: "stateComplete" };
  }

  #end(): void {
    if (this.#closed) return;
    this.#closed = true;
    for (const shard of this.#setup.shards) shard.close();
    this.#setup.onEnded(this);
  }
}
