// Room for a publish: which is missing, who waits for it and how long (B9).

import { assert, assertEquals } from "@std/assert";
import {
  batchOf,
  blankBatch,
  blockShard,
  drain,
  newPipeline,
  newShard,
  streamIn,
  TestPublish,
} from "./core_fixture.ts";
import { StreamRegistry } from "./stream_registry.ts";

function results(jobs: readonly TestPublish[]): string[] {
  return jobs.map(({ result }) => result);
}

Deno.test("a burst larger than the queue is no backlog while its shard takes it", () => {
  const { pipeline, counters, budget } = newPipeline({
    queueDepth: 4,
    executors: 2,
    connectionInflightBytes: 100,
    inflightBytes: 100,
  });
  const shard = newShard();
  const jobs = Array.from(
    { length: 50 },
    () => new TestPublish(shard, batchOf("abc"), budget, false),
  );
  for (const job of jobs) assertEquals(pipeline.submit(job, 0), "queued");
  pipeline.pump();
  assertEquals(results(jobs), jobs.map((_, at) => `written ${at}`));
  assertEquals(counters.ingressDropped + counters.queueFull + counters.connBytesFull, 0);
});

Deno.test("which room is missing is counted, and per tenant what became of the publish", () => {
  const settings = {
    queueDepth: 2,
    executors: 2,
    connectionInflightBytes: 100,
    inflightBytes: 150,
  };
  const { pipeline, counters, budget } = newPipeline({ ...settings, queueWaitMs: 0 });
  const shard = newShard();
  blockShard(shard);
  const submit = (bytes: number, of = budget, acked = false): string => {
    const job = new TestPublish(shard, blankBatch(bytes), of, acked);
    pipeline.submit(job, 0);
    return job.result;
  };
  assertEquals(submit(80), "pending");
  assertEquals([submit(20), counters.connBytesFull], ["shed", 1]);
  const other = pipeline.createBudget();
  assertEquals([submit(70, other), counters.bytesFull], ["shed", 1]);
  assertEquals([submit(10, other), submit(10, other), counters.queueFull], ["pending", "shed", 1]);
  assertEquals([submit(1, other, true), counters.queueFull], ["overloaded", 2]);
  assertEquals([counters.ingressDropped, counters.ingressRejected], [3, 1]);
  assertEquals(counters.tenantQueueFull, new Map([["acme", { refused: 1, dropped: 3 }]]));
});

Deno.test("a publish larger than a whole budget runs alone", () => {
  const { pipeline, budget } = newPipeline({ connectionInflightBytes: 100, inflightBytes: 100 });
  const shard = newShard();
  const blocker = blockShard(shard);
  const [small, large, last] = [10, 5000, 10].map((bytes) =>
    new TestPublish(shard, blankBatch(bytes), budget)
  ) as [TestPublish, TestPublish, TestPublish];
  assertEquals(pipeline.submit(small, 0), "queued");
  assertEquals(pipeline.submit(large, 0), "waiting");
  assertEquals(pipeline.submit(last, 0), "waiting");
  drain(blocker);
  pipeline.pump();
  assertEquals([large.admissions, budget.used, pipeline.queuedBytes], [1, 100, 100]);
  assertEquals([small, large, last].map(({ result }) => result), [
    "written 1",
    "pending",
    "pending",
  ]);
  while (pipeline.queuedJobs > 0) {
    drain(blocker);
    pipeline.pump();
  }
  assertEquals(results([large, last]), ["written 2", "written 3"]);
  assertEquals([budget.used, pipeline.queuedBytes, pipeline.waitingJobs], [0, 0, 0]);
});

Deno.test("nobody overtakes a publish that waits for the same room", () => {
  const { pipeline, budget } = newPipeline({ connectionInflightBytes: 100 });
  const registry = new StreamRegistry();
  const [held, free] = [streamIn(registry, "held"), streamIn(registry, "free")];
  blockShard(held.shards[0]!);
  const submit = (shard = held.shards[0]!, bytes = 50, of = budget): TestPublish => {
    const job = new TestPublish(shard, blankBatch(bytes), of);
    pipeline.submit(job, 0);
    return job;
  };
  submit();
  const waits = submit();
  const behind = submit(free.shards[0]!, 1);
  const elsewhere = submit(free.shards[0]!, 1, pipeline.createBudget());
  pipeline.pump();
  assertEquals(results([waits, behind, elsewhere]), ["pending", "pending", "written 0"]);
  assertEquals(pipeline.waitingJobs, 2);
  pipeline.expire(2000);
  assertEquals(results([waits, behind]), ["overloaded", "overloaded"]);
});

Deno.test("nobody overtakes a large publish that waits for bytes of the process", () => {
  const { pipeline, budget } = newPipeline({ inflightBytes: 100 });
  const registry = new StreamRegistry();
  const [held, free] = ["held", "free"].map((name) => streamIn(registry, name).shards[0]!);
  const blocker = blockShard(held!);
  const large = new TestPublish(held!, blankBatch(50), pipeline.createBudget());
  const small = new TestPublish(free!, blankBatch(1), pipeline.createBudget());
  pipeline.submit(new TestPublish(held!, blankBatch(50), budget), 0);
  assertEquals([pipeline.submit(large, 0), pipeline.submit(small, 0)], ["waiting", "waiting"]);
  drain(blocker);
  pipeline.pump();
  assertEquals([large.admissions, small.admissions, small.result], [1, 1, "written 0"]);
});

Deno.test("nobody overtakes a publish that waits for a slot of its tenant", () => {
  const { pipeline, budget } = newPipeline({ queueDepth: 1, executors: 2 });
  const shard = newShard();
  const blocker = blockShard(shard);
  const [first, waits, late] = [1, 2, 3].map(() => new TestPublish(shard, blankBatch(1), budget));
  first!.onSettle = () => assertEquals(pipeline.submit(late!, 0), "waiting");
  assertEquals([pipeline.submit(first!, 0), pipeline.submit(waits!, 0)], ["queued", "waiting"]);
  shard.unsubscribe(blocker);
  pipeline.pump();
  assertEquals(results([first!, waits!, late!]), ["written 1", "written 2", "written 3"]);
});

Deno.test("a publish that gives up lets those behind it in", () => {
  const { pipeline, budget } = newPipeline({ connectionInflightBytes: 100 });
  const registry = new StreamRegistry();
  const [held, free] = [
    streamIn(registry, "held").shards[0]!,
    streamIn(registry, "free").shards[0]!,
  ];
  blockShard(held);
  pipeline.submit(new TestPublish(held, blankBatch(50), budget), 0);
  const waits = new TestPublish(held, blankBatch(50), budget);
  const behind = new TestPublish(free, blankBatch(1), budget);
  assertEquals([pipeline.submit(waits, 0), pipeline.submit(behind, 1)], ["waiting", "waiting"]);
  pipeline.expire(2000);
  assertEquals(results([waits, behind]), ["overloaded", "written 0"]);
  assertEquals(behind.admissions, 1);
});

Deno.test("with ingressWait an unacked publish waits until its connection ends", () => {
  const { pipeline, counters, budget } = newPipeline({
    ingressWait: true,
    connectionInflightBytes: 20,
  });
  const shard = newShard();
  blockShard(shard);
  const jobs = [1, 2, 3].map(() => new TestPublish(shard, blankBatch(10), budget, false));
  assertEquals(jobs.map((job) => pipeline.submit(job, 0)), ["queued", "waiting", "waiting"]);
  pipeline.ownPending();
  assertEquals([pipeline.nextDeadline(), counters.ingressWaited], [null, 2]);
  pipeline.expire(1e9);
  assertEquals(results(jobs), ["pending", "pending", "pending"]);
  let asked = 0;
  pipeline.onRunnable = () => asked++;
  pipeline.closeBudget(budget);
  pipeline.closeBudget(budget);
  assertEquals(results(jobs), ["pending", "shed", "shed"]);
  assertEquals([counters.backpressureCancelled, asked], [2, 1]);
  const late = new TestPublish(shard, blankBatch(1), budget, false);
  assertEquals([pipeline.submit(late, 0), late.result], ["settled", "shed"]);
});

Deno.test("without an outcome in time an acked publish is unknown, and still appended", () => {
  const { pipeline, budget } = newPipeline({ ackWaitMs: 500 });
  const shard = newShard();
  const blocker = blockShard(shard);
  const job = new TestPublish(shard, batchOf("x"), budget);
  pipeline.submit(job, 100);
  pipeline.pump();
  assertEquals(pipeline.nextDeadline(), null);
  pipeline.ownPending();
  assertEquals(pipeline.nextDeadline(), 600);
  pipeline.expire(599);
  assertEquals(job.result, "pending");
  pipeline.expire(600);
  assertEquals([job.result, pipeline.nextDeadline()], ["unacknowledged", null]);
  assertEquals(drain(blocker), ["0:blocker"]);
  pipeline.pump();
  assertEquals(drain(blocker), ["1:x"]);
  assertEquals([job.outcomes.length, budget.used], [1, 0]);
});

Deno.test("the next deadline is that of the publish that is due first", () => {
  const { pipeline, budget } = newPipeline({ ackWaitMs: 500 });
  const shard = newShard();
  const blocker = blockShard(shard);
  const jobs = [0, 100].map((nowMs) => {
    const job = new TestPublish(shard, batchOf("x"), budget);
    pipeline.submit(job, nowMs);
    pipeline.pump();
    pipeline.ownPending();
    return job;
  });
  assertEquals(pipeline.nextDeadline(), 500);
  pipeline.expire(500);
  assertEquals([results(jobs), pipeline.nextDeadline()], [["unacknowledged", "pending"], 600]);
  shard.unsubscribe(blocker);
  pipeline.pump();
  assertEquals([jobs[1]!.result, pipeline.nextDeadline()], ["written 2", null]);
});

Deno.test("many tenants share one row of counters past the bound", () => {
  const { pipeline, counters } = newPipeline({ connectionInflightBytes: 1, queueWaitMs: 0 });
  const registry = new StreamRegistry();
  for (let at = 0; at < 130; at++) {
    const shard = streamIn(registry, "events", { tenant: `tenant ${at}` }).shards[0]!;
    const budget = pipeline.createBudget();
    blockShard(shard);
    for (let job = 0; job < 2; job++) {
      pipeline.submit(new TestPublish(shard, batchOf("x"), budget, at % 2 === 0), 0);
    }
  }
  assertEquals(counters.tenantQueueFull.size, 101);
  assertEquals(counters.tenantQueueFull.get("_overflow"), { refused: 15, dropped: 15 });
  assert(counters.tenantQueueFull.has("tenant 99") && !counters.tenantQueueFull.has("tenant 100"));
});
