// Subscriber queues: bounds, policies, and an account that never loses a record (B3 to B6).

import { assert, assertEquals, assertThrows } from "@std/assert";
import fc from "fast-check";
import { batchOf, blankBatch, drain, newShard, streamIn, subscribed } from "./core_fixture.ts";
import { CoreError } from "./core_error.ts";
import { noDeliveries, StreamRegistry } from "./stream_registry.ts";
import type { QueuePolicy, Subscriber } from "./subscriber.ts";

Deno.test("take answers what fits, one delivery in any case, nothing when empty", () => {
  const shard = newShard();
  const subscriber = subscribed(shard);
  assertEquals(subscriber.take(64, 65_536), []);
  shard.append([batchOf("a", "b", "c")]);
  for (let at = 0; at < 4; at++) shard.append([batchOf("xxxxx")]);
  const sizes = (events: number, bytes: number): number[] =>
    subscriber.take(events, bytes).map(({ count }) => count);
  assertEquals(sizes(2, 65_536), [3]);
  assertEquals(sizes(2, 65_536), [1, 1]);
  assertEquals(sizes(64, 9), [1]);
  assertEquals(sizes(64, 5), [1]);
  assertEquals(sizes(64, 5), []);
});

Deno.test("onReady is called when the queue turns from empty to not empty, and only then", () => {
  const shard = newShard();
  const subscriber = subscribed(shard);
  let ready = 0;
  subscriber.onReady = () => ready++;
  shard.append([batchOf("a")]);
  shard.append([batchOf("b")]);
  assertEquals(ready, 1);
  drain(subscriber);
  shard.append([batchOf("c")]);
  assertEquals(ready, 2);
});

Deno.test("B3: an envelope over the byte budget is dropped, but not by an empty queue", () => {
  const shard = newShard();
  const subscriber = subscribed(shard, "latest", { budgetBytes: 100 });
  shard.append([blankBatch(500)]);
  shard.append([blankBatch(1)]);
  assertEquals([subscriber.queuedRecords, subscriber.dropped], [1, 1]);
  drain(subscriber);
  shard.append([blankBatch(56)]);
  shard.append([blankBatch(37)]);
  shard.append([blankBatch(36)]);
  assertEquals([subscriber.queuedBytes, subscriber.dropped], [100, 2]);
  assertEquals(subscriber.firstDroppedAt, 1);
});

Deno.test("B3: empty records count with their lengths", () => {
  const shard = newShard();
  const subscriber = subscribed(shard, "latest", { budgetBytes: 16 });
  shard.append([batchOf("", "")]);
  shard.append([batchOf("", "", "")]);
  shard.append([batchOf("", "")]);
  assertEquals([subscriber.queuedBytes, subscriber.dropped], [16, 3]);
});

Deno.test("B6: a full `block` subscriber holds its shard up until it is read or goes away", () => {
  const shard = newShard();
  const reader = subscribed(shard, "latest", { policy: "block", capacityEnvelopes: 2 });
  const idle = subscribed(shard, "latest", { policy: "block", budgetBytes: 20 });
  let resumed = 0;
  shard.onRoom = () => resumed++;
  shard.append([blankBatch(6)]);
  assert(shard.mayAppend());
  shard.append([blankBatch(6)]);
  assert(!shard.mayAppend());
  assertThrows(() => shard.append([blankBatch(1)]), CoreError, "B6");
  drain(reader);
  assertEquals([shard.mayAppend(), resumed], [false, 0]);
  shard.unsubscribe(idle);
  assertEquals([shard.mayAppend(), resumed], [true, 1]);
  shard.append([blankBatch(1)]);
  shard.append([blankBatch(1)]);
  assert(!shard.mayAppend());
  assertEquals(reader.take(1, 100).length, 1);
  assertEquals([shard.mayAppend(), resumed, reader.dropped], [true, 2, 0]);
});

Deno.test("a closed subscriber is offered nothing and accounts for what it had queued", () => {
  const counters = noDeliveries();
  const shard = streamIn(new StreamRegistry({ deliveryCounters: counters })).shards[0]!;
  const subscriber = subscribed(shard);
  shard.append([batchOf("a", "b")]);
  shard.unsubscribe(subscriber);
  shard.unsubscribe(subscriber);
  shard.append([batchOf("c")]);
  assertEquals([subscriber.offered, subscriber.discarded, subscriber.queuedRecords], [2, 2, 0]);
  assertEquals(subscriber.take(64, 65_536), []);
  assertEquals(shard.subscribers, 0);
  assertEquals(counters.queueLength, 0);
});

Deno.test("a subscription that ends or begins during a fan-out disturbs no other", () => {
  const shard = newShard();
  const [first, second, third] = [subscribed(shard), subscribed(shard), subscribed(shard)];
  let late: Subscriber | null = null;
  first.onReady = () => {
    shard.unsubscribe(first);
    shard.unsubscribe(second);
    late = subscribed(shard);
  };
  shard.append([batchOf("a")]);
  shard.append([batchOf("b")]);
  assertEquals(drain(third), ["0:a", "1:b"]);
  assertEquals(drain(late!), ["1:b"]);
  assertEquals(shard.subscribers, 2);
  shard.unsubscribe(third);
  shard.append([batchOf("c")]);
  assertEquals(drain(late!), ["2:c"]);
});

type Step =
  | { kind: "append"; records: number; bytes: number }
  | { kind: "take"; who: number; events: number; bytes: number }
  | { kind: "unsubscribe"; who: number };

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant("append" as const),
      records: fc.integer({ min: 1, max: 6 }),
      bytes: fc.integer({ min: 0, max: 60 }),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant("take" as const),
      who: fc.nat(3),
      events: fc.integer({ min: 1, max: 10 }),
      bytes: fc.integer({ min: 1, max: 400 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant("unsubscribe" as const), who: fc.nat(3) }),
  },
);

const queue = fc.record({
  policy: fc.constantFrom<QueuePolicy>("drop_new", "drop_old", "block"),
  capacityEnvelopes: fc.integer({ min: 1, max: 5 }),
  budgetBytes: fc.integer({ min: 1, max: 500 }),
});

Deno.test("B3, B4: bounds hold and no record is lost from the account, whatever happens", () => {
  const queues = fc.array(queue, { minLength: 4, maxLength: 4 });
  fc.assert(
    fc.property(queues, fc.array(step, { maxLength: 80, size: "max" }), (options, steps) => {
      const counters = noDeliveries();
      const registry = new StreamRegistry({ deliveryCounters: counters });
      const shard = streamIn(registry).shards[0]!;
      const subscribers = options.map((each) => subscribed(shard, "latest", each));
      const offered = [0, 0, 0, 0];
      const taken = [0, 0, 0, 0];
      for (const each of steps) {
        if (each.kind === "append" && shard.mayAppend()) {
          const texts = Array.from({ length: each.records }, () => "x".repeat(each.bytes));
          shard.append([batchOf(...texts)]);
          subscribers.forEach(({ open }, at) => offered[at]! += open ? each.records : 0);
        } else if (each.kind === "take") {
          const deliveries = subscribers[each.who]!.take(each.events, each.bytes);
          for (const { count } of deliveries) taken[each.who]! += count;
          const events = deliveries.reduce((sum, { count }) => sum + count, 0);
          assert(deliveries.length <= 1 || events <= each.events);
        } else if (each.kind === "unsubscribe") shard.unsubscribe(subscribers[each.who]!);
        let queued = 0;
        subscribers.forEach((subscriber, at) => {
          assertEquals(subscriber.offered, offered[at]);
          assertEquals(subscriber.taken, taken[at]);
          const { queuedRecords, dropped, discarded, policy } = subscriber;
          assertEquals(subscriber.offered, subscriber.taken + queuedRecords + dropped + discarded);
          assert(subscriber.queuedEnvelopes <= subscriber.capacityEnvelopes);
          const over = subscriber.queuedBytes > subscriber.budgetBytes;
          assert(!over || policy === "block" || subscriber.queuedEnvelopes === 1);
          if (policy === "block") assertEquals(dropped, 0);
          queued += subscriber.queuedEnvelopes;
        });
        const dropped = subscribers.reduce((sum, subscriber) => sum + subscriber.dropped, 0);
        assertEquals([counters.queueLength, counters.dropped], [queued, dropped]);
      }
    }),
  );
});
