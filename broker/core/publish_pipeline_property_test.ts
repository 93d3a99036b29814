// The publish pipeline under random publishes, reads, waits, closings and removals: every job gets
// one outcome that is true, every byte is given back, and order holds (B9, B10).

import { assert, assertEquals } from "@std/assert";
import fc from "fast-check";
import { batchOf, drain, newPipeline, streamIn, subscribed, TestPublish } from "./core_fixture.ts";
import type { ConnectionBudget } from "./publish_job.ts";
import type { PublishPipeline } from "./publish_pipeline.ts";
import { StreamRegistry } from "./stream_registry.ts";
import type { StreamShard } from "./stream_shard.ts";
import type { Subscriber } from "./subscriber.ts";

const CONNECTIONS = 3;
const CLIENT_STREAMS = 2;
const SHARDS = 4;

type Step =
  | {
    kind: "publish";
    connection: number;
    stream: number;
    shard: number;
    sizes: number[];
    acked: boolean;
  }
  | { kind: "turn" }
  | { kind: "read"; shard: number }
  | { kind: "wait"; ms: number }
  | { kind: "close"; connection: number }
  | { kind: "remove"; shard: number };

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 50,
    arbitrary: fc.record({
      kind: fc.constant("publish" as const),
      connection: fc.nat(CONNECTIONS - 1),
      stream: fc.nat(CLIENT_STREAMS - 1),
      shard: fc.nat(SHARDS - 1),
      sizes: fc.array(fc.integer({ min: 0, max: 60 }), { maxLength: 3 }),
      acked: fc.boolean(),
    }),
  },
  { weight: 25, arbitrary: fc.constant({ kind: "turn" as const }) },
  {
    weight: 20,
    arbitrary: fc.record({ kind: fc.constant("read" as const), shard: fc.nat(SHARDS - 1) }),
  },
  {
    weight: 15,
    arbitrary: fc.record({
      kind: fc.constant("wait" as const),
      ms: fc.integer({ min: 1, max: 1200 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant("close" as const),
      connection: fc.nat(CONNECTIONS - 1),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant("remove" as const), shard: fc.nat(SHARDS - 1) }),
  },
);

/** A publish that knows where it came from, and whose records carry its number. */
interface Sent {
  readonly job: TestPublish;
  readonly number: number;
  readonly source: string;
  readonly shard: number;
}

/** A broker with blocking readers on half of its shards, and everything that happened to it. */
class World {
  readonly settings = {
    queueDepth: 3,
    executors: 2,
    connectionInflightBytes: 150,
    inflightBytes: 300,
  };
  readonly pipeline: PublishPipeline;
  readonly budgets: ConnectionBudget[];
  readonly shards: StreamShard[];
  readonly blockers: Subscriber[];
  readonly witnesses: Subscriber[];
  readonly records: string[][] = Array.from({ length: SHARDS }, () => []);
  readonly sent: Sent[] = [];
  /** The publish that each client stream must see admitted or settled before it sends on. */
  readonly waiting = new Map<string, TestPublish>();
  readonly readBuffer: Uint8Array = new Uint8Array(4096);
  readUpTo = 0;
  nowMs = 0;
  readonly #registry = new StreamRegistry();

  constructor(ingressWait: boolean, queueWaitMs: number) {
    const { pipeline } = newPipeline({
      ...this.settings,
      ingressWait,
      queueWaitMs,
      ackWaitMs: 1500,
    });
    this.pipeline = pipeline;
    this.budgets = Array.from({ length: CONNECTIONS }, () => pipeline.createBudget());
    this.shards = Array.from({ length: SHARDS }, (_, at) => {
      const tenant = `tenant ${at % 2}`;
      return streamIn(this.#registry, `stream ${at}`, { tenant }).shards[0]!;
    });
    const unbounded = { capacityEnvelopes: 1e9 };
    this.witnesses = this.shards.map((shard) => subscribed(shard, "latest", unbounded));
    this.blockers = this.shards.slice(0, SHARDS / 2).map((shard) =>
      subscribed(shard, "latest", { policy: "block", capacityEnvelopes: 1 })
    );
  }

  publish(each: Extract<Step, { kind: "publish" }>): void {
    const source = `${each.connection}/${each.stream}`;
    const held = this.waiting.get(source);
    if (held !== undefined && held.admissions === 0 && held.outcomes.length === 0) return;
    this.waiting.delete(source);
    const number = this.sent.length;
    const { body, count, payloadBytes } = batchOf(
      ...each.sizes.map((size) => `${number};${"x".repeat(size)}`),
    );
    if (this.readUpTo + body.length > this.readBuffer.length) return;
    const view = this.readBuffer.subarray(this.readUpTo, this.readUpTo += body.length);
    view.set(body);
    const job = new TestPublish(
      this.shards[each.shard]!,
      { body: view, count, payloadBytes },
      this.budgets[each.connection]!,
      each.acked,
    );
    this.sent.push({ job, number, source, shard: each.shard });
    const submitted = this.pipeline.submit(job, this.nowMs);
    assertEquals(submitted === "settled", job.outcomes.length === 1 && submitted !== "queued");
    if (submitted === "waiting") this.waiting.set(source, job);
  }

  /** The end of a read: everything runs, what stays is owned, the buffer is used again. */
  turn(): void {
    this.pipeline.pump();
    this.pipeline.ownPending();
    this.readBuffer.fill(255);
    this.readUpTo = 0;
  }

  wait(ms: number): void {
    this.turn();
    this.nowMs += ms;
    const deadline = this.pipeline.nextDeadline();
    const before = this.sent.filter(({ job }) => job.outcomes.length > 0).length;
    this.pipeline.expire(this.nowMs);
    const after = this.sent.filter(({ job }) => job.outcomes.length > 0).length;
    assert(after === before || (deadline !== null && deadline <= this.nowMs));
  }

  remove(at: number): void {
    this.#registry.remove(`tenant ${at % 2}`, "main", `stream ${at}`);
  }

  /** Bounds that hold at any time. */
  check(): void {
    const { queueDepth, executors, connectionInflightBytes, inflightBytes } = this.settings;
    assert(this.pipeline.queuedJobs <= queueDepth * executors);
    assert(this.pipeline.queuedBytes <= inflightBytes);
    for (const { used } of this.budgets) assert(used >= 0 && used <= connectionInflightBytes);
    for (const { job } of this.sent) assert(job.outcomes.length <= 1);
    this.witnesses.forEach((witness, at) => this.records[at]!.push(...drain(witness)));
  }

  /** Lets everything finish. */
  finish(): void {
    for (const blocker of this.blockers) blocker.shard.unsubscribe(blocker);
    this.turn();
    this.check();
  }
}

/** What is in the shards must be what the outcomes say. */
function checkOutcomes(world: World): void {
  for (const { job } of world.sent) assertEquals(job.outcomes.length, 1);
  world.records.forEach((records, shard) => {
    records.forEach((record, at) => assert(record.startsWith(`${at}:`), "offsets are contiguous"));
    const numbers = records.map((record) =>
      Number(record.slice(record.indexOf(":") + 1).split(";")[0])
    );
    const lastOf = new Map<string, number>();
    for (let at = 0; at < numbers.length;) {
      const { job, number, source, shard: wanted } = world.sent[numbers[at]!]!;
      const outcome = job.outcomes[0]!;
      assertEquals(wanted, shard);
      assert(outcome.kind === "written" || outcome.kind === "unknown", outcome.kind);
      if (outcome.kind === "written") assertEquals(outcome.offset, at);
      for (let left = job.batch.count; left > 0; left--) assertEquals(numbers[at++], number);
      assert((lastOf.get(source) ?? -1) < number, "a client stream's publishes keep their order");
      lastOf.set(source, number);
    }
    const appended = new Set(numbers);
    for (const { job, number, shard: of } of world.sent) {
      const written = job.outcomes[0]!.kind === "written" && job.batch.count > 0;
      if (of === shard && written) assert(appended.has(number));
    }
  });
}

Deno.test("B9, B10: one true outcome per job, budgets return to 0, offsets in lane order", () => {
  const steps = fc.array(step, { maxLength: 150, size: "max" });
  const wait = fc.constantFrom(0, 1000, 2000);
  fc.assert(
    fc.property(fc.boolean(), wait, steps, (ingressWait, queueWaitMs, sequence) => {
      const world = new World(ingressWait, queueWaitMs);
      for (const each of sequence) {
        switch (each.kind) {
          case "publish":
            world.publish(each);
            break;
          case "turn":
            world.turn();
            break;
          case "read":
            world.blockers[each.shard]?.take(64, 65_536);
            break;
          case "wait":
            world.wait(each.ms);
            break;
          case "close":
            world.turn();
            world.pipeline.closeBudget(world.budgets[each.connection]!);
            break;
          case "remove":
            world.remove(each.shard);
        }
        world.check();
      }
      world.finish();
      checkOutcomes(world);
      assertEquals(world.budgets.map(({ used }) => used), [0, 0, 0]);
      const { pipeline } = world;
      assertEquals([pipeline.queuedBytes, pipeline.queuedJobs, pipeline.waitingJobs], [0, 0, 0]);
      assertEquals(pipeline.nextDeadline(), null);
    }),
    { numRuns: 300 },
  );
});
