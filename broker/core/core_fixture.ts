// What the tests of the broker core build on: streams, publishes that remember their outcomes, and
// what a subscriber would see. Used by tests only.

import { HEADROOM_BYTES } from "./envelope.ts";
import { PublishCounters } from "./publish_counters.ts";
import type { ConnectionBudget, PipelineSettings, PublishJob } from "./publish_job.ts";
import type { PublishOutcome } from "./publish_job.ts";
import { PublishPipeline } from "./publish_pipeline.ts";
import { recordBatchOf, recordsAt } from "./record_batch.ts";
import type { RecordBatch } from "./record_batch.ts";
import { StreamRegistry } from "./stream_registry.ts";
import type { Stream } from "./stream_registry.ts";
import type { StreamShard, SubscribeStart } from "./stream_shard.ts";
import type { Subscriber, SubscriberOptions } from "./subscriber.ts";

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** A batch of records with these texts. */
export function batchOf(...texts: string[]): RecordBatch {
  return recordBatchOf(texts.map((text) => encoder.encode(text)));
}

/** A batch of one record of `bytes` zeros. */
export function blankBatch(bytes: number): RecordBatch {
  return recordBatchOf([new Uint8Array(bytes)]);
}

/** Registers an in-memory stream. */
export function streamIn(
  registry: StreamRegistry,
  stream = "events",
  options: { tenant?: string; shards?: number } = {},
): Stream {
  return registry.register({
    tenant: options.tenant ?? "acme",
    namespace: "main",
    stream,
    shards: options.shards ?? 1,
    routing: "modulo",
    durable: false,
  });
}

/** The only shard of a new stream. */
export function newShard(
  options: { ringRecords?: number; ringBytes?: number } = {},
): StreamShard {
  return streamIn(new StreamRegistry(options)).shards[0]!;
}

/** Subscribes and fails unless that is let in. */
export function subscribed(
  shard: StreamShard,
  start: SubscribeStart = "latest",
  options: Partial<SubscriberOptions> = {},
): Subscriber {
  const result = shard.subscribe(start, {
    policy: "drop_new",
    capacityEnvelopes: 512,
    ...options,
  });
  if (result.kind !== "subscribed") throw new TypeError(`subscribe: ${result.kind}`);
  return result.subscriber;
}

/** Takes everything queued: `sequence:text` of every record. */
export function drain(subscriber: Subscriber): string[] {
  const seen: string[] = [];
  for (;;) {
    const deliveries = subscriber.take(64, 65_536);
    if (deliveries.length === 0) return seen;
    for (const { base, bodyStart, count, envelope } of deliveries) {
      const records = recordsAt(envelope.storage, bodyStart, count);
      records.forEach((record, at) => seen.push(`${base + at}:${decoder.decode(record)}`));
    }
  }
}

/** The records of a whole envelope, as texts. */
export function textsOf(storage: Uint8Array, count: number): string[] {
  return recordsAt(storage, HEADROOM_BYTES, count).map((record) => decoder.decode(record));
}

/** A publish that remembers what became of it. */
export class TestPublish implements PublishJob {
  readonly outcomes: PublishOutcome[] = [];
  admissions = 0;
  readonly tenant: string;
  /** Called with every outcome. */
  onSettle: ((outcome: PublishOutcome) => void) | null = null;

  constructor(
    readonly shard: StreamShard,
    readonly batch: RecordBatch,
    readonly budget: ConnectionBudget,
    readonly acked = true,
  ) {
    this.tenant = shard.stream.definition.tenant;
  }

  /** The first outcome as a short text: `written 3`, `overloaded`, `shed`, ... or `pending`. */
  get result(): string {
    const outcome = this.outcomes[0];
    if (outcome === undefined) return "pending";
    switch (outcome.kind) {
      case "written":
        return `written ${outcome.offset}`;
      case "shed":
        return "shed";
      case "sequence_refused":
        return outcome.reason;
      default:
        return outcome.code;
    }
  }

  settle(outcome: PublishOutcome): void {
    this.outcomes.push(outcome);
    this.onSettle?.(outcome);
  }

  onAdmitted(): void {
    this.admissions++;
  }
}

/** A pipeline with small waits, its counters, and a budget of one connection. */
export function newPipeline(settings: Partial<PipelineSettings> = {}): {
  pipeline: PublishPipeline;
  counters: PublishCounters;
  budget: ConnectionBudget;
} {
  const counters = new PublishCounters();
  const pipeline = new PublishPipeline({
    executors: 4,
    queueDepth: 512,
    inflightBytes: 64 * 1024 * 1024,
    connectionInflightBytes: 16 * 1024 * 1024,
    ingressWait: false,
    queueWaitMs: 2000,
    ackWaitMs: 2000,
    ...settings,
  }, counters);
  return { pipeline, counters, budget: pipeline.createBudget() };
}

/** Makes `shard` refuse appends until the answered subscriber is read or unsubscribed. */
export function blockShard(shard: StreamShard): Subscriber {
  const subscriber = subscribed(shard, "latest", { policy: "block", capacityEnvelopes: 1 });
  shard.append([batchOf("blocker")]);
  return subscriber;
}
