// The publish pipeline one rule at a time: grouping, lanes, removal, faults (B8, B10).

import { assertEquals, assertStrictEquals, assertThrows } from "@std/assert";
import {
  batchOf,
  blankBatch,
  blockShard,
  drain,
  newPipeline,
  newShard,
  streamIn,
  subscribed,
  TestPublish,
} from "./core_fixture.ts";
import { CoreError } from "./core_error.ts";
import { recordBatchOf } from "./record_batch.ts";
import { StreamRegistry } from "./stream_registry.ts";

function results(jobs: readonly TestPublish[]): string[] {
  return jobs.map(({ result }) => result);
}

Deno.test("a claim takes at most 64 publishes", () => {
  const { pipeline, counters, budget } = newPipeline();
  const shard = newShard();
  const subscriber = subscribed(shard);
  const jobs = Array.from({ length: 100 }, () => new TestPublish(shard, batchOf("a"), budget));
  for (const job of jobs) assertEquals(pipeline.submit(job, 0), "queued");
  assertEquals([pipeline.queuedJobs, pipeline.queuedBytes], [100, 500]);
  pipeline.pump();
  assertEquals(results(jobs), jobs.map((_, at) => `written ${at}`));
  assertEquals(subscriber.queuedEnvelopes, 2);
  assertEquals([counters.claimJobs[64], counters.claimJobs[36]], [1, 1]);
  assertEquals([pipeline.queuedJobs, pipeline.queuedBytes, budget.used], [0, 0, 0]);
});

Deno.test("a claim takes at most 1 MiB behind its first publish", () => {
  const { pipeline, counters, budget } = newPipeline();
  const shard = newShard();
  // A record of four bytes less than half a MiB takes half a MiB with its length.
  const half = 512 * 1024 - 4;
  const sizes = [2 * half, half, half, 1];
  for (const size of sizes) pipeline.submit(new TestPublish(shard, blankBatch(size), budget), 0);
  pipeline.pump();
  assertEquals([counters.claimJobs[3], counters.claimJobs[1]], [1, 1]);
});

Deno.test("empty records are not free: they cost 1 each, and their bytes bound a claim", () => {
  const { pipeline, counters, budget } = newPipeline();
  const registry = new StreamRegistry();
  const shard = streamIn(registry).shards[0]!;
  const rival = streamIn(registry, "events", { tenant: "rival" }).shards[0]!;
  const empty = { body: new Uint8Array(4 * 200_000), count: 200_000, payloadBytes: 0 };
  for (let at = 0; at < 3; at++) pipeline.submit(new TestPublish(shard, empty, budget), 0);
  assertEquals([budget.used, pipeline.queuedBytes], [2_400_000, 2_400_000]);
  const small = new TestPublish(rival, batchOf("x"), budget);
  small.onSettle = () => assertEquals(shard.tail, 0);
  pipeline.submit(small, 0);
  pipeline.pump();
  assertEquals(small.result, "written 0");
  assertEquals([counters.claimJobs[2], counters.claimJobs[1]], [1, 2]);
});

Deno.test("an empty publish is written at the tail, alone, and nothing overtakes it", () => {
  const { pipeline, counters, budget } = newPipeline();
  const shard = newShard();
  const subscriber = subscribed(shard);
  const jobs = [["a"], [], ["b", "c"], ["d"]].map((texts) =>
    new TestPublish(shard, batchOf(...texts), budget)
  );
  for (const job of jobs) pipeline.submit(job, 0);
  pipeline.pump();
  assertEquals(results(jobs), ["written 0", "written 1", "written 1", "written 3"]);
  assertEquals([counters.claimJobs[1], counters.claimJobs[2]], [1, 1]);
  assertEquals(drain(subscriber), ["0:a", "1:b", "2:c", "3:d"]);
});

Deno.test("a held-up lane asks to be pumped once its shard has room, and holds up no other", () => {
  const { pipeline, budget } = newPipeline();
  const registry = new StreamRegistry();
  const shards = ["a", "b"].map((name) => streamIn(registry, name).shards[0]!);
  const blocker = blockShard(shards[0]!);
  let asked = 0;
  pipeline.onRunnable = () => asked++;
  const jobs = shards.map((shard) => new TestPublish(shard, batchOf("x"), budget));
  for (const job of jobs) pipeline.submit(job, 0);
  pipeline.pump();
  assertEquals(results(jobs), ["pending", "written 0"]);
  assertEquals(asked, 0);
  blocker.take(1, 1);
  assertEquals([asked, jobs[0]!.result], [1, "pending"]);
  pipeline.pump();
  assertEquals(results(jobs), ["written 1", "written 0"]);
});

Deno.test("a body that stays behind is copied before its read buffer is used again", () => {
  const { pipeline, budget } = newPipeline();
  const shard = newShard();
  const blocker = blockShard(shard);
  const { body } = batchOf("x");
  const job = new TestPublish(shard, { body, count: 1, payloadBytes: 1 }, budget);
  pipeline.submit(job, 0);
  pipeline.pump();
  pipeline.ownPending();
  body.fill(255);
  drain(blocker);
  pipeline.pump();
  assertEquals(drain(blocker), ["1:x"]);
});

Deno.test("publishes to a stream that is removed are refused, parked or not", () => {
  const { pipeline, budget } = newPipeline();
  const registry = new StreamRegistry();
  const [held, open] = [
    streamIn(registry, "held").shards[0]!,
    streamIn(registry, "open").shards[0]!,
  ];
  blockShard(held);
  let asked = 0;
  pipeline.onRunnable = () => asked++;
  const jobs = [held, open].map((shard) => new TestPublish(shard, batchOf("x"), budget));
  pipeline.submit(jobs[0]!, 0);
  pipeline.pump();
  pipeline.submit(jobs[1]!, 0);
  for (const name of ["held", "open"]) registry.remove("acme", "main", name);
  assertEquals(asked, 1);
  pipeline.pump();
  const late = [true, false].map((acked) => new TestPublish(open, batchOf("x"), budget, acked));
  for (const job of late) assertEquals(pipeline.submit(job, 0), "settled");
  assertEquals(results([...jobs, ...late]), ["not_found", "not_found", "not_found", "shed"]);
  assertEquals([pipeline.queuedJobs, budget.used], [0, 0]);
});

Deno.test("a shard that took over a removed one's handle has a lane of its own", () => {
  const { pipeline, budget } = newPipeline();
  const registry = new StreamRegistry();
  const old = streamIn(registry, "old").shards[0]!;
  pipeline.submit(new TestPublish(old, batchOf("x"), budget), 0);
  pipeline.pump();
  registry.remove("acme", "main", "old");
  const shard = streamIn(registry, "new", { tenant: "other" }).shards[0]!;
  assertEquals(shard.handle, old.handle);
  const blocker = blockShard(shard);
  const job = new TestPublish(shard, batchOf("x"), budget);
  pipeline.submit(job, 0);
  pipeline.pump();
  assertEquals(job.result, "pending");
  drain(blocker);
  pipeline.pump();
  assertEquals(job.result, "written 1");
});

Deno.test("an append that fails fails its claim only; the lane goes on", () => {
  const { pipeline, counters, budget } = newPipeline();
  const shard = newShard();
  const faults: unknown[] = [];
  pipeline.onFault = (error) => faults.push(error);
  const { body } = recordBatchOf([new Uint8Array(3)]);
  const broken = new TestPublish(shard, { body, count: 1, payloadBytes: 9 }, budget);
  const grouped = new TestPublish(shard, batchOf("x"), budget);
  pipeline.submit(broken, 0);
  pipeline.submit(grouped, 0);
  pipeline.pump();
  const after = new TestPublish(shard, batchOf("y"), budget);
  pipeline.submit(after, 0);
  pipeline.pump();
  assertEquals(results([broken, grouped, after]), ["internal", "internal", "written 0"]);
  assertEquals([faults.length, counters.workerRestarts, budget.used], [1, 1, 0]);
});

Deno.test("records that were appended before something failed are not denied", () => {
  const { pipeline, budget } = newPipeline();
  const shard = newShard();
  pipeline.onFault = () => {};
  const subscriber = subscribed(shard);
  subscriber.onReady = () => {
    throw new RangeError("onReady");
  };
  const job = new TestPublish(shard, batchOf("x"), budget);
  pipeline.submit(job, 0);
  pipeline.pump();
  assertEquals(job.result, "unacknowledged");
  assertEquals(drain(subscriber), ["0:x"]);
});

Deno.test("a callback that throws spoils no other publish; without onFault pump throws it", () => {
  const { pipeline, counters, budget } = newPipeline();
  const shard = newShard();
  const jobs = [1, 2, 3].map(() => new TestPublish(shard, batchOf("x"), budget));
  const error = new RangeError("settle");
  jobs[0]!.onSettle = () => {
    throw error;
  };
  for (const job of jobs) pipeline.submit(job, 0);
  assertStrictEquals(assertThrows(() => pipeline.pump(), RangeError), error);
  assertEquals(results(jobs), ["written 0", "written 1", "written 2"]);
  assertEquals([counters.workerRestarts, budget.used], [1, 0]);
  pipeline.pump();
});

Deno.test("a publish submitted while another is settled is run by the same pump", () => {
  const { pipeline, budget } = newPipeline();
  const shard = newShard();
  const second = new TestPublish(shard, batchOf("b"), budget);
  const first = new TestPublish(shard, batchOf("a"), budget);
  first.onSettle = () => {
    pipeline.submit(second, 0);
    pipeline.pump();
    assertEquals(second.result, "pending");
  };
  pipeline.submit(first, 0);
  pipeline.pump();
  assertEquals(second.result, "written 1");
});

Deno.test("B8: a job of another tenant than its shard's is a bug of the caller", () => {
  const { pipeline, budget } = newPipeline();
  const job = new TestPublish(newShard(), batchOf("x"), budget);
  const stolen = Object.assign(Object.create(job), { tenant: "other" });
  assertThrows(() => pipeline.submit(stolen, 0), CoreError, "B8");
});
