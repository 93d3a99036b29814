// The streams of one broker and their shards. A definition never changes while its stream exists:
// registering it again answers the same stream, registering another one under its name is refused.
// Shards carry small dense handles; a handle is used again only with a new generation.

import type { SegmentLog } from "@felix/storage";
import { CoreError, invariant } from "./core_error.ts";
import type { EncodeStats } from "./envelope.ts";
import { checkScope, checkShards, scopeKey } from "./scope.ts";
import { StreamShard } from "./stream_shard.ts";
import type { ShardOptions } from "./stream_shard.ts";
import type { DeliveryCounters } from "./subscriber.ts";

/** What a stream is declared to be (spec/semantics.md §1). */
export interface StreamDefinition {
  readonly tenant: string;
  readonly namespace: string;
  readonly stream: string;
  /** Width, 1 to 1024. */
  readonly shards: number;
  /** How a key picks its shard. */
  readonly routing: "modulo" | "jump_hash";
  /** Kept on disk; needs durable storage. */
  readonly durable: boolean;
}

/** A registered stream. */
export class Stream {
  /** Its shards by index. */
  readonly shards: StreamShard[] = [];
  /** `false` once removed: nothing is appended any more. */
  active = true;
  /** Called once, in order of addition, when the stream is removed. */
  readonly onRemoved: Set<() => void> = new Set();

  /** Made by `StreamRegistry.register`. */
  constructor(readonly definition: StreamDefinition) {}
}

/** Bounds and counters of a registry; every member has a default. */
export interface StreamRegistryOptions {
  /** Most recent records that a shard keeps in memory (1024). */
  readonly ringRecords?: number;
  /** Most bytes that a shard keeps in memory (8 MiB). */
  readonly ringBytes?: number;
  /** Counts encoded frames. */
  readonly encodeStats?: EncodeStats;
  /** Counts deliveries. */
  readonly deliveryCounters?: DeliveryCounters;
}

/** The streams that one broker serves. */
export class StreamRegistry {
  readonly #options: ShardOptions;
  readonly #streams = new Map<string, Stream>();
  readonly #freeHandles: number[] = [];
  /** Generation of every handle that was ever given out. */
  readonly #generations: number[] = [];

  /** An empty registry. */
  constructor(options: StreamRegistryOptions = {}) {
    this.#options = {
      ringRecords: options.ringRecords ?? 1024,
      ringBytes: options.ringBytes ?? 8 * 1024 * 1024,
      encodeStats: options.encodeStats ?? { encodes: 0, shares: 0 },
      deliveryCounters: options.deliveryCounters ?? noDeliveries(),
    };
  }

  /**
   * Registers a stream, or answers the one that already has this very definition. `logs`: the open
   * logs of a durable stream's shards, by index.
   *
   * @throws {CoreError} `invalid_definition`, `durable_not_available`, or `definition_changed` when
   * a stream of this name has another width, routing or durability.
   */
  register(definition: StreamDefinition, logs: readonly SegmentLog[] = []): Stream {
    checkScope(definition.tenant, definition.namespace, definition.stream);
    checkShards(definition.shards);
    const key = scopeKey(definition.tenant, definition.namespace, definition.stream);
    const known = this.#streams.get(key);
    if (known !== undefined) {
      checkUnchanged(known.definition, definition);
      return known;
    }
    if (definition.durable && logs.length !== definition.shards) {
      const message = `stream ${nameOf(definition)} is durable; this broker has no durable storage`;
      throw new CoreError("durable_not_available", message);
    }
    const stream = new Stream({ ...definition });
    for (let index = 0; index < definition.shards; index++) {
      stream.shards.push(this.#shard(stream, index, logs[index] ?? null));
    }
    this.#streams.set(key, stream);
    return stream;
  }

  /**
   * Removes a stream and answers it; `undefined` if there is none. Its queued publishes are
   * refused, its subscribers keep what they have queued until they are unsubscribed.
   */
  remove(tenant: string, namespace: string, stream: string): Stream | undefined {
    const key = scopeKey(tenant, namespace, stream);
    const removed = this.#streams.get(key);
    if (removed === undefined) return undefined;
    this.#streams.delete(key);
    removed.active = false;
    for (const shard of removed.shards) {
      this.#freeHandles.push(shard.handle);
      shard.drop();
    }
    for (const listener of removed.onRemoved) listener();
    removed.onRemoved.clear();
    return removed;
  }

  /** The stream of this name. */
  find(tenant: string, namespace: string, stream: string): Stream | undefined {
    return this.#streams.get(scopeKey(tenant, namespace, stream));
  }

  /** Every stream, in order of registration. */
  list(): Stream[] {
    return [...this.#streams.values()];
  }

  #shard(stream: Stream, index: number, log: SegmentLog | null): StreamShard {
    const handle = this.#freeHandles.pop() ?? this.#generations.length;
    const generation = (this.#generations[handle] ?? 0) + 1;
    invariant(handle <= this.#generations.length, "B7: handles are dense");
    this.#generations[handle] = generation;
    return new StreamShard(stream, index, handle, generation, this.#options, log);
  }
}

/** Delivery counters at zero. */
export function noDeliveries(): DeliveryCounters {
  return { dropped: 0, dropOldEmulated: 0, enqueued: 0, dequeued: 0, queueLength: 0 };
}

function checkUnchanged(known: StreamDefinition, wanted: StreamDefinition): void {
  const { durable, shards, routing } = wanted;
  if (known.durable === durable && known.shards === shards && known.routing === routing) return;
  const message = `stream ${nameOf(known)} exists with another width, routing or durability; ` +
    "remove it first";
  throw new CoreError("definition_changed", message);
}

function nameOf(definition: StreamDefinition): string {
  return `${definition.tenant}/${definition.namespace}/${definition.stream}`;
}
