// What a watch of a cache promises (spec/semantics.md §6.4): order, the past it asked for, and a
// loud end when its reader is too slow.

import { assert, assertEquals, assertRejects } from "@std/assert";
import { StorageError } from "../storage_error.ts";
import { string, T0, World } from "./cache_world.ts";
import type { CacheChange, CacheWatch } from "./cache_watchers.ts";

async function taken(watch: CacheWatch): Promise<string[]> {
  const seen: string[] = [];
  for (;;) {
    for (let change = watch.take(); change !== undefined; change = watch.take()) {
      seen.push(shown(change));
    }
    if (!watch.behind) return seen;
    await watch.fetch();
  }
}

function shown({ key, value, offset }: CacheChange): string {
  return `${offset} ${key}${value === null ? " gone" : `=${string(value)}`}`;
}

Deno.test("CA13: of concurrent puts the later one wins; watches see both in order", async () => {
  const world = await World.open();
  const watch = world.watch({ key: "k" });
  const both = [world.put("k", "1"), world.put("k", "2")];
  assertEquals(await world.get("k"), null, "nothing is visible before it is kept");
  assertEquals(await Promise.all(both), [0, 1]);
  assertEquals(await world.get("k"), "2");
  assertEquals(await taken(watch), ["0 k=1", "1 k=2"]);
  await world.stop();
});

Deno.test("CA14: what is not kept is an error, not visible and no event", async () => {
  const world = await World.open();
  await world.put("k", "1");
  const watch = world.watch({ prefix: "" });
  world.disk.fail({ operation: "sync", code: "io" });
  await assertRejects(() => world.put("k", "2"), StorageError);
  await assertRejects(() => world.delete("k"), StorageError);
  assertEquals(await world.get("k"), "1");
  assertEquals(await taken(watch), []);
});

Deno.test("CA16, CA17: a key and a prefix are watched, deletes without a value", async () => {
  const world = await World.open();
  const key = world.watch({ key: "k" });
  const prefix = world.watch({ prefix: "u:" });
  for (const name of ["k", "j", "k", "u:1", "x"]) await world.put(name, "v");
  await world.delete("u:1");
  assertEquals(await taken(key), ["0 k=v", "2 k=v"]);
  assertEquals(await taken(prefix), ["3 u:1=v", "5 u:1 gone"]);
  key.close();
  prefix.close();
  assertEquals(world.cache.watches, 0);
  await world.stop();
});

Deno.test("CA18: a watch from an offset gets every later change once, under writes", async () => {
  const world = await World.open();
  for (let at = 0; at < 10; at++) await world.put(`k${at % 2}`, `${at}`);
  const watch = world.watch({ key: "k1" }, { kind: "from", offset: 3, nowMs: T0 });
  assertEquals(watch.resumeOffset, 10);
  const more = [world.put("k1", "10"), world.put("k0", "11"), world.put("k1", "12")];
  const seen = await taken(watch);
  await Promise.all(more);
  seen.push(...await taken(watch));
  assertEquals(seen, ["3 k1=3", "5 k1=5", "7 k1=7", "9 k1=9", "10 k1=10", "12 k1=12"]);
  const ahead = world.cache.watch({ key: "k" }, { kind: "from", offset: 14, nowMs: T0 }, 1000);
  assertEquals(ahead, { kind: "in_future", available: 13 });
  await world.stop();
});

Deno.test("CA19: changes that are compacted away are answered with current values", async () => {
  const world = await World.open({ floor: 500 });
  for (let at = 0; at < 200; at++) await world.put(`k${at % 2}`, `${at}`);
  await world.put("expired", "v", 1);
  world.now += 10;
  await world.cache.compacted();
  assert(world.cache.base > 3);
  const watch = world.watch({ prefix: "k" }, { kind: "from", offset: 3, nowMs: world.now });
  assert(watch.resnapshot);
  assertEquals(watch.currentValues, 2);
  const values = (await taken(watch)).map((change) => change.split(" ")[1]);
  assertEquals(values, ["k0=198", "k1=199"]);
  await world.put("k0", "new");
  assertEquals((await taken(watch)).map((change) => change.split(" ")[1]), ["k0=new"]);
  await world.stop();
});

Deno.test("CA20: retained values come first, none is an answer too", async () => {
  const world = await World.open({ valueBytes: 0 });
  await world.put("a", "1");
  await world.put("b", "2");
  await world.put("a", "3");
  await world.put("mortal", "v", 5);
  world.now += 5;
  const all = world.watch({ prefix: "" }, { kind: "retained", nowMs: world.now });
  const none = world.watch({ prefix: "zz" }, { kind: "retained", nowMs: world.now });
  const one = world.watch({ key: "b" }, { kind: "retained", nowMs: world.now });
  await world.put("zz", "4");
  assertEquals([all.currentValues, none.currentValues, one.currentValues], [2, 0, 1]);
  assertEquals(await taken(all), ["1 b=2", "2 a=3", "4 zz=4"]);
  assertEquals(await taken(none), ["4 zz=4"]);
  assertEquals(await taken(one), ["1 b=2"]);
  await world.stop();
});

Deno.test("CA23: an overflow ends the watch, and the next one goes on without a gap", async () => {
  const world = await World.open();
  const watch = world.watch({ prefix: "k" });
  await world.put("other", "v");
  await Promise.all(Array.from({ length: 1030 }, (_, at) => world.put(`k${at}`, "v")));
  assertEquals(watch.missed, null, "what is queued comes first");
  assertEquals((await taken(watch)).length, 1024);
  assertEquals(watch.missed, 1025);
  const next = world.watch({ prefix: "k" }, { kind: "from", offset: 1025, nowMs: T0 });
  assertEquals((await taken(next)).map((change) => change.split("=")[0]), [
    "1025 k1024",
    "1026 k1025",
    "1027 k1026",
    "1028 k1027",
    "1029 k1028",
    "1030 k1029",
  ]);
  await world.stop();
});

Deno.test("a watch whose reader is slow holds no more bytes than its budget", async () => {
  const world = await World.open();
  const result = world.cache.watch({ prefix: "" }, { kind: "live" }, 10_000);
  assert(result.kind === "watching");
  for (let at = 0; at < 30; at++) await world.put(`k${at}`, "x".repeat(1000));
  const count = (await taken(result.watch)).length;
  assert(count > 5 && count < 11, `${count} changes`);
  assertEquals(result.watch.missed, count);
  await world.stop();
});

Deno.test("CA25: the sweep turns an expiry into a delete that watches see", async () => {
  const world = await World.open();
  for (let at = 0; at < 5; at++) await world.put(`k${at}`, "v", 1000 + at);
  const watch = world.watch({ prefix: "" });
  world.now = T0 + 1002;
  assertEquals(world.cache.sweep(world.now, 2), 2, "a pass is bounded");
  assertEquals(world.cache.sweep(world.now, 1000), 1);
  await world.cache.applied(8);
  assertEquals(await taken(watch), ["5 k0 gone", "6 k1 gone", "7 k2 gone"]);
  assertEquals(world.cache.size, 2);
  // A put that is under way wins over the sweep, whatever the order of their turns.
  world.now = T0 + 1003;
  const put = world.put("k3", "new");
  world.cache.sweep(world.now, 1000);
  await put;
  assertEquals(await world.get("k3"), "new");
  await world.stop();
});
