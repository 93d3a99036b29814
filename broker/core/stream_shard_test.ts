// The ring and the seam between backlog and live: every subscriber sees exactly the records from
// its start, each once and in order, unless one was dropped and counted (B1, B5).

import { assert, assertEquals, assertThrows } from "@std/assert";
import fc from "fast-check";
import { batchOf, blankBatch, drain, newShard, subscribed } from "./core_fixture.ts";
import { CoreError } from "./core_error.ts";
import type { SubscribeStart } from "./stream_shard.ts";
import type { Subscriber } from "./subscriber.ts";

Deno.test("an append takes the next sequences; batches of one claim are one envelope", () => {
  const shard = newShard();
  const subscriber = subscribed(shard);
  shard.append([batchOf("a"), batchOf("b", "c"), batchOf("d")], 2);
  shard.append([batchOf("e")]);
  assertEquals([shard.tail, shard.oldest], [4, 0]);
  assertEquals(subscriber.queuedEnvelopes, 2);
  assertEquals(drain(subscriber), ["0:a", "1:b", "2:c", "3:e"]);
});

Deno.test("B1, B2: an empty claim or a body that is not its records is not appended", () => {
  const shard = newShard();
  assertThrows(() => shard.append([]), CoreError, "B1");
  assertThrows(() => shard.append([batchOf()]), CoreError, "B1");
  const { body } = batchOf("abc");
  assertThrows(() => shard.append([{ body, count: 1, payloadBytes: 4 }]), CoreError, "B2");
  assertEquals(shard.tail, 0);
});

Deno.test("the ring keeps the newest records, to the record", () => {
  const shard = newShard({ ringRecords: 5 });
  for (const text of ["a", "b", "c"]) shard.append([batchOf(text, text, text)]);
  assertEquals([shard.tail, shard.oldest], [9, 4]);
  assertEquals(drain(subscribed(shard, "earliest")), ["4:b", "5:b", "6:c", "7:c", "8:c"]);
});

Deno.test("the ring keeps at most its bytes, and nothing of a batch that is larger", () => {
  const shard = newShard({ ringBytes: 1000 });
  for (let at = 0; at < 10; at++) shard.append([blankBatch(300)]);
  assertEquals(shard.oldest, 8);
  assert(shard.ringBytes <= 1000);
  const subscriber = subscribed(shard);
  shard.append([blankBatch(2000)]);
  assertEquals([shard.oldest, shard.tail, shard.ringBytes], [11, 11, 0]);
  assertEquals(subscriber.queuedBytes, 2004);
});

Deno.test("subscribe: too old before the ring, in the future behind the tail", () => {
  const shard = newShard({ ringRecords: 4 });
  for (let at = 0; at < 10; at++) shard.append([batchOf(`${at}`)]);
  const options = { policy: "drop_new" as const, capacityEnvelopes: 1 };
  assertEquals(shard.subscribe({ offset: 5 }, options), {
    kind: "too_old",
    requested: 5,
    available: 6,
  });
  assertEquals(shard.subscribe({ offset: 11 }, options), {
    kind: "in_future",
    requested: 11,
    available: 10,
  });
  assertEquals(shard.subscribers, 0);
  const at = shard.subscribe({ offset: 10 }, options);
  assert(at.kind === "subscribed");
  assertEquals([at.start, at.live, at.subscriber.queuedEnvelopes], [10, 10, 0]);
});

Deno.test("B5: a backlog beyond the queue's bounds is not dropped and drops nothing live", () => {
  const shard = newShard();
  for (let at = 0; at < 20; at++) shard.append([batchOf(`${at}`)]);
  const policies = ["drop_new", "block"] as const;
  const subscribers = policies.map((policy) =>
    subscribed(shard, { offset: 3 }, { policy, capacityEnvelopes: 2, budgetBytes: 10 })
  );
  assert(shard.mayAppend());
  shard.append([batchOf("x")]);
  shard.append([batchOf("y")]);
  assert(!shard.mayAppend());
  const seen = subscribers.map(drain);
  const expected = Array.from({ length: 17 }, (_, at) => `${at + 3}:${at + 3}`);
  assertEquals(seen, [[...expected, "20:x", "21:y"], [...expected, "20:x", "21:y"]]);
  assert(shard.mayAppend());
});

Deno.test("B5: bounds apply to live envelopes once the backlog is read", () => {
  const shard = newShard();
  for (const text of ["a", "b", "c"]) shard.append([batchOf(text, text)]);
  const subscriber = subscribed(shard, { offset: 2 }, { capacityEnvelopes: 2, budgetBytes: 12 });
  assertEquals([subscriber.queuedEnvelopes, subscriber.queuedRecords], [2, 4]);
  assertEquals(subscriber.take(1, 100).length, 1);
  for (const text of ["dd", "ee", "ff"]) shard.append([batchOf(text)]);
  assertEquals(drain(subscriber), ["4:c", "5:c", "6:dd", "7:ee"]);
  for (const text of ["g".repeat(20), "hh"]) shard.append([batchOf(text)]);
  assertEquals([drain(subscriber), subscriber.dropped], [[`9:${"g".repeat(20)}`], 2]);
});

type Step =
  | { kind: "append"; batches: number[] }
  | { kind: "subscribe"; start: number | "latest" | "earliest"; capacity: number }
  | { kind: "take"; who: number; events: number }
  | { kind: "unsubscribe"; who: number };

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant("append" as const),
      batches: fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 1, maxLength: 4 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("subscribe" as const),
      start: fc.oneof(fc.nat(60), fc.constantFrom("latest" as const, "earliest" as const)),
      capacity: fc.integer({ min: 1, max: 6 }),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant("take" as const),
      who: fc.nat(9),
      events: fc.integer({ min: 1, max: 12 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant("unsubscribe" as const), who: fc.nat(9) }),
  },
);

/** What a subscriber must have seen: every record from its start on that was not dropped. */
interface Expected {
  readonly subscriber: Subscriber;
  readonly records: string[];
  readonly seen: string[];
}

function takeInto({ subscriber, seen }: Expected, events: number): void {
  const all: string[] = [];
  for (const { base, count } of subscriber.take(events, 65_536)) {
    for (let at = 0; at < count; at++) all.push(`${base + at}`);
  }
  seen.push(...all);
}

Deno.test("B5: each subscriber sees its records once, in order, without an uncounted gap", () => {
  fc.assert(fc.property(fc.array(step, { maxLength: 80, size: "max" }), (steps) => {
    const shard = newShard({ ringRecords: 16 });
    const live: Expected[] = [];
    let oldest = 0;
    for (const each of steps) {
      const { tail } = shard;
      if (each.kind === "append") {
        const before = live.map(({ subscriber }) => subscriber.dropped);
        shard.append(each.batches.map((count) => batchOf(...Array(count).fill("r"))));
        const records = Array.from({ length: shard.tail - tail }, (_, at) => `${tail + at}`);
        live.forEach(({ subscriber, records: expected }, at) => {
          const dropped = subscriber.dropped - before[at]!;
          assert(dropped === 0 || dropped === records.length);
          if (dropped === 0) expected.push(...records);
        });
        oldest = Math.max(0, shard.tail - 16);
        assertEquals(shard.oldest, oldest);
      } else if (each.kind === "subscribe") {
        const start: SubscribeStart = typeof each.start === "string"
          ? each.start
          : { offset: each.start };
        const first = { latest: tail, earliest: oldest }[each.start] ?? Number(each.start);
        const result = shard.subscribe(start, {
          policy: "drop_new",
          capacityEnvelopes: each.capacity,
        });
        const kind = first > tail ? "in_future" : first < oldest ? "too_old" : "subscribed";
        assertEquals(result.kind, kind);
        if (result.kind !== "subscribed") continue;
        assertEquals([result.start, result.live], [first, tail]);
        const records = Array.from({ length: tail - first }, (_, at) => `${first + at}`);
        live.push({ subscriber: result.subscriber, records, seen: [] });
      } else if (live.length > 0) {
        const chosen = live[each.who % live.length]!;
        if (each.kind === "take") takeInto(chosen, each.events);
        else {
          shard.unsubscribe(chosen.subscriber);
          live.splice(live.indexOf(chosen), 1);
          assertEquals(chosen.seen, chosen.records.slice(0, chosen.seen.length));
        }
      }
    }
    for (const each of live) {
      while (each.subscriber.queuedEnvelopes > 0) takeInto(each, 64);
      assertEquals(each.seen, each.records);
    }
  }));
});
