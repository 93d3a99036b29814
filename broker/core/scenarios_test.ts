// The scenarios of spec/semantics.md §12 that a core in memory can show, by their numbers.
// Those of durable streams, and those that need a client, are shown where such things exist.

import { assert, assertEquals, assertThrows } from "@std/assert";
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
import { CacheRegistry } from "./cache_registry.ts";
import { CacheMemory, CacheStore } from "./cache_store.ts";
import { CoreError } from "./core_error.ts";
import { noDeliveries, StreamRegistry } from "./stream_registry.ts";

Deno.test("ST1: three subscribers get a batch of 5 in order; its frame is encoded once", () => {
  const encodeStats = { encodes: 0, shares: 0 };
  const shard = streamIn(new StreamRegistry({ encodeStats })).shards[0]!;
  const { pipeline, budget } = newPipeline();
  const subscribers = [1, 2, 3].map(() => subscribed(shard));
  pipeline.submit(new TestPublish(shard, batchOf("a", "b", "c", "d", "e"), budget), 0);
  pipeline.pump();
  const frames = subscribers.map((subscriber) => {
    const [delivery] = subscriber.take(64, 65_536);
    assertEquals([delivery!.from, delivery!.count], [0, 5]);
    return delivery!.envelope.frame("plain", ({ storage }) => storage.subarray(8));
  });
  assertEquals(new Set(frames).size, 1);
  assertEquals(encodeStats, { encodes: 1, shares: 2 });
});

Deno.test("ST2: 100 pipelined publishes of one stream get offsets 0 to 99 in order", () => {
  const { pipeline, budget } = newPipeline();
  const shard = newShard();
  const answers: number[] = [];
  for (let at = 1; at <= 100; at++) {
    const job = new TestPublish(shard, batchOf(`${at}`), budget);
    job.onSettle = (outcome) => {
      if (outcome.kind === "written") answers.push(outcome.offset);
    };
    pipeline.submit(job, 0);
    if (at % 30 === 0) pipeline.pump();
  }
  pipeline.pump();
  assertEquals(answers, Array.from({ length: 100 }, (_, at) => at));
});

Deno.test("ST3: a slow drop_new subscriber gets what fits, others all, no publisher waits", () => {
  const counters = noDeliveries();
  const shard = streamIn(new StreamRegistry({ deliveryCounters: counters })).shards[0]!;
  const { pipeline, budget } = newPipeline();
  const slow = subscribed(shard, "latest", { capacityEnvelopes: 2 });
  const quick = subscribed(shard);
  for (let at = 0; at < 5; at++) {
    const job = new TestPublish(shard, batchOf(`${at}`), budget);
    pipeline.submit(job, 0);
    pipeline.pump();
    assertEquals(job.result, `written ${at}`);
  }
  assertEquals(drain(slow), ["0:0", "1:1"]);
  assertEquals(drain(quick), ["0:0", "1:1", "2:2", "3:3", "4:4"]);
  assertEquals([slow.dropped, slow.firstDroppedAt, counters.dropped], [3, 2, 3]);
  assertEquals([counters.enqueued, counters.dequeued, counters.queueLength], [7, 7, 0]);
});

Deno.test("ST4: a dropped batch of 10 records counts 10", () => {
  const counters = noDeliveries();
  const shard = streamIn(new StreamRegistry({ deliveryCounters: counters })).shards[0]!;
  const slow = subscribed(shard, "latest", { capacityEnvelopes: 1 });
  shard.append([batchOf("a")]);
  shard.append([batchOf(..."0123456789")]);
  assertEquals([slow.dropped, counters.dropped, counters.dropOldEmulated], [10, 10, 0]);
});

Deno.test("ST5: a blocked `block` subscriber holds up its shard and no other", () => {
  const registry = new StreamRegistry();
  const [held, free] = streamIn(registry, "events", { shards: 2 }).shards;
  const { pipeline, budget } = newPipeline();
  const blocker = subscribed(held!, "latest", { policy: "block", capacityEnvelopes: 2 });
  const jobs = [held, held, held, free].map((shard) =>
    new TestPublish(shard!, batchOf("x"), budget)
  );
  for (const job of jobs) {
    pipeline.submit(job, 0);
    pipeline.pump();
  }
  const outcome = (): string[] => jobs.map(({ result }) => result);
  assertEquals(outcome(), ["written 0", "written 1", "pending", "written 0"]);
  blocker.take(1, 1);
  pipeline.pump();
  assertEquals(outcome(), ["written 0", "written 1", "written 2", "written 0"]);
  assertEquals([drain(blocker), blocker.dropped], [["1:x", "2:x"], 0]);
});

Deno.test("ST6: drop_old discards the new envelope and counts it as emulated", () => {
  const counters = noDeliveries();
  const shard = streamIn(new StreamRegistry({ deliveryCounters: counters })).shards[0]!;
  const slow = subscribed(shard, "latest", { policy: "drop_old", capacityEnvelopes: 1 });
  shard.append([batchOf("old")]);
  shard.append([batchOf("new", "newer")]);
  assertEquals(drain(slow), ["0:old"]);
  assertEquals([counters.dropped, counters.dropOldEmulated], [2, 2]);
});

Deno.test("ST13: a subscribe at the tail is live only, one behind it is in the future", () => {
  const shard = newShard();
  for (let at = 0; at < 10; at++) shard.append([batchOf(`${at}`)]);
  const subscriber = subscribed(shard, { offset: 10 });
  shard.append([batchOf("live")]);
  assertEquals(drain(subscriber), ["10:live"]);
  const result = shard.subscribe({ offset: 12 }, { policy: "drop_new", capacityEnvelopes: 1 });
  assertEquals(result, { kind: "in_future", requested: 12, available: 11 });
});

Deno.test("ST14: of 2000 records the ring holds 1024: earliest is 976, 975 is too old", () => {
  const shard = newShard();
  for (let at = 0; at < 2000; at += 50) {
    shard.append([batchOf(...Array.from({ length: 50 }, (_, record) => `${at + record}`))]);
  }
  const seen = drain(subscribed(shard, "earliest"));
  assertEquals(seen, Array.from({ length: 1024 }, (_, at) => `${976 + at}:${976 + at}`));
  const result = shard.subscribe({ offset: 975 }, { policy: "drop_new", capacityEnvelopes: 1 });
  assertEquals(result, { kind: "too_old", requested: 975, available: 976 });
});

Deno.test("ST19: a lone event is ready within the call that published it", () => {
  const { pipeline, budget } = newPipeline();
  const shard = newShard();
  const subscriber = subscribed(shard);
  const order: string[] = [];
  subscriber.onReady = () => order.push("ready");
  const job = new TestPublish(shard, batchOf("x"), budget);
  job.onSettle = () => order.push("settled");
  pipeline.submit(job, 0);
  pipeline.pump();
  assertEquals(order, ["ready", "settled"]);
});

Deno.test("ST20: 200 small events are taken at most 64, and at most 64 KiB, at a time", () => {
  const shard = newShard();
  const [events, bytes] = [subscribed(shard), subscribed(shard)];
  for (let at = 0; at < 200; at++) shard.append([blankBatch(2000)]);
  const sizes = (subscriber: typeof events, maxBytes: number): number[] => {
    const taken: number[] = [];
    while (subscriber.queuedEnvelopes > 0) taken.push(subscriber.take(64, maxBytes).length);
    return taken;
  };
  assertEquals(sizes(events, 1e9), [64, 64, 64, 8]);
  assertEquals(sizes(bytes, 65_536), [32, 32, 32, 32, 32, 32, 8]);
});

Deno.test("ST21: an unacked burst beyond queue and bytes is shed, counted, never seen", () => {
  for (const settings of [{ queueDepth: 4, executors: 2 }, { connectionInflightBytes: 40 }]) {
    const { pipeline, counters, budget } = newPipeline(settings);
    const shard = newShard();
    const blocker = blockShard(shard);
    const jobs = Array.from(
      { length: 20 },
      (_, at) => new TestPublish(shard, batchOf(`${at}`.padStart(4)), budget, false),
    );
    for (const job of jobs) pipeline.submit(job, 0);
    pipeline.pump();
    const admitted = jobs.filter(({ result }) => result === "pending");
    const shed = jobs.filter(({ result }) => result === "shed");
    assert(admitted.length > 0 && shed.length > 0);
    assertEquals(admitted.length + shed.length, 20);
    assertEquals(counters.ingressDropped, shed.length);
    const witness = subscribed(shard);
    drain(blocker);
    pipeline.pump();
    assertEquals(drain(witness), admitted.map((_, at) => `${at + 1}:${`${at}`.padStart(4)}`));
  }
});

Deno.test("ST22: without waiting, an acked publish at a full queue is overloaded at once", () => {
  const { pipeline, budget } = newPipeline({ queueDepth: 1, executors: 2, queueWaitMs: 0 });
  const shard = newShard();
  blockShard(shard);
  const jobs = [1, 2].map(() => new TestPublish(shard, batchOf("x"), budget));
  assertEquals(jobs.map((job) => pipeline.submit(job, 0)), ["queued", "settled"]);
  assertEquals(jobs[1]!.outcomes, [{
    kind: "refused",
    code: "overloaded",
    reason: "publish_queue_full",
    retryAfterMs: 10,
  }]);
  assertEquals(shard.tail, 1);
});

Deno.test("ST23: room after 1 s lets a waiting publish in; after 2 s it is overloaded", () => {
  const { pipeline, budget } = newPipeline({ queueDepth: 1, executors: 2 });
  const shard = newShard();
  const blocker = blockShard(shard);
  const jobs = [1, 2, 3].map(() => new TestPublish(shard, batchOf("x"), budget));
  assertEquals(pipeline.submit(jobs[0]!, 0), "queued");
  assertEquals(pipeline.submit(jobs[1]!, 0), "waiting");
  assertEquals(pipeline.submit(jobs[2]!, 500), "waiting");
  pipeline.pump();
  pipeline.ownPending();
  pipeline.expire(1000);
  drain(blocker);
  pipeline.pump();
  assertEquals(jobs.map(({ result }) => result), ["written 1", "pending", "pending"]);
  assertEquals(jobs.map(({ admissions }) => admissions), [0, 1, 0]);
  pipeline.expire(2499);
  assertEquals(jobs[2]!.result, "pending");
  pipeline.expire(2500);
  assertEquals(jobs.map(({ result }) => result), ["written 1", "pending", "overloaded"]);
  drain(blocker);
  pipeline.pump();
  assertEquals(jobs[1]!.result, "written 2");
});

Deno.test("ST24: while one tenant floods, another is admitted and served within one round", () => {
  const { pipeline, budget } = newPipeline({ queueDepth: 8, executors: 4 });
  const registry = new StreamRegistry();
  const flood = streamIn(registry, "events", { tenant: "a", shards: 4 });
  const quiet = streamIn(registry, "events", { tenant: "b" }).shards[0]!;
  const blockers = flood.shards.map(blockShard);
  let admitted = 0;
  for (let at = 0; at < 100; at++) {
    const job = new TestPublish(flood.shards[at % 4]!, blankBatch(60_000), budget, false);
    admitted += pipeline.submit(job, 0) === "queued" ? 1 : 0;
  }
  assertEquals(admitted, 24);
  for (const blocker of blockers) blocker.shard.unsubscribe(blocker);
  const before = flood.shards.map(({ tail }) => tail);
  const job = new TestPublish(quiet, batchOf("x"), budget, false);
  let servedBefore = -1;
  job.onSettle = () => {
    const tails = flood.shards.map(({ tail }) => tail);
    servedBefore = tails.reduce((sum, tail, at) => sum + tail - before[at]!, 0);
  };
  assertEquals(pipeline.submit(job, 0), "queued");
  pipeline.pump();
  assertEquals(job.result, "written 0");
  // One claim of the flooding tenant: all that its one lane could put behind a first publish.
  assert(servedBefore <= 6, `${servedBefore} publishes were served first`);
});

Deno.test("ST25: tenants with 1 MB and 1 KB jobs get equal bytes but for Q + 2 x largest", () => {
  const { pipeline, budget } = newPipeline({
    queueDepth: 4096,
    inflightBytes: 1e9,
    connectionInflightBytes: 1e9,
  });
  const registry = new StreamRegistry();
  const shards = ["a", "b"].map((tenant) => streamIn(registry, "events", { tenant }).shards[0]!);
  const blockers = shards.map(blockShard);
  const [total, largest] = [8_000_000, 1_000_000];
  let [lead, lowest, highest] = [0, 0, 0];
  const left = [total, total];
  shards.forEach((shard, at) => {
    const bytes = at === 0 ? largest : 1000;
    for (let sent = 0; sent < total; sent += bytes) {
      const job = new TestPublish(shard, blankBatch(bytes), budget);
      job.onSettle = () => {
        // Beyond this point only one of the two is backlogged.
        if (left[0]! > 0 && left[1]! > 0) {
          lead += at === 0 ? bytes : -bytes;
          lowest = Math.min(lowest, lead);
          highest = Math.max(highest, lead);
        }
        left[at]! -= bytes;
      };
      assertEquals(pipeline.submit(job, 0), "queued");
    }
  });
  for (const blocker of blockers) blocker.shard.unsubscribe(blocker);
  pipeline.pump();
  assertEquals(left, [0, 0]);
  assert(highest - lowest <= 65_536 + 2 * largest, `apart by ${highest - lowest}`);
});

Deno.test("ST26: 8 publishes queued on one lane are one append, one envelope, own offsets", () => {
  const { pipeline, counters, budget } = newPipeline();
  const shard = newShard();
  const subscriber = subscribed(shard);
  const jobs = Array.from({ length: 8 }, (_, at) => {
    const texts = at === 2 ? ["c1", "c2", "c3"] : [`${at}`];
    return new TestPublish(shard, batchOf(...texts), budget);
  });
  for (const job of jobs) pipeline.submit(job, 0);
  pipeline.pump();
  const offsets = jobs.map(({ result }) => Number(result.replace("written ", "")));
  assertEquals(offsets, [0, 1, 2, 5, 6, 7, 8, 9]);
  assertEquals([subscriber.queuedEnvelopes, subscriber.queuedRecords], [1, 10]);
  assertEquals(counters.claimJobs[8], 1);
});

Deno.test("ST31: what a client that went away had queued is appended and fanned out", () => {
  const { pipeline, budget } = newPipeline();
  const shard = newShard();
  const blocker = blockShard(shard);
  const job = new TestPublish(shard, batchOf("x"), budget);
  pipeline.submit(job, 0);
  pipeline.pump();
  pipeline.closeBudget(budget);
  drain(blocker);
  pipeline.pump();
  assertEquals([drain(blocker), job.result, budget.used], [["1:x"], "written 1", 0]);
});

const durable = {
  tenant: "acme",
  namespace: "main",
  stream: "events",
  shards: 1,
  routing: "modulo",
  durable: true,
} as const;

Deno.test("ST33: a durable stream is refused without durable storage", () => {
  const registry = new StreamRegistry();
  const error = assertThrows(() => registry.register(durable), CoreError);
  assertEquals(error.code, "durable_not_available");
  assertEquals(registry.list(), []);
});

Deno.test("ST34: durability never changes; a removed stream can be made anew", () => {
  const registry = new StreamRegistry();
  const stream = registry.register({ ...durable, durable: false });
  stream.shards[0]!.append([batchOf("x")]);
  const error = assertThrows(() => registry.register(durable), CoreError);
  assertEquals(error.code, "definition_changed");
  registry.remove("acme", "main", "events");
  const again = registry.register({ ...durable, durable: false });
  assert(again !== stream && again.active && again.shards[0]!.tail === 0);
});

const T0 = 1_700_000_000_000;
const SECOND = 1000;

function cache(): CacheStore {
  return new CacheStore(new CacheMemory(1024 * 1024));
}

Deno.test("CA1, CA2: a get answers what was put, and null for what was not", () => {
  const store = cache();
  store.put("k", Uint8Array.of(1, 2), null, T0);
  assertEquals([store.get("k", T0), store.get("other", T0)], [Uint8Array.of(1, 2), null]);
});

Deno.test("CA3: a ttl of 60 s ends at 60 s, not at 59.999 s", () => {
  const store = cache();
  store.put("k", Uint8Array.of(1), 60 * SECOND, T0);
  assertEquals(store.get("k", T0 + 59_999), Uint8Array.of(1));
  assertEquals(store.get("k", T0 + 60_000), null);
});

Deno.test("CA6: a put without ttl removes the expiry", () => {
  const store = cache();
  store.put("k", Uint8Array.of(1), 10 * SECOND, T0);
  store.put("k", Uint8Array.of(2), null, T0 + 5 * SECOND);
  assertEquals(store.get("k", T0 + 3600 * SECOND), Uint8Array.of(2));
});

Deno.test("CA7: a put with a ttl restarts the life; the sweep in between removes nothing", () => {
  const store = cache();
  store.put("k", Uint8Array.of(1), 10 * SECOND, T0);
  store.put("k", Uint8Array.of(2), 10 * SECOND, T0 + 9 * SECOND);
  assertEquals(store.sweep(T0 + 10 * SECOND, 100), 0);
  assertEquals(store.get("k", T0 + 18_900), Uint8Array.of(2));
  assertEquals(store.get("k", T0 + 19_000), null);
});

Deno.test("CA8: a delete answers the old value; null for a missing and for an expired one", () => {
  const store = cache();
  store.put("k", Uint8Array.of(1), null, T0);
  store.put("old", Uint8Array.of(2), 10, T0);
  assertEquals(store.delete("k", T0), Uint8Array.of(1));
  assertEquals(store.get("k", T0), null);
  assertEquals([store.delete("k", T0), store.delete("old", T0 + 10)], [null, null]);
  assertEquals([store.size, store.bytes], [0, 0]);
});

Deno.test("CA15: a stream and a cache of one name are independent", () => {
  const streams = new StreamRegistry();
  const caches = new CacheRegistry({ budgetBytes: 1024 * 1024 });
  const shard = streamIn(streams, "same").shards[0]!;
  const definition = { tenant: "acme", namespace: "main", cache: "same", shards: 3 };
  const [store] = caches.register(definition).shards;
  shard.append([batchOf("k")]);
  assertEquals(store!.get("k", T0), null);
  store!.put("k", Uint8Array.of(1), null, T0);
  assertEquals(shard.tail, 1);
  streams.remove("acme", "main", "same");
  assertEquals(store!.get("k", T0), Uint8Array.of(1));
});
