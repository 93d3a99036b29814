// Producers that send everything again until it is acknowledged, on a disk that fills up, fails and
// loses what was not synced, at random: every batch ends up in the log once, where its answer said
// (spec/semantics.md §5.1, README B13).

import { assert, assertEquals } from "@std/assert";
import { CRASH_SHAPES, type LogRecord, RecordKind, SimulatedDisk } from "@felix/storage";
import fc from "fast-check";
import { durable, type World } from "./idempotent_fixture.ts";

const PRODUCERS = 3;
const SEGMENT_BYTES = 400;

type Step =
  | { kind: "send"; producer: number; ahead: number; times: number }
  | { kind: "again"; producer: number; back: number }
  | { kind: "plain" }
  | { kind: "full"; full: boolean }
  | { kind: "fail" }
  | { kind: "crash"; shape: number; inFlight: number; operations: number };

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.record({
      kind: fc.constant("send" as const),
      producer: fc.nat(PRODUCERS - 1),
      ahead: fc.nat(3),
      times: fc.integer({ min: 1, max: 2 }),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant("again" as const),
      producer: fc.nat(PRODUCERS - 1),
      back: fc.nat(20),
    }),
  },
  { weight: 4, arbitrary: fc.constant({ kind: "plain" as const }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("full" as const), full: fc.boolean() }) },
  { weight: 1, arbitrary: fc.constant({ kind: "fail" as const }) },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant("crash" as const),
      shape: fc.nat(CRASH_SHAPES.length - 1),
      inFlight: fc.nat(PRODUCERS - 1),
      operations: fc.nat(4),
    }),
  },
);

/** The records of a batch: always the same for the same number. */
const textsOf = (producer: number, sequence: number) =>
  Array.from({ length: 1 + (producer + sequence) % 3 }, (_, at) => `${producer}.${sequence}.${at}`);

class Run {
  world!: World;
  /** Offsets of acknowledged batches, by producer and sequence. */
  readonly acked: number[][] = Array.from({ length: PRODUCERS }, () => []);

  async send(producer: number, sequence: number): Promise<void> {
    const result = await this.world.send(producer + 1, sequence, ...textsOf(producer, sequence));
    const offset = /^at (\d+)$/.exec(result)?.[1];
    if (offset === undefined) {
      const refused = result === "unknown_producer" || result.startsWith("sequence_gap");
      const ahead = refused && sequence > this.acked[producer]!.length;
      assert(ahead || result === "storage" || result === "unsure", result);
      return;
    }
    const known = this.acked[producer]!;
    if (sequence < known.length) assertEquals(Number(offset), known[sequence]);
    else {
      assertEquals(sequence, known.length, "batches are acknowledged in order");
      known.push(Number(offset));
    }
  }

  async take(step: Step): Promise<void> {
    const { world, acked } = this;
    switch (step.kind) {
      case "send": {
        const next = acked[step.producer]!.length;
        for (let ahead = 0; ahead <= step.ahead; ahead++) {
          for (let time = 0; time < step.times; time++) {
            await this.send(step.producer, next + ahead);
          }
        }
        return;
      }
      case "again": {
        const sequence = acked[step.producer]!.length - 1 - step.back;
        if (sequence >= 0) await this.send(step.producer, sequence);
        return;
      }
      case "plain": {
        const outcome = world.queue(null, "plain");
        world.run();
        await outcome;
        return;
      }
      case "full":
        world.disk.capacityBytes = step.full ? 0 : Infinity;
        return;
      case "fail":
        return world.disk.fail({ operation: "sync", code: "io" });
      case "crash": {
        const { inFlight, operations, shape } = step;
        const sequence = acked[inFlight]!.length;
        world.disk.crashAfter(operations);
        // Nobody hears what becomes of it.
        const lost = world.send(inFlight + 1, sequence, ...textsOf(inFlight, sequence));
        lost.catch(() => {});
        for (let turn = 0; turn < 30; turn++) await null;
        this.world = await durable(world.disk.afterCrash(CRASH_SHAPES[shape]!), SEGMENT_BYTES);
      }
    }
  }

  /** The batches of which the log holds every record, in order of their first: `id/sequence`. */
  async held(): Promise<Map<string, number[]>> {
    const { log } = this.world;
    const records: LogRecord[] = [];
    for (let next = log!.base; next < log!.tail;) {
      const page = await log!.read(next);
      records.push(...page.records);
      next = page.next;
    }
    const held = new Map<string, number[]>();
    records.forEach(({ tag, offset }, at) => {
      if (tag === null) return;
      const rest = records.slice(at + 1, at + tag.length);
      const whole = rest.length === tag.length - 1 &&
        rest.every(({ kind }) => kind === RecordKind.batchContinuation);
      if (!whole) return;
      const name = `${tag.producerId}/${tag.sequence}`;
      held.set(name, [...held.get(name) ?? [], offset]);
    });
    return held;
  }
}

Deno.test("B13: every batch is in the log once, where its answer said", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 60 }), async (steps) => {
      const run = new Run();
      run.world = await durable(new SimulatedDisk(), SEGMENT_BYTES);
      for (const step of steps) await run.take(step);
      const { disk } = run.world;
      run.world = await durable(disk.afterCrash({ names: "kept", data: "kept" }), SEGMENT_BYTES);
      for (let producer = 0; producer < PRODUCERS; producer++) {
        await run.send(producer, run.acked[producer]!.length);
      }
      const held = await run.held();
      run.acked.forEach((offsets, producer) => {
        assert(offsets.length > 0);
        offsets.forEach((offset, sequence) => {
          assertEquals(held.get(`${producer + 1}/${sequence}`), [offset]);
        });
      });
    }),
    { numRuns: 300 },
  );
});
