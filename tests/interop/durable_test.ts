// The published client on durable streams: offsets on acks and events, replay from the beginning
// and from a position, and both over a broker that was killed and started again.

import { assertEquals } from "@std/assert";
import type { DriverEvent } from "./python_driver.ts";
import { textOf } from "./python_driver.ts";
import { type Step, STREAM, testInWorld, WIDE_STREAM, type World } from "./world.ts";

/** The next `count` events of a reader, as `offset:text`. */
async function nextEvents(world: World, reader: string, count: number): Promise<string[]> {
  const seen: string[] = [];
  while (seen.length < count) {
    const event = await world.python.call<DriverEvent | null>("next_event", { reader });
    if (event === null) break;
    seen.push(`${event.offset}:${textOf(event.payload)}`);
  }
  return seen;
}

const expected = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, at) => `${from + at}:record ${from + at}`);

async function publishes(world: World, client: string, from: number, to: number): Promise<void> {
  for (let at = from; at < to; at++) {
    assertEquals(await world.publish(client, STREAM, `record ${at}`), at);
  }
}

async function tellsOffsetsAndReplays(world: World): Promise<void> {
  const client = await world.connectPython();
  await publishes(world, client, 0, 300);
  const all = await world.subscribe(client, STREAM, { start: "earliest" });
  assertEquals(await nextEvents(world, all, 300), expected(0, 300));
  const some = await world.subscribe(client, STREAM, { start: 250 });
  const live = await world.subscribe(client, STREAM);
  await publishes(world, client, 300, 320);
  assertEquals(await nextEvents(world, some, 70), expected(250, 320));
  assertEquals(await nextEvents(world, live, 20), expected(300, 320));
}

async function readsOnAfterAKill(world: World): Promise<void> {
  await world.broker.kill();
  await world.broker.restart();
  const client = await world.connectPython();
  const all = await world.subscribe(client, STREAM, { start: "earliest" });
  assertEquals(await nextEvents(world, all, 320), expected(0, 320));
  await publishes(world, client, 320, 330);
  assertEquals(await nextEvents(world, all, 10), expected(320, 330));
}

async function readsShardsFromTheBeginning(world: World): Promise<void> {
  const client = await world.connectPython();
  const keys = Array.from({ length: 40 }, (_, at) => `key ${at}`);
  for (const key of keys) await world.publish(client, WIDE_STREAM, key, { key });
  const reader = await world.subscribe(client, WIDE_STREAM, { start: "earliest", sharded: true });
  const seen = new Set<string>();
  while (seen.size < keys.length) {
    const item = await world.python.call<{ kind: string; event?: DriverEvent } | null>(
      "next_sharded",
      { reader },
    );
    if (item === null) break;
    if (item.event !== undefined) seen.add(textOf(item.event.payload) ?? "");
  }
  assertEquals([...seen].sort(), [...keys].sort());
}

const STEPS: readonly Step[] = [
  ["acks and events tell offsets; history is replayed", tellsOffsetsAndReplays],
  ["what it wrote is there after a kill, and goes on", readsOnAfterAKill],
  ["every shard is read from its beginning", readsShardsFromTheBeginning],
];

testInWorld(
  "the published client on durable streams",
  { durable: true, env: { FELIX_STREAM_RING_RECORDS: "32", FELIX_DURABLE_SEGMENT_BYTES: "4096" } },
  STEPS,
);
