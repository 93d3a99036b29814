// How publishes find their stream of the connection: widths, windows, pooled writers, owner changes
// (spec/client.md §13.2, spec/wire.md §4.4).

import { assert, assertEquals } from "@std/assert";
import {
  FEATURE_HI_PUBLISH_WIDTH,
  FEATURE_SHARD_OWNERS,
  FEATURE_STREAM_PUBLISH_WINDOW,
} from "@felix/wire";
import type { BrokerStream } from "../testing/broker_stream.ts";
import { connectTo, networkTest, until } from "../testing/fixture.ts";
import { MemoryBroker } from "../testing/memory_broker.ts";
import { DEFAULT_FEATURES, ScriptedBroker } from "../testing/scripted_broker.ts";

networkTest(
  "the width is stated ahead of keyed batches, once; a stale one is asked again",
  async () => {
    const memory = new MemoryBroker({ wide: 4 });
    let stale = 0;
    await using broker = await ScriptedBroker.start({
      publish(stream, frame) {
        if (frame.key === null || stale-- <= 0) return false;
        stream.refusePublish(frame.requestId, "stale_width", "retry");
        return true;
      },
    }, { memory, featuresHigh: FEATURE_HI_PUBLISH_WIDTH });
    await using client = await connectTo(broker);
    const wide = client.stream("wide");
    await wide.publish("plain");
    assertEquals(broker.of("publish_width").length, 0);
    await wide.publish("a", { key: "k" });
    await wide.publish("b", { key: "k" });
    assertEquals(broker.of("publish_width").map(({ shards }) => shards), [4]);
    memory.streams.set("wide", [...memory.streams.get("wide")!, ...memory.streams.get("wide")!]);
    stale = 1;
    const result = await wide.publish("c", { key: "k" });
    assertEquals(result.attempts, 2);
    assertEquals(broker.of("stream_shards").length, 2);
    assertEquals(broker.of("publish_width").at(-1)?.shards, 8);
  },
);

networkTest("a keyed publish right after an unkeyed one still learns the width", async () => {
  const memory = new MemoryBroker({ wide: 4 });
  await using broker = await ScriptedBroker.start({
    message(stream, message) {
      if (message.type !== "shard_owners") return false;
      stream.send({ type: "shard_owners_view", owners: [], request_id: message.request_id });
      return true;
    },
  }, { memory, features: (DEFAULT_FEATURES | FEATURE_SHARD_OWNERS) >>> 0 });
  await using client = await connectTo(broker);
  const wide = client.stream("wide");
  const results = await Promise.all([wide.publish("a"), wide.publish("b", { key: "k0" })]);
  assertEquals(results[0].shard, 0);
  assert(results[1].shard !== null);
  assertEquals(broker.of("stream_shards").length, 1);
});

networkTest("shards beyond the limit share the pooled streams, hashed by name", async () => {
  const memory = new MemoryBroker({ wide: 8 });
  const streams = new Map<string, Set<BrokerStream>>();
  await using broker = await ScriptedBroker.start({
    publish(stream, frame) {
      const key = new TextDecoder().decode(frame.key!);
      streams.set(key, (streams.get(key) ?? new Set()).add(stream));
      return false;
    },
  }, { memory });
  const publish = { shardStreams: 2, connections: 2, streamsPerConnection: 2 };
  await using client = await connectTo(broker, { pools: { publish } });
  const wide = client.stream("wide");
  const keys = Array.from({ length: 24 }, (_, n) => `customer-${n}`);
  for (let round = 0; round < 2; round++) {
    await Promise.all(keys.map((key) => wide.publish("x", { key })));
  }
  for (const key of keys) assertEquals(streams.get(key)!.size, 1, key);
  const used = new Set([...streams.values()].map((set) => [...set][0]!));
  assertEquals(used.size, 3, "two of their own and one for all others");
});

networkTest("round robin spreads over all pooled streams", async () => {
  const streams = new Set<BrokerStream>();
  await using broker = await ScriptedBroker.start({
    publish(stream) {
      streams.add(stream);
      return false;
    },
  });
  const publish = { sharding: "roundRobin", connections: 2, streamsPerConnection: 3 } as const;
  await using client = await connectTo(broker, { pools: { publish } });
  const orders = client.stream("orders");
  await Promise.all(Array.from({ length: 12 }, (_, n) => orders.publish(String(n))));
  assertEquals(streams.size, 6);
  assertEquals(broker.connections.length, 2);
  assertEquals(broker.memory.shard("orders").records.length, 12);
});

networkTest("a window of the connection is shared by its streams", async () => {
  const memory = new MemoryBroker({ wide: 2 });
  const held: (() => void)[] = [];
  await using broker = await ScriptedBroker.start({
    publish(stream, { requestId }) {
      held.push(() => stream.ack({ requestId }));
      return true;
    },
  }, {
    memory,
    publishWindow: 2,
    features: (DEFAULT_FEATURES & ~FEATURE_STREAM_PUBLISH_WINDOW) >>> 0,
  });
  await using client = await connectTo(broker);
  const wide = client.stream("wide");
  const keys = ["a", "b", "c", "d", "e", "f"];
  const sent = keys.map((key) => wide.publish("x", { key }));
  for (let answered = 0; answered < keys.length; answered++) {
    await until(() => held.length === Math.min(keys.length, answered + 2));
    held[answered]!();
    await until(() => client.metrics().publish.acked === BigInt(answered + 1));
  }
  await Promise.all(sent);
});

networkTest("the writer changes only when nothing of the old one is unanswered", async () => {
  const memory = new MemoryBroker();
  const order: string[] = [];
  await using owner = await ScriptedBroker.start({
    publish(_stream, frame) {
      order.push(`owner ${new TextDecoder().decode(frame.records.subarray(4))}`);
      return false;
    },
  }, { memory });
  const held: (() => void)[] = [];
  await using entry = await ScriptedBroker.start({
    publish(stream, frame) {
      const { requestId } = frame;
      order.push(`entry ${new TextDecoder().decode(frame.records.subarray(4))}`);
      const to = { nodeId: "n2", addr: owner.address, generation: 1n };
      held.push(() => stream.ack({ requestId, offset: 0n, owner: to }));
      return true;
    },
  }, { memory });
  await using client = await connectTo(entry);
  const orders = client.stream("orders");
  const [a, b] = [orders.publish("a"), orders.publish("b")];
  await until(() => held.length === 2);
  held[0]!();
  await a;
  const c = orders.publish("c");
  await new Promise((resolve) => setTimeout(resolve, 30));
  assertEquals(order, ["entry a", "entry b"], "c waits for b");
  held[1]!();
  await Promise.all([b, c]);
  assertEquals(order, ["entry a", "entry b", "owner c"]);
});

networkTest("unacked frames that were not taken are counted as lost", async () => {
  await using broker = await ScriptedBroker.start({
    // It never reads on, so that flow control stops the client.
    publish: () => new Promise<boolean>(() => undefined),
  });
  const losses: { frames: number; bytes: number }[] = [];
  await using client = await connectTo(broker, {
    limits: { publishInflightBytes: 64 * 1024 * 1024 },
    hooks: { onUnackedLoss: (info) => losses.push(info) },
  });
  const orders = client.stream("orders");
  const payload = new Uint8Array(1024 * 1024);
  const sent = Array.from({ length: 30 }, () => orders.publish(payload, { ack: "none" }));
  const settled = Promise.allSettled(sent);
  await sent[0];
  await until(() => client.metrics().publish.inflightBytes > 0);
  await new Promise((resolve) => setTimeout(resolve, 100));
  broker.drop();
  await until(() => losses.length > 0);
  const { publish } = client.metrics();
  assertEquals(publish.unackedLost, BigInt(losses.reduce((sum, { frames }) => sum + frames, 0)));
  await client.close({ drainMs: 10 });
  // Also what waited for a writer when the client closed is settled.
  assertEquals((await settled).length, 30);
});
