// All watches of one client: opens them, one shard each or all, and ends them with it. One that
// ends leaves the set, so that nothing is kept for it.

import { CallGuard } from "../call_guard.ts";
import { ClosedError, InvalidArgumentError } from "../failure/classes.ts";
import { withRetries } from "../link/retrier.ts";
import type { Queries } from "../routing/queries.ts";
import type { Route } from "../routing/route.ts";
import type { SubscribeContext } from "../subscribe/open_event_stream.ts";
import type { CallOptions } from "../types.ts";
import { MergedWatch } from "./merged_watch.ts";
import { ShardWatch } from "./shard_watch.ts";
import { fromOffset } from "./watch_options.ts";
import type { ResolvedWatch } from "./watch_options.ts";
import { WATCH_OPERATION } from "./watch_request.ts";
import type { FeedItem } from "./watch_types.ts";

/** Bytes that the buffers of one watch hold, all shards together, unless the client says. */
const BUFFER_BYTES = 8 * 1024 * 1024;

const encoder = new TextEncoder();

/** How a watch is opened besides its options. */
export interface WatchPurpose<I extends FeedItem> {
  /** What is handed out. */
  readonly passes: (item: FeedItem) => item is I;
  /** Milliseconds that an interruption may last. */
  readonly resumeDeadlineMs: number;
}

/** All watches of one client. */
export class Watches {
  readonly #context: SubscribeContext;
  readonly #queries: Queries;
  readonly #open = new Set<{ close(): Promise<void> }>();

  /** None yet. */
  constructor(context: SubscribeContext, queries: Queries) {
    this.#context = context;
    this.#queries = queries;
  }

  /** Opens a watch. @throws {FelixError} one of its shards could not be opened */
  async open<I extends FeedItem>(
    route: Route,
    options: ResolvedWatch,
    purpose: WatchPurpose<I>,
    call: CallOptions,
  ): Promise<MergedWatch<I>> {
    const { core } = this.#context;
    if (core.closed) throw this.#closed();
    const guard = new CallGuard(WATCH_OPERATION, call, core.settings.requestTimeoutMs);
    try {
      const numbers = await this.#shards(route, options, guard);
      const shards = this.#prepared(route, options, purpose, numbers);
      await openAll(shards, guard);
      const watch = new MergedWatch<I>({
        shards,
        retained: options.retained,
        onLag: options.onLag,
        passes: purpose.passes,
        onEnded: (ended) => this.#open.delete(ended),
      });
      this.#open.add(watch);
      if (!core.closed) return watch;
      await watch.close();
      throw this.#closed();
    } finally {
      guard.dispose();
    }
  }

  /** Ends all. */
  close(): void {
    for (const watch of [...this.#open]) void watch.close();
  }

  #prepared<I extends FeedItem>(
    route: Route,
    options: ResolvedWatch,
    purpose: WatchPurpose<I>,
    numbers: readonly number[],
  ): ShardWatch[] {
    const { retained, filter, onLag } = options;
    const { resumeDeadlineMs } = purpose;
    const bytes = this.#context.core.settings.subscribe.buffer?.maxBytes ?? BUFFER_BYTES;
    const maxBytes = Math.max(1, Math.floor(bytes / numbers.length));
    return numbers.map((shard) => {
      const offset = fromOffset(options.from, shard);
      return new ShardWatch({
        context: this.#context,
        route,
        shard,
        filter,
        start: offset !== null
          ? { kind: "from", offset }
          : retained
          ? { kind: "retained" }
          : { kind: "live" },
        maxBytes,
        resumeDeadlineMs,
        onLag,
      });
    });
  }

  /** The shards to watch. */
  async #shards(route: Route, options: ResolvedWatch, guard: CallGuard): Promise<number[]> {
    const { key } = options.filter;
    // What is known of owners saves a redirect; not knowing them is no failure.
    await guard.wait(this.#context.routes.prepare(route, false) ?? Promise.resolve());
    if (options.shard !== null) return [options.shard];
    if (key === null) {
      const width = await this.#width(route, guard);
      return Array.from({ length: width }, (_, shard) => shard);
    }
    if (route.width === null && this.#queries.canAsk("cacheShards")) {
      await this.#width(route, guard);
    }
    return [route.shardOf(encoder.encode(key)) ?? 0];
  }

  async #width(route: Route, guard: CallGuard): Promise<number> {
    const { resource } = route;
    const call = { operation: WATCH_OPERATION, resource, guard };
    const ask = (): Promise<number> => this.#queries.cacheShards(route.namespace, route.name);
    return route.width = await withRetries(this.#context.core, call, ask);
  }

  #closed(): ClosedError {
    return new ClosedError({ message: "the client is closed", operation: WATCH_OPERATION });
  }
}

async function openAll(shards: readonly ShardWatch[], guard: CallGuard): Promise<void> {
  if (shards.length === 0) {
    throw new InvalidArgumentError({ message: "no shard to watch", operation: WATCH_OPERATION });
  }
  const opened = await Promise.allSettled(shards.map((shard) => shard.open(guard)));
  const failed = opened.find((result) => result.status === "rejected");
  if (failed === undefined) return;
  for (const shard of shards) shard.close();
  throw failed.reason;
}
