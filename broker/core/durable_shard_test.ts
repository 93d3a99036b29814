// Durable streams in the core, on a simulated disk: what is acknowledged when, what readers see,
// how history joins the live tail, and what a failing disk does (spec/semantics.md §12 ST26,
// ST29-ST32).

import { assert, assertEquals } from "@std/assert";
import {
  encodeCommitBody,
  LogStore,
  RecordKind,
  type SegmentLog,
  SimulatedDisk,
} from "@felix/storage";
import { batchOf, drain, subscribed } from "./core_fixture.ts";
import { PublishCounters } from "./publish_counters.ts";
import type { PublishOutcome } from "./publish_job.ts";
import { PublishPipeline } from "./publish_pipeline.ts";
import { StreamRegistry } from "./stream_registry.ts";
import type { StreamShard } from "./stream_shard.ts";
import type { Subscriber } from "./subscriber.ts";

interface World {
  readonly disk: SimulatedDisk;
  readonly log: SegmentLog;
  readonly shard: StreamShard;
  /** Publishes one batch; the outcome comes when it does. */
  publish(...texts: string[]): Promise<PublishOutcome>;
}

const DEFINITION = {
  tenant: "acme",
  namespace: "main",
  stream: "orders",
  shards: 1,
  routing: "modulo",
  durable: true,
} as const;

async function world(disk = new SimulatedDisk(), segmentBytes = 1 << 20): Promise<World> {
  const store = await LogStore.open({
    disk,
    root: "/data",
    settings: { segmentBytes },
    nowMicros: () => 1,
    owner: "test",
  });
  const key = { tenant: "acme", namespace: "main", name: "orders", shard: 0 };
  const log = await store.openLog("streams", key);
  const registry = new StreamRegistry({ ringRecords: 4 });
  const shard = registry.register(DEFINITION, [log]).shards[0]!;
  const pipeline = new PublishPipeline({
    executors: 4,
    queueDepth: 64,
    inflightBytes: 1 << 20,
    connectionInflightBytes: 1 << 20,
    ingressWait: false,
    queueWaitMs: 1000,
    ackWaitMs: 1000,
  }, new PublishCounters());
  pipeline.onRunnable = () => pipeline.pump();
  const budget = pipeline.createBudget();
  return {
    disk,
    log,
    shard,
    publish(...texts) {
      const { promise, resolve } = Promise.withResolvers<PublishOutcome>();
      const job = { tenant: "acme", shard, batch: batchOf(...texts), budget, acked: true };
      pipeline.submit({ ...job, settle: resolve }, 0);
      pipeline.pump();
      pipeline.ownPending();
      return promise;
    },
  };
}

const written = (offset: number): PublishOutcome => ({ kind: "written", offset, durable: true });

/** Everything a subscriber gets, history included, until it is live and its queue is empty. */
async function everything(subscriber: Subscriber): Promise<string[]> {
  const seen: string[] = [];
  for (;;) {
    seen.push(...drain(subscriber));
    if (subscriber.historyFrom === null) return seen;
    await subscriber.shard.replay(subscriber);
  }
}

Deno.test("answers come after the flush, with offsets; readers see it then [ST26]", async () => {
  const { disk, shard, publish } = await world();
  const subscriber = subscribed(shard);
  let release = () => {};
  disk.beforeSync = () => new Promise((resolve) => release = resolve);
  let answered = false;
  const outcomes = Promise.all([publish("a"), publish("b", "c"), publish("d")]);
  outcomes.then(() => answered = true);
  for (let turn = 0; turn < 10; turn++) await null;
  assertEquals([answered, drain(subscriber), shard.tail], [false, [], 0]);
  disk.beforeSync = null;
  release();
  assertEquals(await outcomes, [written(0), written(1), written(3)]);
  assertEquals(drain(subscriber), ["0:a", "1:b", "2:c", "3:d"]);
});

Deno.test("a failed flush: not acknowledged, not seen, nothing later either [ST29]", async () => {
  const { disk, shard, publish } = await world();
  const subscriber = subscribed(shard);
  assertEquals(await publish("kept"), written(0));
  disk.fail({ operation: "sync", code: "io" });
  const [lost, behind] = await Promise.all([publish("lost"), publish("behind")]);
  for (const outcome of [lost, behind, await publish("later")]) {
    assert(outcome.kind === "failed" && outcome.code === "storage" && outcome.unsure);
  }
  assertEquals(drain(subscriber), ["0:kept"]);
  assertEquals(await everything(subscribed(shard, "earliest")), ["0:kept"]);
  const again = await world(disk.afterCrash({ names: "kept", data: "kept" }));
  assertEquals((await everything(subscribed(again.shard, "earliest")))[0], "0:kept");
  assertEquals(await again.publish("after"), written(again.shard.tail - 1));
});

Deno.test("a full disk: refused, then success at the same offset [ST30]", async () => {
  const { disk, publish } = await world();
  assertEquals(await publish("kept"), written(0));
  disk.capacityBytes = 0;
  const outcome = await publish("no room");
  assert(outcome.kind === "failed" && outcome.code === "storage" && !outcome.unsure);
  disk.capacityBytes = Infinity;
  assertEquals(await publish("room"), written(1));
});

Deno.test("claims that wait for a roll keep their order [ST32]", async () => {
  const { log, shard, publish } = await world(new SimulatedDisk(), 200);
  const subscriber = subscribed(shard);
  const texts = Array.from({ length: 60 }, (_, at) => `record ${at}`);
  const outcomes = await Promise.all(texts.map((text) => publish(text)));
  assertEquals(outcomes, texts.map((_, at) => written(at)));
  assertEquals(drain(subscriber), texts.map((text, at) => `${at}:${text}`));
  assert(log.segments > 1);
});

Deno.test("history joins the live tail at any moment: every offset once [ST10, ST15]", async () => {
  const { shard, publish } = await world(new SimulatedDisk(), 300);
  const texts = Array.from({ length: 100 }, (_, at) => `record ${at}`);
  const expected = texts.map((text, at) => `${at}:${text}`);
  const seen: Promise<string[]>[] = [];
  for (const [at, text] of texts.entries()) {
    await publish(text);
    if (at % 7 !== 0) continue;
    const start = at % 2 === 0 ? "earliest" : { offset: at >> 1 };
    seen.push(everything(subscribed(shard, start)));
  }
  for (const [index, records] of (await Promise.all(seen)).entries()) {
    const at = index * 7;
    const first = at % 2 === 0 ? 0 : at >> 1;
    assert(records.length > at - first);
    assertEquals(records, expected.slice(first, first + records.length));
  }
});

Deno.test("a subscriber that ends at its first drop gets nothing behind it [ST8]", async () => {
  const { shard, publish } = await world();
  const options = { capacityEnvelopes: 2, endsAtDrop: true };
  const subscriber = subscribed(shard, "latest", options);
  for (const text of ["a", "b", "c"]) await publish(text);
  assertEquals(drain(subscriber), ["0:a", "1:b"]);
  await publish("d");
  assertEquals([drain(subscriber), subscriber.firstDroppedAt], [[], 2]);
  assertEquals(await everything(subscribed(shard, { offset: 2 })), ["2:c", "3:d"]);
});

Deno.test("a full `block` subscriber holds back what is kept already", async () => {
  const { shard, publish } = await world();
  const options = { policy: "block", capacityEnvelopes: 1 } as const;
  const subscriber = subscribed(shard, "latest", options);
  const outcomes = Promise.all(["a", "b", "c", "d"].map((text) => publish(text)));
  const seen: string[] = [];
  while (seen.length < 4) {
    seen.push(...drain(subscriber));
    await new Promise((resolve) => setImmediate(resolve));
  }
  assertEquals(seen, ["0:a", "1:b", "2:c", "3:d"]);
  assertEquals(await outcomes, [0, 1, 2, 3].map(written));
});

Deno.test("removed history is a typed error, never a silent skip", async () => {
  const { log, shard, publish } = await world(new SimulatedDisk(), 200);
  for (let at = 0; at < 40; at++) await publish(`record ${at}`);
  const subscriber = subscribed(shard, "earliest");
  await log.trimBefore(20);
  const error = await shard.replay(subscriber).then(() => null, (error) => error);
  assertEquals(error?.code, "trimmed");
  const result = shard.subscribe({ offset: 0 }, { policy: "drop_new", capacityEnvelopes: 8 });
  assertEquals(result, { kind: "too_old", requested: 0, available: log.base });
});

Deno.test("of what a cluster wrote readers see commits' events [ST18]", async () => {
  const first = await world();
  const bytes = (text: string) => new TextEncoder().encode(text);
  await first.publish("before");
  const { generationStart, commit } = RecordKind;
  const body = encodeCommitBody({ event: bytes("event"), operations: [] });
  await first.log.append([{ payload: new Uint8Array(8), kind: generationStart }]);
  await first.log.append([{ payload: body, kind: commit }, { payload: bytes("after") }]);
  const image = first.disk.afterCrash({ names: "lost", data: "lost" });
  const { log, shard } = await world(image);
  assertEquals(await everything(subscribed(shard, "earliest")), ["0:before", "2:event", "3:after"]);
  await log.append([{ payload: bytes("cut"), kind: commit }]);
  const { shard: again } = await world(image.afterCrash({ names: "lost", data: "lost" }));
  const subscriber = subscribed(again, { offset: 4 });
  const error = await again.replay(subscriber).then(() => null, (error) => error);
  assertEquals(error?.code, "corruption");
});
