// What a watch of a cache takes and gives (spec/client.md §9). Offsets of a watch are sparse: a
// jump means nothing, only `lagged` says that something was missed.

import type { FelixError } from "../failure/felix_error.ts";
import type { CallOptions, Offset } from "../types.ts";

/** Settings of `CacheHandle.watch`: `key` or `prefix`, not both. */
export interface WatchOptions extends CallOptions {
  /** Watches one key. */
  readonly key?: string;
  /** Watches all keys that begin with it; the empty prefix is every key. */
  readonly prefix?: string;
  /** Current values come first, then `stateComplete`, then changes. */
  readonly retained?: boolean;
  /**
   * First offset not seen, of the one shard that is watched or by shard; not together with
   * `retained`. By shard, every watched shard has to be in it.
   */
  readonly from?: Offset | Readonly<Record<number, Offset>> | ReadonlyMap<number, Offset>;
  /** Shard that a prefix is watched in; default all of them. */
  readonly shard?: number | "all";
  /** What to do when the broker had to drop changes: watch again from there, or end. */
  readonly onLag?: "rewatch" | "end";
}

/** A key got a value, or lost it. */
export interface CacheChangeItem {
  /** Tells items apart. */
  readonly type: "change";
  /** The key. */
  readonly key: string;
  /** Its value; `null` = removed. The receiver may keep it. */
  readonly value: Uint8Array | null;
  /** Position in the shard's log. */
  readonly offset: Offset;
  /** Shard that the key is in. */
  readonly shard: number;
  /** When the value expires; `null` = never. */
  readonly expiresAt: Date | null;
  /** Whether it was so before the watch began. */
  readonly retained: boolean;
}

/** What a watch yields. */
export type WatchItem =
  | CacheChangeItem
  /** All current values were handed out; comes once, with `retained`. */
  | { readonly type: "stateComplete" }
  /** The broker dropped changes from `resumeFrom` on. */
  | { readonly type: "lagged"; readonly shard: number; readonly resumeFrom: Offset }
  /** A shard starts again from current values: keys that do not come again are gone. */
  | { readonly type: "resnapshot"; readonly shard: number }
  /** A shard moved to another broker and is followed there. */
  | { readonly type: "shardMoved"; readonly shard: number; readonly addr: string | null }
  /** Nothing more comes from a shard. */
  | { readonly type: "shardClosed"; readonly shard: number; readonly error: FelixError };

/**
 * Changes of a cache: in order within a shard, round robin between shards. Iterate it or call
 * `next`; concurrent reads are served in the order they came.
 */
export interface CacheWatch extends AsyncIterable<WatchItem>, AsyncDisposable {
  /** How many current values were announced, of all shards; `null` without `retained`. */
  readonly retainedCount: bigint | null;
  /** Where to go on after the last item, with one shard; else `null`. */
  readonly resumeOffset: Offset | null;
  /**
   * Where to go on after the last item, by shard: `from` of another watch. A shard whose current
   * values were not all handed out is not in it: it has to start anew.
   */
  resumeOffsets(): Map<number, Offset>;
  /** The next item; `null` once it has ended. Giving up (`timeoutMs`, `signal`) loses nothing. */
  next(options?: CallOptions): Promise<WatchItem | null>;
  /** Ends it. Never throws. */
  close(): Promise<void>;
}

/** Inside: all current values of a shard, as announced, were handed out. */
export interface SnapshotEnd {
  readonly type: "snapshotEnd";
  readonly shard: number;
}

/** What shards hand to whoever merges them. */
export type FeedItem = WatchItem | SnapshotEnd;
