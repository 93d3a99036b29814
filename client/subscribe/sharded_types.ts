// What a subscription to several shards takes and gives (spec/client.md §8). Positions and
// checkpoints are plain values that an application can keep anywhere.

import type { FelixError } from "../failure/felix_error.ts";
import type { CallOptions, Offset } from "../types.ts";
import type { FelixEvent } from "./event.ts";
import type { SubscribeOptions } from "./subscribe_options.ts";

/** Last offset handled, per shard. */
export type ShardPositions = ReadonlyMap<number, Offset> | Readonly<Record<string, Offset>>;

/** First offset wanted, per shard, in a form that can be kept as JSON. */
export interface StreamCheckpoint {
  /** Version of this form. */
  readonly v: 1;
  /** Name of the stream. */
  readonly stream: string;
  /** First offset wanted by shard number, as decimal text. */
  readonly next: Readonly<Record<string, string>>;
}

/** Settings of `StreamHandle.subscribeSharded`. */
export interface ShardedSubscribeOptions extends Omit<SubscribeOptions, "shard"> {
  /** Shards to read; default all. */
  readonly shards?: "all" | readonly number[];
  /** Where to go on; shards that are not in it start at `start`. */
  readonly resume?: ShardPositions | StreamCheckpoint;
}

/** What a subscription to several shards yields. */
export type ShardItem =
  | { readonly type: "event"; readonly shard: number; readonly event: FelixEvent }
  | { readonly type: "shardLost"; readonly shard: number; readonly error: FelixError }
  | { readonly type: "shardRecovered"; readonly shard: number }
  | {
    readonly type: "shardMoved";
    readonly shard: number;
    readonly nodeId: string | null;
    readonly addr: string | null;
    readonly generation: bigint;
  }
  | { readonly type: "shardEnded"; readonly shard: number };

/** Events of several shards: in order within a shard, round robin between them. */
export interface ShardedSubscription extends AsyncIterable<ShardItem>, AsyncDisposable {
  /** Shards that are read. */
  readonly shards: number;
  /** The next item; `null` once all shards have ended or it was closed. */
  next(options?: CallOptions): Promise<ShardItem | null>;
  /** The events alone; rejects when a shard is lost. */
  events(): AsyncIterable<FelixEvent>;
  /** Last offset handed out, of every shard that handed out any. */
  positions(): Map<number, Offset>;
  /** Where to go on, for every shard, also those that handed out nothing. */
  checkpoint(): StreamCheckpoint;
  /** Ends it. Never throws. */
  close(): Promise<void>;
}
