// Finding another broker: reconnects, draining, discovery, owners and redirects
// (spec/client.md §12; conformance ids of §22 in brackets).

import { assert, assertEquals, assertRejects } from "@std/assert";
import { FEATURE_SHARD_OWNERS, FEATURE_TOPOLOGY } from "@felix/wire";
import { NotLeaderError, UnsupportedError } from "../failure/classes.ts";
import { connectTo, networkTest, until } from "../testing/fixture.ts";
import { MemoryBroker } from "../testing/memory_broker.ts";
import { DEFAULT_FEATURES, ScriptedBroker } from "../testing/scripted_broker.ts";
import type { Script } from "../testing/scripted_broker.ts";

const WITH_OWNERS = (DEFAULT_FEATURES | FEATURE_SHARD_OWNERS) >>> 0;

networkTest(
  "a lost entry is replaced by another broker [reconnect.survives_broker_loss]",
  async () => {
    const memory = new MemoryBroker();
    const first = await ScriptedBroker.start({}, { memory });
    await using second = await ScriptedBroker.start({}, { memory });
    await using client = await connectTo([first, second], { dialTimeoutMs: 300 });
    const orders = client.stream("orders");
    assertEquals((await orders.publish("a")).broker, first.address);
    await first.stop();
    await until(() => client.connections().length === 0);
    assertEquals((await orders.publish("b")).broker, second.address);
    await client.cache("sessions").put("k", "v");
    assertEquals(memory.texts("orders"), ["a", "b"]);
    assertEquals(second.connections.length, 2);
  },
);

networkTest("failures in transport are tried on another broker first", async () => {
  const memory = new MemoryBroker();
  await using bad = await ScriptedBroker.start({
    message(stream, message) {
      if (message.type === "cache_get") stream.finish();
      return message.type === "cache_get";
    },
  }, { memory });
  await using good = await ScriptedBroker.start({}, { memory });
  await using client = await connectTo([bad, good]);
  assertEquals(await client.cache("sessions").get("k"), null);
  assertEquals(bad.of("cache_get").length, 1);
  assertEquals(good.of("cache_get").length, 1);
});

networkTest("the same broker again when there is no other", async () => {
  await using broker = await ScriptedBroker.start();
  await using client = await connectTo(broker);
  const sessions = client.cache("sessions");
  await sessions.put("k", "v");
  broker.drop();
  await until(() => client.connections().length === 0);
  assertEquals(await sessions.getText("k"), "v");
});

networkTest("a draining broker is left for another one", async () => {
  const memory = new MemoryBroker();
  let draining = false;
  await using first = await ScriptedBroker.start({
    auth(stream) {
      if (draining) {
        stream.refuse("draining", "retry");
        stream.finish();
      }
      return draining;
    },
  }, { memory });
  await using second = await ScriptedBroker.start({}, { memory });
  await using client = await connectTo([first, second]);
  draining = true;
  await using subscription = await client.stream("orders").subscribe();
  assert(!subscription.closed);
  assertEquals(second.of("subscribe").length, 1);
});

networkTest("brokers are discovered from one seed [reconnect.discovers_brokers]", async () => {
  const memory = new MemoryBroker();
  await using other = await ScriptedBroker.start({}, { memory });
  const script: Script = {
    message(stream, message) {
      if (message.type !== "topology") return false;
      const brokers = [{ node_id: "n2", addr: other.address }, { node_id: "n3", addr: "no-port" }];
      stream.send({ type: "topology_view", brokers });
      return true;
    },
  };
  const features = (DEFAULT_FEATURES | FEATURE_TOPOLOGY) >>> 0;
  const seed = await ScriptedBroker.start(script, { memory, features });
  await using client = await connectTo(seed, { dialTimeoutMs: 300 });
  await until(() => client.endpoints().length === 2);
  assertEquals(client.endpoints(), [other.address, seed.address]);
  assertEquals((await client.refreshTopology()).map(({ nodeId }) => nodeId), ["n2", "n3"]);
  await seed.stop();
  await until(() => client.connections().length === 0);
  assertEquals((await client.stream("orders").publish("x")).broker, other.address);
});

networkTest("a broker without topology is not asked for it (trap: unknown requests)", async () => {
  await using broker = await ScriptedBroker.start();
  await using client = await connectTo(broker);
  await assertRejects(() => client.refreshTopology(), UnsupportedError);
  await assertRejects(() => client.shardOwners("stream", "orders"), UnsupportedError);
  assertEquals(broker.messages.length, 0);
});

networkTest("requests go to the owner that the entry names", async () => {
  const memory = new MemoryBroker();
  await using owner = await ScriptedBroker.start({}, { memory });
  await using entry = await ScriptedBroker.start({
    message(stream, message) {
      if (message.type !== "shard_owners") return false;
      const owners = [{ shard: 0, node_id: "n2", addr: owner.address, generation: 7n }];
      stream.send({ type: "shard_owners_view", owners, request_id: message.request_id });
      return true;
    },
  }, { memory, features: WITH_OWNERS });
  await using client = await connectTo(entry);
  assertEquals((await client.stream("orders").publish("x")).broker, owner.address);
  await client.cache("sessions").put("k", "v");
  assertEquals(owner.of("cache_put").length, 1);
  await using _subscription = await client.stream("orders").subscribe();
  assertEquals(owner.of("subscribe").length, 1);
  assertEquals(entry.of("shard_owners").map(({ kind }) => kind), ["stream", "cache"]);
  assertEquals(await client.shardOwners("stream", "orders"), [
    { shard: 0, nodeId: "n2", addr: owner.address, generation: 7n },
  ]);
});

networkTest("an owner that no longer leads is forgotten, the entry takes it at once", async () => {
  const memory = new MemoryBroker();
  await using owner = await ScriptedBroker.start({
    publish(stream, frame) {
      stream.refusePublish(frame.requestId, "not_leader", "redirect");
      return true;
    },
  }, { memory });
  await using entry = await ScriptedBroker.start({
    message(stream, message) {
      if (message.type !== "shard_owners") return false;
      const owners = [{ shard: 0, node_id: "n2", addr: owner.address, generation: 7n }];
      stream.send({ type: "shard_owners_view", owners, request_id: message.request_id });
      return true;
    },
  }, { memory, features: WITH_OWNERS });
  await using client = await connectTo(entry);
  const result = await client.stream("orders").publish("x", { retrySafe: false });
  assertEquals([result.broker, result.attempts], [entry.address, 2]);
});

networkTest("an ack that names the owner moves later publishes there", async () => {
  const memory = new MemoryBroker();
  await using owner = await ScriptedBroker.start({}, { memory });
  await using entry = await ScriptedBroker.start({
    publish(stream, frame) {
      const offset = BigInt(memory.append(frame, memory.shard("orders")));
      const to = { nodeId: "n2", addr: owner.address, generation: 4n };
      stream.ack({ requestId: frame.requestId, offset, owner: to });
      return true;
    },
  }, { memory });
  const forwarded: unknown[] = [];
  await using client = await connectTo(entry, {
    hooks: { onForwarded: (info) => forwarded.push(info) },
  });
  const orders = client.stream("orders");
  const first = await orders.publish("a");
  assertEquals([first.forwarded, first.offset, first.broker], [true, 0n, entry.address]);
  const second = await orders.publish("b");
  assertEquals([second.forwarded, second.offset, second.broker], [false, 1n, owner.address]);
  assertEquals(forwarded, [{ resource: "default/orders", shard: 0, owner: "n2" }]);
  assertEquals(memory.texts("orders"), ["a", "b"]);
});

networkTest("a redirect is followed with the same request [redirect.*]", async () => {
  const memory = new MemoryBroker();
  memory.shard("orders").records.push(...["a", "b", "c"].map((t) => new TextEncoder().encode(t)));
  await using owner = await ScriptedBroker.start({}, { memory });
  const to = (addr: string, generation: bigint): Script => ({
    message(stream, message) {
      if (message.type !== "subscribe") return false;
      stream.send({ type: "not_leader", node_id: "n", addr, generation });
      stream.finish();
      return true;
    },
  });
  await using middle = await ScriptedBroker.start(to(owner.address, 2n), { memory });
  await using entry = await ScriptedBroker.start(to(middle.address, 1n), { memory });
  const hops: string[] = [];
  await using client = await connectTo(entry, {
    reconnect: { attempts: 1 },
    hooks: { onRedirect: ({ to }) => hops.push(to), onRetry: () => hops.push("retry!") },
  });
  await using subscription = await client.stream("orders").subscribe({ start: 1n });
  assertEquals((await subscription.next())?.text(), "b");
  for (const broker of [entry, middle, owner]) {
    assertEquals(broker.of("subscribe").map(({ start }) => start), [{ offset: 1n }]);
  }
  assertEquals(hops, [middle.address, owner.address]);
  assertEquals(client.metrics().redirects, 2n);
});

networkTest("redirects that lead nowhere end as NotLeaderError", async () => {
  const told: { addr?: string } = {};
  const script: Script = {
    message(stream, message) {
      if (message.type !== "subscribe") return false;
      stream.send({ type: "not_leader", node_id: "n9", ...told, generation: 3n });
      stream.finish();
      return true;
    },
  };
  await using broker = await ScriptedBroker.start(script);
  await using client = await connectTo(broker, { reconnect: { attempts: 2, backoffMs: 1 } });
  const subscribe = (): Promise<unknown> => client.stream("orders").subscribe();
  const nowhere = await assertRejects(subscribe, NotLeaderError);
  assertEquals([nowhere.code, nowhere.nodeId, nowhere.addr], ["not_leader", "n9", null]);
  assert(nowhere.retryable);
  told.addr = broker.address;
  const loop = await assertRejects(subscribe, NotLeaderError);
  assertEquals([loop.generation, loop.addr], [3n, broker.address]);
  assertEquals(broker.of("subscribe").length, 4, "two attempts each, and no hop in a loop");
});

networkTest("a name with a port is followed as well as an IP (trap 13)", async () => {
  const memory = new MemoryBroker();
  await using owner = await ScriptedBroker.start({}, { memory });
  await using entry = await ScriptedBroker.start({
    message(stream, message) {
      if (message.type !== "subscribe") return false;
      const addr = `localhost:${owner.port}`;
      stream.send({ type: "not_leader", node_id: "n", addr, generation: 1n });
      stream.finish();
      return true;
    },
  }, { memory });
  await using client = await connectTo(entry);
  await using _subscription = await client.stream("orders").subscribe();
  assertEquals(owner.of("subscribe").length, 1);
});

networkTest("a target that cannot serve yet sends the request back to the entry", async () => {
  const memory = new MemoryBroker();
  let asked = 0;
  await using target = await ScriptedBroker.start({
    message(stream, message) {
      if (message.type !== "subscribe") return false;
      stream.refuse("shard_unavailable", "retry");
      stream.finish();
      return true;
    },
  }, { memory });
  await using entry = await ScriptedBroker.start({
    message(stream, message) {
      if (message.type !== "subscribe" || ++asked > 1) return false;
      stream.send({ type: "not_leader", node_id: "n", addr: target.address, generation: 1n });
      stream.finish();
      return true;
    },
  }, { memory });
  await using client = await connectTo(entry, { reconnect: { attempts: 1 } });
  await using _subscription = await client.stream("orders").subscribe();
  assertEquals([asked, target.of("subscribe").length], [2, 1]);
});
