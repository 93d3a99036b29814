// An idempotent producer: its id, its shards, and who of a client's producers is to be waited for
// when the client closes (spec/client.md §6).

import { toBytes } from "../bytes.ts";
import type { ByteBudget } from "../byte_budget.ts";
import { CallGuard, checkTimeout } from "../call_guard.ts";
import {
  ClosedError,
  InvalidArgumentError,
  ProducerError,
  ProtocolError,
  UnsupportedError,
} from "../failure/classes.ts";
import type { FelixError } from "../failure/felix_error.ts";
import type { ClientCore } from "../link/client_core.ts";
import type { Fleet } from "../link/fleet.ts";
import { oneShot } from "../link/one_shot.ts";
import { withRetries } from "../link/retrier.ts";
import type { Queries } from "../routing/queries.ts";
import type { Routes } from "../routing/routes.ts";
import type { BytesLike, CallOptions } from "../types.ts";
import { ProducerBatch } from "./producer_batch.ts";
import { ProducerShard } from "./producer_shard.ts";
import type { ShardHost } from "./producer_shard.ts";
import { MAX_WINDOW } from "./producer_stream.ts";
import type { IdempotentProducer, ProducerOptions } from "./producer_types.ts";
import type { ProducerPublishOptions } from "./producer_types.ts";
import { framePayloadBytes } from "./publish_frame.ts";
import type { PublishResult } from "./publish_options.ts";
import type { StreamScope } from "./stream_scope.ts";

/** What goes around a batch in its frame: header, producer and sequence. */
const AROUND_BYTES = 12 + 16;

/** What producers need from their client. */
export interface ProducerParts {
  readonly core: ClientCore;
  readonly fleet: Fleet;
  readonly routes: Routes;
  readonly queries: Queries;
  /** Shared with all other publishes. */
  readonly budget: ByteBudget;
  readonly stallMs: number;
}

/** The producers of one client. */
export class Producers {
  readonly #parts: ProducerParts;
  readonly #open = new Set<Producer>();

  /** None yet. */
  constructor(parts: ProducerParts) {
    this.#parts = parts;
  }

  /** A new producer. @throws {FelixError} no id or no width could be had */
  async open(scope: StreamScope, options: ProducerOptions): Promise<IdempotentProducer> {
    const { core, queries } = this.#parts;
    const operation = "producer";
    const { window = MAX_WINDOW } = options;
    if (!Number.isInteger(window) || window < 1) {
      const message = `window must be 1 or more, not ${window}`;
      throw new InvalidArgumentError({ message, operation });
    }
    if (core.closed) throw new ClosedError({ message: "the client is closed", operation });
    const guard = new CallGuard(operation, options, core.settings.requestTimeoutMs);
    const { resource } = scope;
    try {
      const routing = await withRetries(
        core,
        { operation, resource, guard },
        () => queries.streamRouting(scope.namespace, scope.stream),
      );
      scope.route.width = routing.shards;
      scope.route.mapping = routing.mapping;
      const id = await withRetries(
        core,
        { operation, resource, guard },
        () => this.#newId(resource),
      );
      const producer = new Producer(scope, id, options, {
        ...this.#parts,
        window,
        newId: () => this.#newId(resource),
        closed: () => this.#open.delete(producer),
      });
      this.#open.add(producer);
      return producer;
    } finally {
      guard.dispose();
    }
  }

  /** Resolves once nothing of any producer is under way. */
  async drained(): Promise<void> {
    await Promise.allSettled([...this.#open].map((producer) => producer.close()));
  }

  /** Fails what is left. */
  close(): void {
    const error = new ClosedError({ message: "the client is closed", operation: "publish" });
    for (const producer of this.#open) producer.end(error);
    this.#open.clear();
  }

  async #newId(resource: string): Promise<bigint> {
    const { core, fleet, queries } = this.#parts;
    const context = { operation: "producer", resource };
    const link = await (await fleet.reach()).anyLink();
    if (!queries.canAsk("idempotentProducer")) {
      throw new UnsupportedError({
        message: "the broker does not serve idempotent producers",
        ...context,
        feature: "idempotentProducer",
      });
    }
    const request_id = BigInt(core.nextRequestId());
    const { message } = await oneShot(link, { type: "producer_init", request_id }, context, false);
    if (message.type !== "producer_init_ok" || message.request_id !== request_id) {
      const text = `${message.type} in answer to producer_init`;
      throw new ProtocolError({ message: text, ...context, broker: link.broker });
    }
    return message.producer_id;
  }
}

/** What one producer needs. */
interface ProducerHost extends ProducerParts {
  readonly window: number;
  newId(): Promise<bigint>;
  closed(): void;
}

class Producer implements IdempotentProducer, ShardHost {
  readonly core: ClientCore;
  readonly fleet: Fleet;
  readonly routes: Routes;
  readonly budget: ByteBudget;
  readonly window: number;
  readonly stallMs: number;
  readonly reinitialises: boolean;
  readonly #host: ProducerHost;
  readonly #scope: StreamScope;
  readonly #shards = new Map<number, ProducerShard>();
  /** Wait for bytes of the budget. */
  readonly #waiting = new Set<ProducerBatch>();
  #id: bigint;
  #stoppedBy: ProducerError | null = null;
  #closing: Promise<void> | null = null;

  constructor(scope: StreamScope, id: bigint, options: ProducerOptions, host: ProducerHost) {
    this.core = host.core;
    this.fleet = host.fleet;
    this.routes = host.routes;
    this.budget = host.budget;
    this.window = host.window;
    this.stallMs = host.stallMs;
    this.reinitialises = options.onUnknownProducer === "reinitialise";
    this.#host = host;
    this.#scope = scope;
    this.#id = id;
  }

  get id(): bigint {
    return this.#id;
  }

  get state(): "ready" | "inDoubt" | "stopped" {
    if (this.#stoppedBy !== null) return "stopped";
    for (const shard of this.#shards.values()) if (shard.inDoubt) return "inDoubt";
    return "ready";
  }

  publish(payload: BytesLike, options: ProducerPublishOptions = {}): Promise<PublishResult> {
    return this.publishBatch([payload], options);
  }

  publishBatch(
    payloads: readonly BytesLike[],
    options: ProducerPublishOptions = {},
  ): Promise<PublishResult> {
    try {
      return this.#publish(payloads, options);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  async publishBatches(
    batches: readonly (readonly BytesLike[])[],
    options: ProducerPublishOptions = {},
  ): Promise<PublishResult[]> {
    return await Promise.all(batches.map((batch) => this.publishBatch(batch, options)));
  }

  async resolve(options: CallOptions = {}): Promise<void> {
    this.#check("resolve");
    const guard = new CallGuard("resolve", options, this.core.settings.requestTimeoutMs);
    try {
      const shards = [...this.#shards.values()];
      await guard.wait(Promise.all(shards.map((shard) => shard.whenIdle())).then(() => {}));
    } finally {
      guard.dispose();
    }
  }

  close(): Promise<void> {
    return this.#closing ??= this.#close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  // ShardHost

  async newId(): Promise<bigint> {
    return this.#id = await this.#host.newId();
  }

  stop(error: ProducerError): void {
    if (this.#stoppedBy !== null) return;
    this.#stoppedBy = error;
    this.end(error);
  }

  /** Fails everything that is under way. */
  end(error: FelixError): void {
    for (const batch of this.#waiting) {
      this.budget.cancel(batch);
      batch.fail(error);
    }
    this.#waiting.clear();
    for (const shard of this.#shards.values()) shard.end(error);
  }

  async #close(): Promise<void> {
    const shards = [...this.#shards.values()];
    await Promise.allSettled([...this.#waiting].map(({ promise }) => promise));
    await Promise.allSettled(shards.map((shard) => shard.whenIdle()));
    await Promise.allSettled(shards.map((shard) => shard.finish()));
    this.end(new ClosedError({ message: "the producer is closed", operation: "publish" }));
    this.#host.closed();
  }

  #check(operation: string): void {
    const closed = this.core.closed ? "client" : this.#closing !== null ? "producer" : null;
    if (closed !== null) throw new ClosedError({ message: `the ${closed} is closed`, operation });
    if (this.#stoppedBy === null) return;
    throw new ProducerError("producer_stopped", {
      message: `the producer has stopped: ${this.#stoppedBy.message}`,
      operation,
      resource: this.#scope.resource,
      cause: this.#stoppedBy,
    });
  }

  #publish(
    payloads: readonly BytesLike[],
    options: ProducerPublishOptions,
  ): Promise<PublishResult> {
    const operation = "publish";
    this.#check(operation);
    checkTimeout(options.timeoutMs, operation);
    options.signal?.throwIfAborted();
    if (payloads.length === 0) {
      throw new InvalidArgumentError({ message: "a batch must not be empty", operation });
    }
    const { settings, counters } = this.core;
    const key = options.key === undefined ? null : toBytes(options.key, operation);
    const bytes = payloads.map((payload) => toBytes(payload, operation));
    const frame = { scope: this.#scope, payloads: bytes, key, ack: 2 } as const;
    const budgetBytes = framePayloadBytes(frame) + AROUND_BYTES;
    if (budgetBytes > settings.maxFrameBytes || (key !== null && key.length > 0xffff)) {
      const message = `a frame of ${budgetBytes} bytes, or its key, is too large`;
      throw new InvalidArgumentError({ message, operation });
    }
    const shard = this.#shardOf(key);
    const { resource } = shard;
    const content = { operation, resource, payloads: bytes, key, budgetBytes };
    const timeoutMs = options.timeoutMs ?? settings.requestTimeoutMs;
    const batch = new ProducerBatch(content, options, timeoutMs, {
      admitted: (admitted) => {
        this.#waiting.delete(admitted);
        shard.enqueue(admitted);
      },
      givenUp: (givenUp) => {
        if (this.#waiting.delete(givenUp)) this.budget.cancel(givenUp);
        else shard.givenUp(givenUp);
      },
    });
    counters.publish.requests++;
    counters.publish.records += bytes.length;
    counters.publish.bytes += budgetBytes;
    if (this.budget.acquire(batch)) shard.enqueue(batch);
    else this.#waiting.add(batch);
    return batch.promise;
  }

  #shardOf(key: Uint8Array | null): ProducerShard {
    const index = this.#scope.route.shardOf(key) ?? 0;
    let shard = this.#shards.get(index);
    if (shard === undefined) {
      shard = new ProducerShard(this, this.#scope, index, this.#id);
      this.#shards.set(index, shard);
    }
    return shard;
  }
}
