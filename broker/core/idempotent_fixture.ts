// What tests of idempotent producers share: a stream with a pipeline, durable on a simulated disk
// or in memory, batches of producers by number, and outcomes as short texts.

import { LogStore, type SegmentLog, SimulatedDisk } from "@felix/storage";
import { batchOf, drain, streamIn, subscribed } from "./core_fixture.ts";
import { PublishCounters } from "./publish_counters.ts";
import type { PublishOutcome } from "./publish_job.ts";
import { PublishPipeline } from "./publish_pipeline.ts";
import { StreamRegistry } from "./stream_registry.ts";
import type { StreamShard } from "./stream_shard.ts";

/** A stream, its pipeline, and the disk under it. */
export interface World {
  readonly disk: SimulatedDisk;
  /** `null`: the stream is in memory. */
  readonly log: SegmentLog | null;
  readonly shard: StreamShard;
  readonly counters: PublishCounters;
  /** Queues without running anything. */
  queue(producer: [id: number, sequence: number] | null, ...texts: string[]): Promise<string>;
  /** Runs what is queued. */
  run(): void;
  /** Publishes one batch of a producer; what came of it, as `text`. */
  send(id: number, sequence: number, ...texts: string[]): Promise<string>;
}

const DEFINITION = {
  tenant: "acme",
  namespace: "main",
  stream: "orders",
  shards: 1,
  routing: "modulo",
  durable: true,
} as const;

function text(outcome: PublishOutcome): string {
  switch (outcome.kind) {
    case "written":
      return `at ${outcome.offset}`;
    case "sequence_refused":
      if (outcome.reason === "sequence_gap") return `sequence_gap ${outcome.expected}`;
      if (outcome.reason === "sequence_reused") return `sequence_reused at ${outcome.offset}`;
      return outcome.reason;
    case "failed":
      return outcome.code === "storage" && outcome.unsure ? "unsure" : outcome.code;
    default:
      return outcome.kind;
  }
}

async function openLog(disk: SimulatedDisk, segmentBytes: number): Promise<SegmentLog> {
  const store = await LogStore.open({
    disk,
    root: "/data",
    settings: { segmentBytes },
    nowMicros: () => 1,
    owner: "test",
  });
  return await store.openLog("streams", {
    tenant: "acme",
    namespace: "main",
    name: "orders",
    shard: 0,
  });
}

/** A stream on `log`, or in memory. */
export function worldOf(disk: SimulatedDisk, log: SegmentLog | null): World {
  const registry = new StreamRegistry();
  const stream = log === null ? streamIn(registry) : registry.register(DEFINITION, [log]);
  const shard = stream.shards[0]!;
  const counters = new PublishCounters();
  const pipeline = new PublishPipeline({
    executors: 4,
    queueDepth: 8192,
    inflightBytes: 1 << 24,
    connectionInflightBytes: 1 << 24,
    ingressWait: false,
    queueWaitMs: 1000,
    ackWaitMs: 1000,
  }, counters);
  pipeline.onRunnable = () => pipeline.pump();
  const budget = pipeline.createBudget();
  const run = () => {
    pipeline.pump();
    pipeline.ownPending();
  };
  const queue: World["queue"] = (producer, ...texts) => {
    const { promise, resolve } = Promise.withResolvers<PublishOutcome>();
    const stamp = producer === null
      ? null
      : { producerId: BigInt(producer[0]), sequence: BigInt(producer[1]) };
    const job = { tenant: "acme", shard, batch: batchOf(...texts), budget, acked: true };
    pipeline.submit({ ...job, producer: stamp, settle: resolve }, 0);
    return promise.then(text);
  };
  const send: World["send"] = (id, sequence, ...texts) => {
    const outcome = queue([id, sequence], ...texts);
    run();
    return outcome;
  };
  return { disk, log, shard, counters, queue, run, send };
}

/** A durable stream. */
export async function durable(disk = new SimulatedDisk(), segmentBytes = 1 << 20): Promise<World> {
  return worldOf(disk, await openLog(disk, segmentBytes));
}

/** The same stream after the power went. */
export const restarted = (disk: SimulatedDisk, segmentBytes?: number): Promise<World> =>
  durable(disk.afterCrash({ names: "lost", data: "lost" }), segmentBytes);

/** Everything a reader gets from the start on. */
export async function everything(shard: StreamShard): Promise<string[]> {
  const subscriber = subscribed(shard, "earliest");
  const seen: string[] = [];
  for (;;) {
    seen.push(...drain(subscriber));
    if (subscriber.historyFrom === null) return seen;
    await shard.replay(subscriber);
  }
}
