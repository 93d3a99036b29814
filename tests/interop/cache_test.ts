// The published client's caches against our broker: values, deletion, expiry, many threads, both
// clients on one cache, and what a broker without storage refuses.

import { assert, assertEquals } from "@std/assert";
import { poll } from "../support/poll.ts";
import { base64, textOf } from "./python_driver.ts";
import { CACHE, type Step, testInWorld, WIDE_CACHE, type World } from "./world.ts";

function cacheOf(world: World, client: string, cache = CACHE) {
  const scope = world.scope(cache);
  const call = <T>(op: string, args: Record<string, unknown>) =>
    world.python.call<T>(op, { client, scope, ...args });
  return {
    put: (key: string, value: string | Uint8Array, ttl?: number) =>
      call<null>("cache_put", { key, value: base64(value), ...(ttl === undefined ? {} : { ttl }) }),
    get: async (key: string) => textOf(await call<string | null>("cache_get", { key })),
    delete: async (key: string) => textOf(await call<string | null>("cache_delete", { key })),
  };
}

async function putsGetsAndDeletes(world: World): Promise<void> {
  const cache = cacheOf(world, await world.connectPython());
  assertEquals(await cache.get("absent"), null);
  await cache.put("key", "one");
  assertEquals(await cache.get("key"), "one");
  await cache.put("key", "two");
  assertEquals(await cache.delete("key"), "two");
  assertEquals(await cache.delete("key"), null);
  assertEquals(await cache.get("key"), null);
  await cache.put("empty", "");
  assertEquals(await cache.get("empty"), "");
  await cache.put('schlüssel "quoted" \\ / \n', "odd key");
  assertEquals(await cache.get('schlüssel "quoted" \\ / \n'), "odd key");
  const large = "x".repeat(300_000);
  await cache.put("large", large);
  assert(await cache.get("large") === large, "300 000 bytes come back");
}

async function expires(world: World): Promise<void> {
  const cache = cacheOf(world, await world.connectPython());
  await cache.put("short", "value", 0.2);
  await cache.put("long", "value", 600);
  await cache.put("none", "value", 0);
  assertEquals(await cache.get("none"), null);
  await poll(async () => (await cache.get("short")) === null, { what: "the entry expiring" });
  assertEquals(await cache.get("long"), "value");
  await cache.put("again", "value", 0.2);
  await cache.put("again", "kept");
  await new Promise((resolve) => setTimeout(resolve, 400));
  assertEquals(await cache.get("again"), "kept");
}

async function sharesACacheWithOurs(world: World): Promise<void> {
  const theirs = cacheOf(world, await world.connectPython(), WIDE_CACHE);
  const ours = (await world.connectOurs()).cache(WIDE_CACHE);
  for (let index = 0; index < 20; index++) {
    await theirs.put(`python-${index}`, `value ${index}`);
    assertEquals(await ours.getText(`python-${index}`), `value ${index}`);
    await ours.put(`deno-${index}`, `value ${index}`);
    assertEquals(await theirs.get(`deno-${index}`), `value ${index}`);
    assertEquals(await theirs.delete(`deno-${index}`), `value ${index}`);
    assertEquals(await ours.get(`deno-${index}`), null);
  }
}

async function manyThreads(world: World): Promise<void> {
  const client = await world.connectPython();
  const args = { client, scope: world.scope(CACHE), threads: 64, each: 20 };
  assertEquals(await world.python.call("cache_many", args), { failures: [] });
}

/** Without storage counters and groups are not advertised, and the client says so itself. */
async function refusesWhatNeedsStorage(world: World): Promise<void> {
  const client = await world.connectPython();
  const cache = cacheOf(world, client);
  const counter = { client, scope: world.scope(CACHE), key: "hits" };
  const get = await world.python.failure("counter_get", counter);
  assertEquals(get.type, "FelixError");
  const add = await world.python.failure("counter_add", { ...counter, delta: 1 });
  assertEquals(add.type, "ConnectionError");
  const poll_ = { client, scope: world.scope("events"), shard: 0, group: "workers" };
  assertEquals((await world.python.failure("group_poll", poll_)).type, "FelixError");
  await cache.put("still", "works");
  assertEquals(await cache.get("still"), "works");
}

async function unknownCache(world: World): Promise<void> {
  const client = await world.connectPython();
  const scope = world.scope("no-such-cache");
  for (
    const [op, more] of [["cache_get", {}], ["cache_put", { value: "" }], ["cache_delete", {}]]
  ) {
    const error = await world.python.failure(String(op), {
      client,
      scope,
      key: "k",
      ...Object(more),
    });
    assertEquals([error.type, error.felixCode], ["NotFoundError", "not_found"]);
  }
  // The refusals were coded, so the same connection goes on.
  await cacheOf(world, client).put("after", "refusals");
}

const STEPS: readonly Step[] = [
  ["puts, gets and deletes", putsGetsAndDeletes],
  ["expires entries", expires],
  ["shares a cache with our client", sharesACacheWithOurs],
  ["serves many threads", manyThreads],
  ["names an unknown cache", unknownCache],
  ["refuses what needs storage, and goes on", refusesWhatNeedsStorage],
];

testInWorld("published client: caches", {}, STEPS);
