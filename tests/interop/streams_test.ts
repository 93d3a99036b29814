// The published client's streams against our broker: publishing in every form, reading from both
// ends, several shards, many threads, and both clients on one stream.

import { assert, assertEquals } from "@std/assert";
import { shardForKey } from "@felix/wire";
import { type DriverEvent, textOf } from "./python_driver.ts";
import { type Step, STREAM, testInWorld, WIDE_STREAM, type World } from "./world.ts";

/** The next `count` payloads of a reader, as texts. */
async function nextTexts(world: World, reader: string, count: number): Promise<string[]> {
  const texts: string[] = [];
  while (texts.length < count) {
    const event = await world.python.call<DriverEvent | null>("next_event", { reader });
    assert(event !== null, `the subscription ended after ${texts.length} of ${count}`);
    texts.push(textOf(event.payload) ?? "");
  }
  return texts;
}

interface ShardedItem {
  readonly kind: string;
  readonly shard: number;
  readonly event: DriverEvent;
}

async function publishesInEveryForm(world: World): Promise<void> {
  const client = await world.connectPython();
  const reader = await world.subscribe(client, STREAM);
  const forms = [
    { ack: "per_message" },
    { ack: "per_batch" },
    { ack: "per_message", key: "customer-1" },
    { ack: "per_batch", key: "" },
  ];
  for (const [index, form] of forms.entries()) {
    // An in-memory stream has no log, so its acks carry no offset.
    assertEquals(await world.publish(client, STREAM, `acked ${index}`, form), null);
  }
  const expected = forms.map((_, index) => `acked ${index}`);
  assertEquals(await nextTexts(world, reader, forms.length), expected);
  for (const key of [undefined, "customer-1"]) {
    const form = { ack: "none", ...(key === undefined ? {} : { key }) };
    await world.publish(client, STREAM, `unacked ${key}`, form);
    assertEquals(await nextTexts(world, reader, 1), [`unacked ${key}`]);
  }
  const args = { client, scope: world.scope(STREAM), payload: "YXQgbGVhc3Qgb25jZQ==" };
  await world.python.call("publish_at_least_once", args);
  assertEquals(await nextTexts(world, reader, 1), ["at least once"]);
}

async function carriesAnyPayload(world: World): Promise<void> {
  const client = await world.connectPython();
  const reader = await world.subscribe(client, STREAM);
  for (const length of [0, 1, 1500, 70_000, 1 << 20, 4 << 20]) {
    const payload = new Uint8Array(length).map((_, index) => (index * 7 + length) % 251);
    await world.publish(client, STREAM, payload);
    const event = await world.python.call<DriverEvent>("next_event", { reader, timeout: 30 });
    assert(event.payload === payload.toBase64(), `payload of ${length} bytes`);
  }
}

async function startsWhereItIsTold(world: World): Promise<void> {
  const client = await world.connectPython();
  await world.publish(client, STREAM, "before");
  const latest = await world.subscribe(client, STREAM, { start: "latest" });
  const earliest = await world.subscribe(client, STREAM, { start: "earliest" });
  await world.publish(client, STREAM, "after");
  assertEquals(await nextTexts(world, latest, 1), ["after"]);
  const history: string[] = [];
  while (history.at(-1) !== "after") history.push(...await nextTexts(world, earliest, 1));
  assertEquals(history.slice(-2), ["before", "after"]);
}

async function batchesOfOursReachPython(world: World): Promise<void> {
  const reader = await world.subscribe(await world.connectPython(), STREAM);
  const ours = await world.connectOurs();
  const texts = Array.from({ length: 200 }, (_, index) => `batched ${index}`);
  await ours.stream(STREAM).publishBatch(texts.slice(0, 64));
  await ours.stream(STREAM).publishBatch(texts.slice(64, 128), { ack: "none" });
  for (const text of texts.slice(128)) await ours.stream(STREAM).publish(text);
  assertEquals(await nextTexts(world, reader, texts.length), texts);
}

async function publishesOfPythonReachOurs(world: World): Promise<void> {
  const ours = await world.connectOurs();
  await using subscription = await ours.stream(STREAM).subscribe();
  const client = await world.connectPython();
  const texts = Array.from({ length: 50 }, (_, index) => `from Python ${index}`);
  for (const text of texts) await world.publish(client, STREAM, text);
  for (const text of texts) assertEquals((await subscription.next())?.text(), text);
}

async function keysLandOnTheirShards(world: World): Promise<void> {
  const client = await world.connectPython();
  const args = { client, scope: world.scope(WIDE_STREAM) };
  const shards = await world.python.call<number>("stream_shards", args);
  assert(shards > 1, "the development broker's wide stream has several shards");
  const reader = await world.subscribe(client, WIDE_STREAM, { sharded: true });
  const keys = Array.from({ length: 40 }, (_, index) => `customer-${index}`);
  for (const key of keys) await world.publish(client, WIDE_STREAM, key, { key });
  const seen = new Map<string, number>();
  while (seen.size < keys.length) {
    const item = await world.python.call<ShardedItem | null>("next_sharded", { reader });
    assertEquals(item?.kind, "ShardRecord");
    if (item !== null) seen.set(textOf(item.event.payload) ?? "", item.shard);
  }
  for (const key of keys) {
    const expected = shardForKey(new TextEncoder().encode(key), shards);
    assertEquals(seen.get(key), expected, key);
  }
  assert(new Set(seen.values()).size > 1, "the keys reach more than one shard");
}

async function bothClientsRouteAlike(world: World): Promise<void> {
  const reader = await world.subscribe(await world.connectPython(), WIDE_STREAM, { sharded: true });
  const ours = await world.connectOurs();
  const keys = Array.from({ length: 20 }, (_, index) => `order-${index}`);
  for (const key of keys) await ours.stream(WIDE_STREAM).publish(key, { key });
  const { shards } = await ours.stream(WIDE_STREAM).routing();
  for (let left = keys.length; left > 0; left--) {
    const item = await world.python.call<ShardedItem | null>("next_sharded", { reader });
    const key = textOf(item?.event.payload ?? null) ?? "";
    assertEquals(item?.shard, shardForKey(new TextEncoder().encode(key), shards), key);
  }
}

async function manyThreadsKeepTheirOrder(world: World): Promise<void> {
  const [threads, each] = [32, 50];
  const client = await world.connectPython();
  const ours = await world.connectOurs();
  await using subscription = await ours.stream(STREAM).subscribe();
  const args = { client, scope: world.scope(STREAM), threads, each };
  const publishing = world.python.call<{ failures: string[] }>("publish_many", args);
  const next = new Array<number>(threads).fill(0);
  for (let left = threads * each; left > 0; left--) {
    const text = (await subscription.next())?.text() ?? "";
    const [thread = -1, number = -1] = text.split(":").map(Number);
    assertEquals(number, next[thread], `order of thread ${thread}`);
    next[thread] = number + 1;
  }
  assertEquals((await publishing).failures, []);
}

async function closingAReaderFreesIt(world: World): Promise<void> {
  const client = await world.connectPython();
  const reader = await world.subscribe(client, STREAM);
  await world.publish(client, STREAM, "one");
  assertEquals(await nextTexts(world, reader, 1), ["one"]);
  await world.python.call("close_reader", { reader });
  const again = await world.subscribe(client, STREAM);
  for (let index = 0; index < 10; index++) await world.publish(client, STREAM, `more ${index}`);
  assertEquals((await nextTexts(world, again, 10)).at(-1), "more 9");
}

const STEPS: readonly Step[] = [
  ["publishes with every ack mode, with and without a key", publishesInEveryForm],
  ["carries empty, large and binary payloads unchanged", carriesAnyPayload],
  ["subscribes from latest and from earliest", startsWhereItIsTold],
  ["reads batches that our client published", batchesOfOursReachPython],
  ["is read by our client", publishesOfPythonReachOurs],
  ["publishes by key to the shard that the specification names", keysLandOnTheirShards],
  ["agrees with our client on every key's shard", bothClientsRouteAlike],
  ["publishes from many threads, each in its order", manyThreadsKeepTheirOrder],
  ["closes a reader and subscribes again", closingAReaderFreesIt],
];

testInWorld("published client: streams", {}, STEPS);
