// What an idempotent producer takes and gives (spec/client.md §6).

import type { BytesLike, CallOptions } from "../types.ts";
import type { PublishResult } from "./publish_options.ts";

/** Settings of `StreamHandle.producer`. */
export interface ProducerOptions extends CallOptions {
  /** Batches in flight to a shard, 1 or more; default 64, and more count as 64. */
  readonly window?: number;
  /**
   * What to do when a shard no longer knows the producer, as when retention removed all its
   * batches: fail (default), or go on under a new id where no batch is in doubt.
   */
  readonly onUnknownProducer?: "throw" | "reinitialise";
}

/** Settings of one publish of a producer. */
export interface ProducerPublishOptions extends CallOptions {
  /** Routing key: picks the shard. None: shard 0. */
  readonly key?: BytesLike;
}

/**
 * Publishes every batch once, whatever becomes of connections and brokers: a batch whose outcome is
 * unknown is sent again under its own number, and the shard recognises it.
 *
 * @example
 * ```ts
 * import type { FelixClient } from "@felix/client";
 *
 * async function bill(client: FelixClient): Promise<void> {
 *   await using producer = await client.stream("invoices").producer();
 *   await producer.publish("first");
 *   await producer.publish("second", { key: "customer-7" });
 * }
 * ```
 */
export interface IdempotentProducer extends AsyncDisposable {
  /** Its id; another one after it had to begin anew. */
  readonly id: bigint;
  /** `inDoubt`: a call was given up whose batch may have been written and is still kept. */
  readonly state: "ready" | "inDoubt" | "stopped";
  /** Publishes one record. The bytes must not change until `resolve` or `close` has settled. */
  publish(payload: BytesLike, options?: ProducerPublishOptions): Promise<PublishResult>;
  /** Publishes records as one batch. */
  publishBatch(
    payloads: readonly BytesLike[],
    options?: ProducerPublishOptions,
  ): Promise<PublishResult>;
  /** Publishes batches one behind the other, in flight together. */
  publishBatches(
    batches: readonly (readonly BytesLike[])[],
    options?: ProducerPublishOptions,
  ): Promise<PublishResult[]>;
  /** Sends again what is in doubt; resolves once nothing is. */
  resolve(options?: CallOptions): Promise<void>;
  /** Takes nothing more and waits for what is under way. */
  close(): Promise<void>;
}
