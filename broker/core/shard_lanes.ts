// Which lane the publishes of a shard stand in. Rule: lanes are found by the shard's handle, and a
// handle that has come into other hands gets a new lane (B7, B8).

import { invariant } from "./core_error.ts";
import type { FairQueue, Lane, QueuedJob } from "./fair_queue.ts";
import type { StreamShard } from "./stream_shard.ts";

/** The lanes of one queue. */
export class ShardLanes<Job extends QueuedJob> {
  readonly #queue: FairQueue<Job>;
  readonly #onRunnable: () => void;
  readonly #lanes: Lane<Job>[] = [];
  readonly #shards: StreamShard[] = [];

  /** `onRunnable`: a lane that was set aside may run again. */
  constructor(queue: FairQueue<Job>, onRunnable: () => void) {
    this.#queue = queue;
    this.#onRunnable = onRunnable;
  }

  /** The lane of `shard`, which is `tenant`'s. */
  of(shard: StreamShard, tenant: string): Lane<Job> {
    const { handle } = shard;
    if (this.#shards[handle] !== shard) {
      const lane = this.#queue.lane(shard.stream.definition.tenant);
      this.#lanes[handle] = lane;
      this.#shards[handle] = shard;
      shard.onRoom = (): void => {
        if (this.#queue.unpark(lane)) this.#onRunnable();
      };
    }
    const lane = this.#lanes[handle]!;
    invariant(lane.tenant.name === tenant, "B8: a lane belongs to one tenant");
    return lane;
  }
}
