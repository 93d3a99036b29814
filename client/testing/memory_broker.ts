// What stands behind a scripted broker: streams with a log and caches, all in memory, with the
// least code that behaves as the protocol says. Shared by several brokers it is a cluster.

import { recordViews, shardForKey } from "@felix/wire";
import type { Message, PublishFrame, SubscribeMessage } from "@felix/wire";
import type { BrokerStream, EventSender } from "./broker_stream.ts";

/** One shard of a stream. */
export interface MemoryShard {
  readonly records: Uint8Array[];
  /** Offset of the first record that can be read. */
  oldest: number;
  readonly subscribers: Set<EventSender>;
}

/** Streams and caches in memory. */
export class MemoryBroker {
  /** Shards by stream name. */
  readonly streams: Map<string, MemoryShard[]> = new Map();
  /** Values by cache and key. */
  readonly caches: Map<string, Map<string, Uint8Array>> = new Map();
  /** Shards that each cache says it has. */
  cacheWidth = 1;
  /** Sums by cache and key. */
  readonly counters: Map<string, bigint> = new Map();
  /** Whether streams have offsets. */
  durable = true;
  /** How keys map to shards. */
  mapping: "modulo" | "jump_hash" = "modulo";
  #subscription = 100n;

  /** Serves streams and caches of these names; `orders` and `sessions` if none are given. */
  constructor(streams: Record<string, number> = { orders: 1 }, caches = ["sessions"]) {
    for (const [name, shards] of Object.entries(streams)) {
      const make = (): MemoryShard => ({ records: [], oldest: 0, subscribers: new Set() });
      this.streams.set(name, Array.from({ length: shards }, make));
    }
    for (const name of caches) this.caches.set(name, new Map());
  }

  /** A shard that exists. */
  shard(stream: string, shard = 0): MemoryShard {
    return this.streams.get(stream)![shard]!;
  }

  /** Texts of everything in a shard. */
  texts(stream: string, shard = 0): string[] {
    const decoder = new TextDecoder();
    return this.shard(stream, shard).records.map((record) => decoder.decode(record));
  }

  /** The next subscription id. */
  nextSubscription(): bigint {
    return this.#subscription++;
  }

  /** Serves a publish. */
  publish(stream: BrokerStream, frame: PublishFrame): void {
    const shards = this.streams.get(frame.stream);
    if (shards === undefined) {
      if (frame.ack !== 0) stream.refusePublish(frame.requestId, "not_found", "retry_after");
      return;
    }
    const number = shardForKey(frame.key, shards.length, this.mapping);
    const offset = this.append(frame, shards[number]!);
    if (frame.ack === 0) return;
    stream.ack({
      requestId: frame.requestId,
      ...(this.durable ? { offset: BigInt(offset) } : {}),
    });
  }

  /** Appends a batch and passes it on to subscribers; answers its first offset. */
  append(frame: PublishFrame, shard: MemoryShard): number {
    const base = shard.records.length;
    const records = recordViews(frame.records, frame.count).map((record) => record.slice());
    shard.records.push(...records);
    for (const events of shard.subscribers) this.#deliver(events, records, base);
    return base;
  }

  /** Serves a message. */
  async message(stream: BrokerStream, message: Message): Promise<void> {
    switch (message.type) {
      case "subscribe":
        return await this.#subscribe(stream, message);
      case "stream_shards": {
        const shards = this.streams.get(message.stream)?.length ?? 0;
        const { request_id } = message;
        return stream.send({
          type: "stream_shards_view",
          shards,
          request_id,
          ...(this.mapping === "modulo" ? {} : { routing: this.mapping }),
        });
      }
      case "cache_shards": {
        const shards = this.caches.has(message.cache) ? this.cacheWidth : 0;
        return stream.send({
          type: "cache_shards_view",
          shards,
          request_id: message.request_id,
        });
      }
      case "cache_get":
      case "cache_put":
      case "cache_delete":
        return this.#cache(stream, message);
      case "counter_add":
      case "counter_get":
        return this.#counter(stream, message);
      case "publish_width":
        return;
      default:
        stream.send({ type: "unsupported", request_type: message.type });
    }
  }

  /** Nothing more comes on a stream. */
  streamEnded(_stream: BrokerStream): void {
    // Event streams live on their own; there is nothing to clean up.
  }

  #cache(
    stream: BrokerStream,
    message: Extract<Message, { type: "cache_get" | "cache_put" | "cache_delete" }>,
  ): void {
    const cache = this.caches.get(message.cache);
    if (cache === undefined) {
      return stream.refuse("not_found", "retry_after", "cache scope not found");
    }
    const { tenant_id, namespace, key, request_id } = message;
    if (message.type === "cache_put") {
      cache.set(key, message.value);
      return stream.send({ type: "cache_ok", request_id: request_id! });
    }
    const value = cache.get(key) ?? null;
    if (message.type === "cache_delete") cache.delete(key);
    stream.send({
      type: "cache_value",
      tenant_id,
      namespace,
      cache: message.cache,
      key,
      value,
      request_id: request_id!,
    });
  }

  #counter(
    stream: BrokerStream,
    message: Extract<Message, { type: "counter_add" | "counter_get" }>,
  ): void {
    const { cache, key, request_id } = message;
    if (!this.caches.has(cache)) {
      return stream.refuse("not_found", "retry_after", "cache scope not found");
    }
    const name = JSON.stringify([cache, key]);
    if (message.type === "counter_add") {
      this.counters.set(name, (this.counters.get(name) ?? 0n) + message.delta);
    }
    const value = this.counters.get(name);
    stream.send({
      type: "counter_value",
      ...(value === undefined ? {} : { value }),
      request_id,
    });
  }

  async #subscribe(stream: BrokerStream, message: SubscribeMessage): Promise<void> {
    const shard = this.streams.get(message.stream)?.[message.shard ?? 0];
    if (shard === undefined) {
      stream.refuse("not_found", "retry_after", "stream not found");
      return stream.finish();
    }
    const tail = shard.records.length;
    const { start } = message;
    const from = typeof start === "object"
      ? Number(start.offset)
      : start === "earliest"
      ? shard.oldest
      : tail;
    if (from > tail || from < shard.oldest) {
      stream.send({
        type: "subscribe_cursor_error",
        reason: from > tail ? "in_future" : "too_old",
        requested: BigInt(from),
        available: BigInt(from > tail ? tail : shard.oldest),
      });
      return stream.finish();
    }
    const id = this.nextSubscription();
    const events = await stream.connection.events(id);
    const offsets = { start_offset: BigInt(from), live_offset: BigInt(tail) };
    stream.send({ type: "subscribed", subscription_id: id, ...(this.durable ? offsets : {}) });
    stream.finish();
    if (from < shard.records.length) {
      this.#deliver(events, shard.records.slice(from), from);
    }
    shard.subscribers.add(events);
    void stream.connection.connection.closed.then(() => shard.subscribers.delete(events));
  }

  #deliver(events: EventSender, payloads: Uint8Array[], base: number): void {
    events.batch({ payloads, ...(this.durable ? { baseOffset: BigInt(base) } : {}) });
  }
}
