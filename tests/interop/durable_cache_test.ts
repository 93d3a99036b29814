// The published client on caches that are kept on logs: values, counters and watches over a broker
// that was killed and started again, and publishes that are sent at least once across a restart.

import { assert, assertEquals, assertRejects } from "@std/assert";
import { freeUdpPort } from "../support/servers.ts";
import { base64, textOf } from "./python_driver.ts";
import { CACHE, type Step, STREAM, testInWorld, type World } from "./world.ts";

interface Change {
  readonly key: string;
  readonly value: string | null;
  readonly offset: number;
}

class Cache {
  constructor(readonly world: World, readonly client: string) {}

  call<Result>(op: string, args: Record<string, unknown>): Promise<Result> {
    const { world, client } = this;
    return world.python.call<Result>(op, { client, scope: world.scope(CACHE), ...args });
  }

  put(key: string, value: string, ttl?: number): Promise<null> {
    const life = ttl === undefined ? {} : { ttl };
    return this.call("cache_put", { key, value: base64(value), ...life });
  }

  async get(key: string): Promise<string | null> {
    return textOf(await this.call<string | null>("cache_get", { key }));
  }

  async watch(args: Record<string, unknown>): Promise<{
    readonly started: { readonly retained_count: number | null; readonly resume_offset: number };
    readonly next: (count: number) => Promise<string[]>;
  }> {
    const reader = this.world.newName();
    const next = async (count: number): Promise<string[]> => {
      const seen: string[] = [];
      while (seen.length < count) {
        const change = await this.world.python.call<Change | null>("next_change", { reader });
        assert(change !== null, `no change after ${JSON.stringify(seen)}`);
        const value = change.value === null ? " gone" : `=${textOf(change.value)}`;
        seen.push(`${change.offset} ${change.key}${value}`);
      }
      return seen;
    };
    return { started: await this.call("watch_cache", { reader, ...args }), next };
  }
}

async function watches(world: World): Promise<void> {
  const cache = new Cache(world, await world.connectPython());
  await cache.put("u:0", "old");
  const retained = await cache.watch({ prefix: "u:", retained: true });
  const key = await cache.watch({ key: "k" });
  assertEquals(retained.started.retained_count, 1);
  assertEquals(key.started.retained_count, null);
  await cache.put("k", "one");
  await cache.put("u:1", "two");
  await cache.call("cache_delete", { key: "u:1" });
  await cache.put("u:2", "short", 0.05);
  assertEquals(await key.next(1), ["1 k=one"]);
  assertEquals(await retained.next(5), [
    "0 u:0=old",
    "2 u:1=two",
    "3 u:1 gone",
    "4 u:2=short",
    "5 u:2 gone",
  ]);
  const behind = await cache.watch({ prefix: "", start: 2 });
  assertEquals((await behind.next(4)).length, 4);
  const error = await assertRejects(() => cache.watch({ prefix: "", start: 100 }), Error);
  assert(error.message.includes("CursorError"), error.message);
}

async function counts(world: World): Promise<void> {
  const cache = new Cache(world, await world.connectPython());
  const add = (delta: number) => cache.call<number>("counter_add", { key: "hits", delta });
  assertEquals(await cache.call("counter_get", { key: "hits" }), null);
  assertEquals(await add(5), 5);
  assertEquals(await add(-2), 3);
  assertEquals(await cache.call("counter_get", { key: "hits" }), 3);
}

async function keepsAllOfIt(world: World): Promise<void> {
  await world.broker.kill();
  await world.broker.restart();
  const cache = new Cache(world, await world.connectPython());
  assertEquals(await cache.get("k"), "one");
  assertEquals(await cache.get("u:0"), "old");
  assertEquals(await cache.get("u:1"), null);
  assertEquals(await cache.call("counter_get", { key: "hits" }), 3);
  const watch = await cache.watch({ prefix: "u:", start: 0 });
  assertEquals((await watch.next(5))[4], "5 u:2 gone");
}

/** The same client goes on when its broker comes back where it was. */
async function publishesAtLeastOnce(world: World): Promise<void> {
  const client = await world.connectPython();
  const publish = (text: string) =>
    world.python.call<number>("publish_at_least_once", {
      client,
      scope: world.scope(STREAM),
      payload: base64(text),
    });
  const offsets: number[] = [];
  for (let at = 0; at < 20; at++) {
    if (at === 10) await world.broker.restart();
    offsets.push(await publish(`record ${at}`));
  }
  const reader = await world.subscribe(client, STREAM, { start: "earliest" });
  const next = () =>
    world.python.call<{ offset: number; payload: string }>("next_event", { reader });
  const seen = new Map<number, string>();
  while (!seen.has(offsets.at(-1)!)) {
    const event = await next();
    seen.set(event.offset, textOf(event.payload)!);
  }
  assertEquals(offsets.map((offset) => seen.get(offset)), offsets.map((_, at) => `record ${at}`));
}

const STEPS: readonly Step[] = [
  ["watches a key, a prefix, retained values and the past", watches],
  ["counts", counts],
  ["finds all of it after a kill", keepsAllOfIt],
  ["publishes at least once", publishesAtLeastOnce],
];

const PORT = await freeUdpPort();

testInWorld(
  "the published client on caches that are kept",
  { durable: true, args: ["--port", String(PORT)] },
  STEPS,
);
