// Subscriptions to several shards (spec/client.md §8; `sharded.*` of §22, trap 9 of §23). A stream
// of several shards in memory stands behind the broker.

import { assert, assertEquals, assertRejects } from "@std/assert";
import { InvalidArgumentError, NotFoundError } from "../failure/classes.ts";
import { connectTo, networkTest } from "../testing/fixture.ts";
import { MemoryBroker } from "../testing/memory_broker.ts";
import { ScriptedBroker } from "../testing/scripted_broker.ts";
import type { ShardedSubscription, ShardItem } from "./sharded_types.ts";

const encoder = new TextEncoder();

function wide(shards: number, records: number): MemoryBroker {
  const memory = new MemoryBroker({ wide: shards });
  for (let shard = 0; shard < shards; shard++) {
    for (let n = 0; n < records; n++) {
      memory.shard("wide", shard).records.push(encoder.encode(`${shard}/${n}`));
    }
  }
  return memory;
}

async function take(subscription: ShardedSubscription, count: number): Promise<ShardItem[]> {
  const items: ShardItem[] = [];
  while (items.length < count) {
    const item = await subscription.next();
    if (item === null) break;
    items.push(item);
  }
  return items;
}

function texts(items: readonly ShardItem[]): string[] {
  return items.map((item) => item.type === "event" ? item.event.text() : item.type);
}

networkTest("every shard is delivered, in order within a shard [sharded.delivers]", async () => {
  await using broker = await ScriptedBroker.start({}, { memory: wide(3, 5) });
  await using client = await connectTo(broker);
  await using all = await client.stream("wide").subscribeSharded({ start: "earliest" });
  assertEquals(all.shards, 3);
  const seen = texts(await take(all, 15));
  for (let shard = 0; shard < 3; shard++) {
    const own = seen.filter((text) => text.startsWith(`${shard}/`));
    assertEquals(own, Array.from({ length: 5 }, (_, n) => `${shard}/${n}`));
  }
  assertEquals(all.positions(), new Map([[0, 4n], [1, 4n], [2, 4n]]));
});

networkTest("some shards only, and the events alone", async () => {
  await using broker = await ScriptedBroker.start({}, { memory: wide(4, 1) });
  await using client = await connectTo(broker);
  const stream = client.stream("wide");
  await using two = await stream.subscribeSharded({ start: "earliest", shards: [1, 3] });
  const seen: string[] = [];
  for await (const event of two.events()) {
    seen.push(event.text());
    if (seen.length === 2) break;
  }
  assertEquals(seen.toSorted(), ["1/0", "3/0"]);
  assertEquals(await two.next(), null, "leaving the loop closes it");
  await assertRejects(() => stream.subscribeSharded({ shards: [4] }), InvalidArgumentError);
  await assertRejects(() => stream.subscribeSharded({ shards: [] }), InvalidArgumentError);
});

networkTest("an unknown stream has no shards, not one (trap 9)", async () => {
  await using broker = await ScriptedBroker.start();
  await using client = await connectTo(broker, { reconnect: { attempts: 1 } });
  await assertRejects(() => client.stream("none").subscribeSharded(), NotFoundError);
  assertEquals(broker.of("subscribe").length, 0);
});

networkTest("a checkpoint covers silent shards too [sharded.resumes_per_shard]", async () => {
  const memory = wide(2, 2);
  await using broker = await ScriptedBroker.start({}, { memory });
  await using client = await connectTo(broker);
  const stream = client.stream("wide");
  const first = await stream.subscribeSharded();
  memory.shard("wide", 0).records.push(encoder.encode("0/2"));
  const checkpoint = first.checkpoint();
  assertEquals(checkpoint, { v: 1, stream: "wide", next: { "0": "2", "1": "2" } });
  assertEquals(first.positions(), new Map());
  await first.close();
  const json = JSON.parse(JSON.stringify(checkpoint));
  await using second = await stream.subscribeSharded({ resume: json });
  assertEquals(texts(await take(second, 1)), ["0/2"]);
  assertEquals(second.checkpoint().next, { "0": "3", "1": "2" });
  const positions = { "1": 0n };
  await using third = await stream.subscribeSharded({ resume: positions, start: 2n });
  assertEquals(texts(await take(third, 2)).toSorted(), ["0/2", "1/1"]);
});

networkTest("a lost shard is said, then got back [sharded.a_lost_shard_is_surfaced]", async () => {
  let refuse = false;
  const memory = wide(2, 1);
  await using broker = await ScriptedBroker.start({
    message(stream, message) {
      if (message.type !== "subscribe" || message.shard !== 1 || !refuse) return false;
      stream.refuse("forbidden", "fatal");
      stream.finish();
      return true;
    },
  }, { memory });
  await using client = await connectTo(broker);
  await using all = await client.stream("wide").subscribeSharded({ start: "earliest" });
  assertEquals(texts(await take(all, 2)).toSorted(), ["0/0", "1/0"]);
  refuse = true;
  broker.drop();
  const [lost] = await take(all, 1);
  assert(lost?.type === "shardLost");
  assertEquals([lost.shard, lost.error.code], [1, "subscription_lost"]);
  refuse = false;
  assertEquals(await take(all, 1), [{ type: "shardRecovered", shard: 1 }]);
  await client.stream("wide").publish("to shard 0");
  assertEquals(texts(await take(all, 1)), ["to shard 0"]);
});

networkTest("moves and ends are said; it ends when all have ended", async () => {
  let id = 1n;
  await using broker = await ScriptedBroker.start({
    async message(stream, message) {
      if (message.type !== "subscribe") return false;
      const subscription_id = id++;
      const events = await stream.connection.events(subscription_id);
      stream.send({ type: "subscribed", subscription_id });
      if (message.shard === 1 && subscription_id <= 2n) {
        events.send({ type: "shard_moved", subscription_id, generation: 9n });
      }
      events.finish();
      return true;
    },
  }, { memory: wide(2, 0) });
  await using client = await connectTo(broker);
  const items: ShardItem[] = [];
  for await (const item of await client.stream("wide").subscribeSharded()) items.push(item);
  assertEquals(items.filter(({ type }) => type === "shardMoved"), [
    { type: "shardMoved", shard: 1, nodeId: null, addr: null, generation: 9n },
  ]);
  const ended = items.filter(({ type }) => type === "shardEnded").map(({ shard }) => shard);
  assertEquals(ended.toSorted(), [0, 1]);
});
