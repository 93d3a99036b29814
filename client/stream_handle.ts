// A stream as the application holds it. Handles are cheap: they hold no connection, and a stream
// that does not exist shows at the first operation.

import { toBytes } from "./bytes.ts";
import { CallGuard } from "./call_guard.ts";
import { InvalidArgumentError } from "./failure/classes.ts";
import type { ClientCore } from "./link/client_core.ts";
import { withRetries } from "./link/retrier.ts";
import { batcherWritable, RecordBatcher } from "./publish/batcher.ts";
import type { Batcher, BatcherOptions, WritableRecord } from "./publish/batcher.ts";
import { ACK_BYTE, checkPublishOptions } from "./publish/publish_options.ts";
import type { PublishOptions, PublishResult } from "./publish/publish_options.ts";
import type { Producers } from "./publish/idempotent_producer.ts";
import type { IdempotentProducer, ProducerOptions } from "./publish/producer_types.ts";
import type { Publisher } from "./publish/publisher.ts";
import type { StreamScope } from "./publish/stream_scope.ts";
import type { Queries } from "./routing/queries.ts";
import { openSharded } from "./subscribe/sharded_subscription.ts";
import type { ShardedSubscribeOptions, ShardedSubscription } from "./subscribe/sharded_types.ts";
import type { SubscribeOptions } from "./subscribe/subscribe_options.ts";
import type { MoveListener } from "./subscribe/event_feed.ts";
import type { Subscriptions } from "./subscribe/subscriptions.ts";
import type { ShardSubscription, Subscription } from "./subscribe/subscription.ts";
import type { AckMode, BytesLike, CallOptions, StreamRouting } from "./types.ts";

/** A stream. */
export interface StreamHandle {
  /** Its namespace. */
  readonly namespace: string;
  /** Its name. */
  readonly name: string;
  /**
   * Publishes one record. The bytes must not change until it is settled.
   *
   * @example
   * ```ts
   * import type { FelixClient } from "@felix/client";
   *
   * async function order(client: FelixClient): Promise<bigint | null> {
   *   const result = await client.stream("orders").publish("hello", { key: "customer-7" });
   *   return result.offset;
   * }
   * ```
   * @throws {OutcomeUnknownError} it may have been written; it was not sent again
   */
  publish(payload: BytesLike, options?: PublishOptions): Promise<PublishResult>;
  /** Publishes records as one frame: they get offsets without a gap, or all fail. */
  publishBatch(payloads: readonly BytesLike[], options?: PublishOptions): Promise<PublishResult>;
  /** A producer whose batches are written once, whatever fails. @throws {UnsupportedError} */
  producer(options?: ProducerOptions): Promise<IdempotentProducer>;
  /** Collects records into frames. */
  batcher(options?: BatcherOptions): Batcher;
  /** Publishes what is written to a web stream. */
  writable(options?: BatcherOptions): WritableStream<WritableRecord>;
  /**
   * Subscribes to one shard.
   *
   * @example
   * ```ts
   * import type { FelixClient } from "@felix/client";
   *
   * async function follow(client: FelixClient): Promise<void> {
   *   await using orders = await client.stream("orders").subscribe({ start: "earliest" });
   *   for await (const event of orders) console.log(event.offset, event.text());
   * }
   * ```
   */
  subscribe(options?: SubscribeOptions): Promise<Subscription>;
  /** Subscribes to several shards; their events are merged. */
  subscribeSharded(options?: ShardedSubscribeOptions): Promise<ShardedSubscription>;
  /** Asks how many shards there are and how keys map to them. */
  routing(options?: CallOptions): Promise<StreamRouting>;
}

/** What handles need from their client. */
export interface StreamParts {
  readonly publisher: Publisher;
  readonly producers: Producers;
  readonly queries: Queries;
  readonly core: ClientCore;
  readonly subscriptions: Subscriptions;
}

/** The handle behind the interface. */
export class FelixStream implements StreamHandle {
  readonly namespace: string;
  readonly name: string;
  readonly #parts: StreamParts;
  readonly #scope: StreamScope;
  readonly #ack: AckMode | undefined;

  /** A handle for one stream; `ack` is the client's default. */
  constructor(parts: StreamParts, scope: StreamScope, ack: AckMode | undefined) {
    this.namespace = scope.namespace;
    this.name = scope.stream;
    this.#parts = parts;
    this.#scope = scope;
    this.#ack = ack;
  }

  publish(payload: BytesLike, options: PublishOptions = {}): Promise<PublishResult> {
    try {
      const bytes = [toBytes(payload, "publish")];
      return this.#send("publish", bytes, options, options.ack ?? this.#ack ?? "perMessage");
    } catch (error) {
      return Promise.reject(error);
    }
  }

  publishBatch(
    payloads: readonly BytesLike[],
    options: PublishOptions = {},
  ): Promise<PublishResult> {
    try {
      if (payloads.length === 0) {
        throw new InvalidArgumentError({
          message: "a batch must not be empty",
          operation: "publishBatch",
        });
      }
      const bytes = payloads.map((payload) => toBytes(payload, "publishBatch"));
      return this.#send("publishBatch", bytes, options, options.ack ?? this.#ack ?? "perBatch");
    } catch (error) {
      return Promise.reject(error);
    }
  }

  async producer(options: ProducerOptions = {}): Promise<IdempotentProducer> {
    return await this.#parts.producers.open(this.#scope, options);
  }

  batcher(options: BatcherOptions = {}): Batcher {
    return this.#batcher(options);
  }

  writable(options: BatcherOptions = {}): WritableStream<WritableRecord> {
    return batcherWritable(this.#batcher(options));
  }

  async subscribe(options: SubscribeOptions = {}): Promise<Subscription> {
    return await this.#parts.subscriptions.open(this.#scope.route, options);
  }

  async subscribeSharded(options: ShardedSubscribeOptions = {}): Promise<ShardedSubscription> {
    const { core, subscriptions } = this.#parts;
    const { route } = this.#scope;
    const open = (one: SubscribeOptions, onMoved: MoveListener): Promise<ShardSubscription> =>
      subscriptions.open(route, one, onMoved);
    const routing = (): Promise<StreamRouting> => this.routing(options);
    return await openSharded({ core, stream: route.name, open, routing }, options);
  }

  async routing(options: CallOptions = {}): Promise<StreamRouting> {
    const { core } = this.#parts;
    const operation = "routing";
    const guard = new CallGuard(operation, options, core.settings.requestTimeoutMs);
    const { route } = this.#scope;
    try {
      const known = await withRetries(
        core,
        { operation, resource: route.resource, guard },
        () => this.#parts.queries.streamRouting(this.namespace, this.name),
      );
      route.width = known.shards;
      route.mapping = known.mapping;
      return known;
    } finally {
      guard.dispose();
    }
  }

  #batcher(options: BatcherOptions): RecordBatcher {
    return new RecordBatcher(this.#parts.publisher, this.#scope, options);
  }

  #send(
    operation: string,
    payloads: readonly Uint8Array[],
    options: PublishOptions,
    ack: AckMode,
  ): Promise<PublishResult> {
    checkPublishOptions(options, ack, operation);
    const key = options.key === undefined ? null : toBytes(options.key, operation);
    const request = { operation, key, ack: ACK_BYTE[ack] };
    return this.#parts.publisher.publish(this.#scope, payloads, request, options);
  }
}
