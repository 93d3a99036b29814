// One stream that carries the batches of a producer to one shard. The rule: answers are taken in
// the order the batches were sent, and a stream that answers otherwise is broken; whoever uses it
// sends again on another one (spec/client.md §6, spec/wire.md §8.3).

import { encodeMessage, encodePublishScoped } from "@felix/wire";
import { ConnectionError, ProtocolError, UnsupportedError } from "../failure/classes.ts";
import { serves } from "../features.ts";
import type { Channel, ChannelUser } from "../link/channel.ts";
import { backgroundTimeout, monotonicMs } from "../runtime/deno.ts";
import type { ProducerBatch } from "./producer_batch.ts";
import { readAnswer } from "./publish_answer.ts";
import type { PublishAnswer } from "./publish_answer.ts";
import type { StreamScope } from "./stream_scope.ts";

/** Batches that a shard remembers of a producer. */
export const MAX_WINDOW = 64;

/** Who uses a stream. */
export interface ProducerStreamUser {
  /** The oldest batch that was unanswered is answered. */
  answered(batch: ProducerBatch, answer: PublishAnswer, stream: ProducerStream): void;
  /** It has ended; what is unanswered may have been written. */
  lost(cause: unknown, stream: ProducerStream): void;
}

/** One stream. */
export class ProducerStream implements ChannelUser {
  /** Address of its broker. */
  readonly broker: string;
  /** Batches that may be unanswered. */
  readonly window: number;
  /** Sent and not answered, in order. */
  readonly unanswered: ProducerBatch[] = [];
  readonly #channel: Channel;
  readonly #scope: StreamScope;
  readonly #user: ProducerStreamUser;
  readonly #stallMs: number;
  readonly #binary: boolean;
  #nextId = 1;
  #progressMs = 0;
  #stopStallTimer: (() => void) | null = null;
  #left = false;

  /** Takes over an authenticated channel. @throws {UnsupportedError} */
  constructor(
    channel: Channel,
    scope: StreamScope,
    user: ProducerStreamUser,
    limits: { window: number; stallMs: number },
  ) {
    const negotiated = channel.negotiated!;
    this.broker = channel.broker;
    if (!serves(negotiated, "idempotentProducer")) {
      void channel.finish();
      throw new UnsupportedError({
        message: "the broker does not serve idempotent producers",
        operation: "producer",
        broker: this.broker,
        feature: "idempotentProducer",
      });
    }
    this.#channel = channel;
    this.#scope = scope;
    this.#user = user;
    this.#stallMs = limits.stallMs;
    this.#binary = serves(negotiated, "binaryIdempotent");
    const granted = serves(negotiated, "publishPipeline") ? negotiated.publishWindow : 0;
    this.window = Math.max(1, Math.min(limits.window, granted, MAX_WINDOW));
    channel.user = this;
  }

  /** Whether one more batch may be sent. */
  get hasRoom(): boolean {
    return !this.#left && this.#channel.writable && this.unanswered.length < this.window;
  }

  /** Sends a batch, which has its number. */
  send(batch: ProducerBatch, producerId: bigint): void {
    const { content: { payloads, key } } = batch;
    const { out } = this.#channel;
    const sequence = batch.sequence!;
    batch.attempts++;
    batch.requestId = this.#nextId++;
    if (this.#binary) {
      const requestId = batch.requestId;
      const fields = { key, requestId, ack: 2, producerId, sequence } as const;
      encodePublishScoped(out, this.#scope.bytes, payloads, fields);
    } else {
      const { tenant, namespace, stream } = this.#scope;
      encodeMessage({
        type: "publish_idempotent",
        tenant_id: tenant,
        namespace,
        stream,
        payloads,
        ...(key === null ? {} : { key }),
        request_id: BigInt(batch.requestId),
        producer_id: producerId,
        sequence,
      }, out);
    }
    this.unanswered.push(batch);
    if (this.unanswered.length === 1) this.#watch();
    this.#channel.flushSoon();
  }

  /** Ends it cleanly; everything is answered. */
  async finish(): Promise<void> {
    this.#left = true;
    this.#stopStallTimer?.();
    await this.#channel.finish();
    await this.#channel.whenEnded;
  }

  /** Gives it up without a word to its user. */
  leave(): void {
    this.#left = true;
    this.#stopStallTimer?.();
    this.#channel.abandon(null);
  }

  onFrame(flags: number, payload: Uint8Array): void {
    const answer = readAnswer(flags, payload, this.broker);
    const batch = this.unanswered[0];
    if (batch === undefined || batch.requestId !== answer.id) {
      throw new ProtocolError({
        message: `an answer to publish ${answer.id} out of turn`,
        operation: "publish",
        broker: this.broker,
      });
    }
    this.unanswered.shift();
    this.#progressMs = monotonicMs();
    if (this.unanswered.length === 0) this.#stopStallTimer?.();
    this.#user.answered(batch, answer, this);
  }

  onEnd(cause: unknown): void {
    this.#stopStallTimer?.();
    if (this.#left) return;
    this.#left = true;
    if (this.unanswered.length > 0) this.#channel.distrust();
    this.#user.lost(cause, this);
  }

  /** Ends the stream when it answers nothing for long. */
  #watch(sinceMs: number = monotonicMs()): void {
    this.#progressMs = sinceMs;
    const leftMs = this.#stallMs - (monotonicMs() - sinceMs);
    this.#stopStallTimer?.();
    this.#stopStallTimer = backgroundTimeout(() => {
      if (this.unanswered.length === 0) return;
      if (monotonicMs() - this.#progressMs < this.#stallMs) return this.#watch(this.#progressMs);
      this.#channel.distrust();
      this.#channel.abandon(
        new ConnectionError("request", {
          message: `a batch was not answered within ${this.#stallMs} ms`,
          operation: "publish",
          broker: this.broker,
        }),
      );
    }, Math.max(1, leftMs));
  }
}
