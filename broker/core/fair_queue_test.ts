// The fair queue: order in a lane, one holder per lane, fair shares, admission (B8).

import { assert, assertEquals, assertThrows } from "@std/assert";
import fc from "fast-check";
import { CoreError } from "./core_error.ts";
import { FairQueue, QUANTUM } from "./fair_queue.ts";
import type { Lane } from "./fair_queue.ts";

interface TestJob {
  readonly id: number;
  readonly cost: number;
}

/** Takes the next job and gives its lane back at once. */
function runNext(queue: FairQueue<TestJob>): { lane: Lane<TestJob>; job: TestJob } | null {
  const lane = queue.next();
  if (lane === null) return null;
  const job = queue.take(lane);
  queue.complete(lane);
  return { lane, job };
}

Deno.test("a tenant can count on its share and may borrow all but the last share", () => {
  const queue = new FairQueue<TestJob>({ share: 3, executors: 3 });
  const [noisy, quiet] = [queue.lane("noisy"), queue.lane("quiet")];
  let admitted = 0;
  while (queue.admits(noisy.tenant)) queue.push(noisy, { id: admitted++, cost: 1 });
  assertEquals(admitted, 6);
  for (let id = 0; id < 3; id++) {
    assert(queue.admits(quiet.tenant));
    queue.push(quiet, { id, cost: 1 });
  }
  assert(!queue.admits(quiet.tenant));
  assertEquals(queue.queued, 9);
});

Deno.test("B8: a held lane is not next, and only its holder can take more or give it back", () => {
  const queue = new FairQueue<TestJob>({ share: 8, executors: 2 });
  const lane = queue.lane("a");
  for (let id = 0; id < 3; id++) queue.push(lane, { id, cost: 1 });
  assertThrows(() => queue.takeMore(lane), CoreError, "B8");
  assertThrows(() => queue.complete(lane), CoreError, "B8");
  assertEquals(queue.next(), lane);
  assertEquals(queue.take(lane).id, 0);
  assertEquals(queue.next(), null);
  queue.push(lane, { id: 3, cost: 1 });
  assertEquals(queue.next(), null);
  assertEquals(queue.behind(lane)?.id, 1);
  assertEquals(queue.takeMore(lane).id, 1);
  queue.complete(lane);
  assertEquals(runNext(queue)?.job.id, 2);
  assertEquals(runNext(queue)?.job.id, 3);
  assertEquals([queue.next(), queue.behind(lane), queue.queued], [null, undefined, 0]);
});

Deno.test("a parked lane stands aside, keeps its order, and earns no credit", () => {
  const queue = new FairQueue<TestJob>({ share: 64, executors: 2 });
  const [parked, other, rival] = [queue.lane("a"), queue.lane("a"), queue.lane("b")];
  for (let id = 0; id < 3; id++) queue.push(parked, { id, cost: QUANTUM });
  queue.push(other, { id: 10, cost: 1 });
  queue.park(queue.next()!);
  queue.push(parked, { id: 3, cost: QUANTUM });
  assertEquals(runNext(queue)?.job.id, 10);
  assertEquals(queue.next(), null);
  for (let round = 0; round < 100; round++) {
    assert(queue.unpark(parked));
    assertEquals(queue.next(), parked);
    queue.park(parked);
  }
  assert(parked.tenant.deficit <= 0);
  for (let id = 20; id < 24; id++) queue.push(rival, { id, cost: QUANTUM });
  assert(queue.unpark(parked));
  assert(!queue.unpark(parked));
  const order = Array.from({ length: 8 }, () => runNext(queue)?.job.id);
  assertEquals(order, [20, 0, 21, 1, 22, 2, 23, 3]);
});

Deno.test("jobs taken ahead of their credit are paid for in turns sat out", () => {
  const queue = new FairQueue<TestJob>({ share: 64, executors: 2 });
  const [greedy, modest] = [queue.lane("greedy"), queue.lane("modest")];
  for (let id = 0; id < 5; id++) queue.push(greedy, { id, cost: QUANTUM });
  for (let id = 10; id < 16; id++) queue.push(modest, { id, cost: QUANTUM });
  const lane = queue.next()!;
  assertEquals(lane, greedy);
  queue.take(lane);
  queue.takeMore(lane);
  queue.takeMore(lane);
  assertEquals(greedy.tenant.deficit, -2 * QUANTUM);
  queue.complete(lane);
  const order = Array.from({ length: 8 }, () => runNext(queue)?.job.id);
  assertEquals(order, [10, 11, 12, 3, 13, 4, 14, 15]);
  assertEquals([greedy.tenant.deficit, modest.tenant.deficit], [0, 0]);
});

const costs = fc.oneof(
  fc.integer({ min: 1, max: 200 }),
  fc.integer({ min: 1, max: 100_000 }),
  fc.constant(1_000_000),
);

Deno.test("two backlogged tenants: bytes differ by at most Q + 2 x the largest job", () => {
  const tenant = fc.record({
    lanes: fc.integer({ min: 1, max: 3 }),
    costs: fc.array(costs, { minLength: 1, maxLength: 4 }),
  });
  fc.assert(
    fc.property(tenant, tenant, fc.boolean(), (a, b, grouped) => {
      const queue = new FairQueue<TestJob>({ share: 1000, executors: 4 });
      const largest = Math.max(...a.costs, ...b.costs) * (grouped ? 3 : 1);
      const sides = [a, b].map((side, at) => ({
        lanes: Array.from({ length: side.lanes }, () => queue.lane(`tenant ${at}`)),
        costs: side.costs,
        pushed: 0,
      }));
      const refill = (): void => {
        for (const side of sides) {
          for (const lane of side.lanes) {
            while (lane.jobs.length < 4) {
              const cost = side.costs[side.pushed++ % side.costs.length]!;
              queue.push(lane, { id: 0, cost });
            }
          }
        }
      };
      // The lead of the first tenant over time: an interval's difference is its rise or fall.
      let [lead, lowest, highest] = [0, 0, 0];
      for (let round = 0; round < 1500; round++) {
        refill();
        const lane = queue.next()!;
        let cost = queue.take(lane).cost;
        for (let more = 0; grouped && more < 2; more++) cost += queue.takeMore(lane).cost;
        queue.complete(lane);
        lead += lane.tenant.name === "tenant 0" ? cost : -cost;
        lowest = Math.min(lowest, lead);
        highest = Math.max(highest, lead);
        assert(highest - lowest <= QUANTUM + 2 * largest, `${highest - lowest} over ${largest}`);
      }
    }),
    { numRuns: 40 },
  );
});

type Step =
  | { kind: "push"; lane: number; cost: number }
  | { kind: "start"; more: number }
  | { kind: "complete"; holder: number }
  | { kind: "park" }
  | { kind: "unpark"; lane: number };

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({ kind: fc.constant("push" as const), lane: fc.nat(7), cost: costs }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constant("start" as const), more: fc.nat(3) }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constant("complete" as const), holder: fc.nat(7) }),
  },
  { weight: 1, arbitrary: fc.constant({ kind: "park" as const }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("unpark" as const), lane: fc.nat(7) }) },
);

Deno.test("B8: lanes are FIFO, held once at a time, and no job is lost or run twice", () => {
  fc.assert(fc.property(fc.array(step, { maxLength: 150, size: "max" }), (steps) => {
    const queue = new FairQueue<TestJob>({ share: 4, executors: 3 });
    const lanes = Array.from({ length: 8 }, (_, at) => queue.lane(`tenant ${at >> 1}`));
    const waiting: number[][] = lanes.map(() => []);
    const held: Lane<TestJob>[] = [];
    const parked = new Set<Lane<TestJob>>();
    const order: number[] = [];
    let [pushed, run] = [0, 0];
    const took = (lane: Lane<TestJob>, job: TestJob): void => {
      assertEquals(job.id, waiting[lanes.indexOf(lane)]!.shift());
      order.push(job.id);
      run++;
    };
    const start = (lane: Lane<TestJob>, more: number): void => {
      assert(!held.includes(lane) && !parked.has(lane));
      held.push(lane);
      took(lane, queue.take(lane));
      for (let at = 0; at < more && queue.behind(lane) !== undefined; at++) {
        took(lane, queue.takeMore(lane));
      }
    };
    const runnable = (): boolean =>
      lanes.some((lane, at) =>
        waiting[at]!.length > 0 && !held.includes(lane) && !parked.has(lane)
      );
    for (const each of steps) {
      if (each.kind === "push") {
        const lane = lanes[each.lane]!;
        if (!queue.admits(lane.tenant)) continue;
        waiting[each.lane]!.push(pushed);
        queue.push(lane, { id: pushed++, cost: each.cost });
      } else if (each.kind === "complete") {
        const lane = held.splice(each.holder % Math.max(1, held.length), 1)[0];
        if (lane !== undefined) queue.complete(lane);
      } else if (each.kind === "unpark") {
        const lane = lanes[each.lane]!;
        assertEquals(queue.unpark(lane), parked.delete(lane));
      } else {
        const lane = queue.next();
        assertEquals(lane !== null, runnable());
        if (lane === null) continue;
        if (each.kind === "start") start(lane, each.more);
        else {
          queue.park(lane);
          parked.add(lane);
        }
      }
      assertEquals(queue.queued, pushed - run);
      assert(queue.queued <= 12);
    }
    for (const lane of parked) queue.unpark(lane);
    parked.clear();
    for (const lane of held.splice(0)) queue.complete(lane);
    for (let lane = queue.next(); lane !== null; lane = queue.next()) {
      start(lane, 0);
      queue.complete(held.pop()!);
    }
    assertEquals([run, queue.queued], [pushed, 0]);
    assertEquals(new Set(order).size, pushed);
    assert(lanes.every(({ tenant }) => tenant.deficit === 0));
  }));
});

Deno.test("B8: a flooding tenant cannot keep a quiet one from being admitted", () => {
  const shape = fc.record({
    share: fc.integer({ min: 1, max: 6 }),
    executors: fc.integer({ min: 2, max: 5 }),
  });
  fc.assert(
    fc.property(
      shape,
      fc.array(fc.boolean(), { maxLength: 120, size: "max" }),
      (options, steps) => {
        const queue = new FairQueue<TestJob>(options);
        const [flood, quiet] = [queue.lane("flood"), queue.lane("quiet")];
        for (const serve of steps) {
          while (queue.admits(flood.tenant)) queue.push(flood, { id: 0, cost: 1 });
          if (quiet.tenant.queued < options.share) {
            assert(queue.admits(quiet.tenant));
            queue.push(quiet, { id: 1, cost: 1 });
          }
          if (serve) runNext(queue);
        }
      },
    ),
  );
});
