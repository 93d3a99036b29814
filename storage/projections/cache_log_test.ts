// What a cache on a log promises (spec/semantics.md §6, spec/storage.md §13-§14), on a simulated
// disk whose syncs the tests let through or fail.

import { assert, assertEquals, assertRejects } from "@std/assert";
import { SimulatedDisk } from "../disk/simulated_disk.ts";
import { StorageError } from "../storage_error.ts";
import { LogStore } from "../store.ts";
import { CacheLog } from "./cache_log.ts";
import type { CacheChange, CacheWatch, KeyFilter, WatchStart } from "./cache_watchers.ts";
import { Pace } from "./pace.ts";
import { ValueMemory } from "./value_memory.ts";

const T0 = 1_700_000_000_000;
const KEY = { tenant: "t1", namespace: "default", name: "prices", shard: 0 };
const text = (value: string): Uint8Array => new TextEncoder().encode(value);
const string = (value: Uint8Array | null): string | null =>
  value === null ? null : new TextDecoder().decode(value);

class World {
  readonly disk = new SimulatedDisk();
  values = new ValueMemory(1 << 20);
  now = T0;
  store!: LogStore;
  cache!: CacheLog;

  static async open(options: { valueBytes?: number; floor?: number } = {}): Promise<World> {
    const world = new World();
    world.values = new ValueMemory(options.valueBytes ?? 1 << 20);
    await world.start(options.floor);
    return world;
  }

  async start(floor = 1 << 20): Promise<void> {
    this.store = await LogStore.open({
      disk: this.disk,
      root: "/data",
      settings: { segmentBytes: 4096 },
      nowMicros: () => this.now * 1000,
      owner: "test",
    });
    const log = await this.store.openLog("caches", KEY);
    this.cache = await CacheLog.open(log, {
      values: this.values,
      pace: new Pace(0, () => 0, () => Promise.resolve()),
      nowMs: () => this.now,
      compactionFloorBytes: floor,
    });
  }

  async restart(floor?: number): Promise<void> {
    await this.stop();
    await this.start(floor);
  }

  async stop(): Promise<void> {
    await this.cache.close();
    await this.store.close();
  }

  put(key: string, value: string, ttlMs: number | null = null): Promise<number> {
    return this.cache.put(key, text(value), ttlMs, this.now);
  }

  async get(key: string): Promise<string | null> {
    return string(await this.cache.get(key, this.now));
  }

  async delete(key: string): Promise<string | null> {
    return string(await this.cache.delete(key, this.now));
  }

  watch(filter: KeyFilter, start: WatchStart = { kind: "live" }): CacheWatch {
    const result = this.cache.watch(filter, start, 1 << 20);
    assert(result.kind === "watching");
    return result.watch;
  }
}

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

Deno.test("CA1-CA3: a put is read back until its time has passed; a missing key is null", async () => {
  const world = await World.open();
  assertEquals(await world.put("k", "v"), 0);
  assertEquals(await world.get("k"), "v");
  assertEquals(await world.get("other"), null);
  await world.put("mortal", "v", 60_000);
  world.now = T0 + 59_999;
  assertEquals(await world.get("mortal"), "v");
  world.now = T0 + 60_000;
  assertEquals(await world.get("mortal"), null);
  assertEquals(await world.get("k"), "v");
  await world.put("at once", "v", 0);
  assertEquals(await world.get("at once"), null, "a life of 0 has passed");
  await world.put("", "", null);
  assertEquals(await world.get(""), "", "the empty key and the empty value are legal");
  await world.stop();
});

Deno.test("CA4, CA5: a restart does not restart a life", async () => {
  const world = await World.open();
  await world.put("k", "v", 60_000);
  world.now = T0 + 30_000;
  await world.restart();
  world.now = T0 + 31_000;
  assertEquals(await world.get("k"), "v");
  world.now = T0 + 61_000;
  assertEquals(await world.get("k"), null);
  world.now = T0 + 120_000;
  await world.restart();
  assertEquals(await world.get("k"), null);
  await world.stop();
});

Deno.test("CA6, CA7: a put replaces the life, and the sweep does not end what was renewed", async () => {
  const world = await World.open();
  await world.put("for ever", "1", 10_000);
  await world.put("renewed", "1", 10_000);
  world.now = T0 + 5_000;
  await world.put("for ever", "2");
  world.now = T0 + 9_000;
  await world.put("renewed", "2", 10_000);
  world.now = T0 + 10_000;
  assertEquals(world.cache.sweep(world.now, 1000), 0);
  world.now = T0 + 18_900;
  assertEquals(await world.get("renewed"), "2");
  world.now = T0 + 19_000;
  assertEquals(await world.get("renewed"), null);
  world.now = T0 + 3_600_000;
  assertEquals(await world.get("for ever"), "2");
  await world.stop();
});

Deno.test("CA8, CA9: a delete answers what it removed, and stays over a restart", async () => {
  const world = await World.open();
  await world.put("k", "v");
  await world.put("expired", "v", 10);
  world.now = T0 + 10;
  assertEquals(await world.delete("k"), "v");
  assertEquals(await world.delete("k"), null);
  assertEquals(await world.delete("never"), null);
  const { frontier } = world.cache;
  assertEquals(await world.delete("expired"), null);
  assertEquals(world.cache.frontier, frontier + 1, "an expired entry is deleted all the same");
  await world.restart();
  assertEquals(await world.get("k"), null);
  assertEquals(world.cache.size, 0);
  await world.stop();
});

Deno.test("a delete behind a put of the same turn answers that put's value", async () => {
  const world = await World.open();
  const put = world.put("k", "v");
  const removed = world.delete("k");
  const again = world.delete("k");
  const late = world.put("k", "w");
  assertEquals([await put, await removed, await again, await late], [0, "v", null, 2]);
  assertEquals(await world.get("k"), "w");
  await world.stop();
});

Deno.test("values that do not fit in memory are read from the log", async () => {
  const world = await World.open({ valueBytes: 1000 });
  for (let at = 0; at < 50; at++) await world.put(`k${at}`, `value ${at} ${"x".repeat(100)}`);
  assert(world.values.bytes <= 1000);
  for (let at = 0; at < 50; at++) {
    assertEquals(await world.get(`k${at}`), `value ${at} ${"x".repeat(100)}`);
  }
  assertEquals(await world.delete("k0"), `value 0 ${"x".repeat(100)}`);
  assert(world.values.bytes <= 1000);
  await world.stop();
});

Deno.test("CA10: a compaction keeps newest values and versions, and removes the rest", async () => {
  const world = await World.open({ floor: 2000 });
  const versions = new Map<string, number>();
  for (let round = 0; round < 100; round++) {
    for (let key = 0; key < 5; key++) {
      versions.set(`k${key}`, await world.put(`k${key}`, `${round}`));
    }
  }
  await world.put("mortal", "v", 1_000_000);
  await world.put("expired", "v", 1);
  await world.put("gone", "v");
  await world.delete("gone");
  world.now += 10;
  await world.cache.compacted();
  assert(world.cache.compactions > 0, "the log was compacted");
  const { logBytes, liveBytes } = world.cache.sizes;
  assert(logBytes <= Math.max(2000, 4 * liveBytes), `${logBytes} bytes, ${liveBytes} live`);
  for (let restarts = 0; restarts < 2; restarts++) {
    for (const [key, version] of versions) {
      assertEquals(await world.get(key), "99");
      assertEquals(world.cache.find(key, world.now)!.version, version);
    }
    assertEquals(await world.get("mortal"), "v");
    assertEquals(await world.get("gone"), null);
    assertEquals(world.cache.sizes, { logBytes, liveBytes });
    await world.restart();
  }
  await world.stop();
});

Deno.test("CA12: a put beside a compaction wins over the copy", async () => {
  const world = await World.open({ floor: 500 });
  const written: Promise<number>[] = [];
  for (let round = 0; round < 500; round++) {
    written.push(world.put(`k${round % 3}`, `${round}`));
    if (round % 7 === 0) await Promise.all(written);
  }
  await Promise.all(written);
  await world.cache.compacted();
  assert(world.cache.compactions > 3);
  for (let restarts = 0; restarts < 2; restarts++) {
    assertEquals(await Promise.all(["k0", "k1", "k2"].map((key) => world.get(key))), [
      "498",
      "499",
      "497",
    ]);
    await world.restart();
  }
  await world.stop();
});

Deno.test("CA13: of concurrent puts the later one wins, and watches see both in order", async () => {
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

Deno.test("CA23: an overflow ends the watch after what was queued, and resumes without a gap", async () => {
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

Deno.test("CA27, CA28: conditions are decided in the order of the log", async () => {
  const world = await World.open();
  const putIf = (value: string, condition: "absent" | { version: number }, ttl: number | null) =>
    world.cache.putIf("k", text(value), ttl, condition, world.now);
  const both = [putIf("1", "absent", null), putIf("2", "absent", null)];
  const [first, second] = await Promise.all(both);
  assertEquals([first!.applied, first!.version], [true, 0]);
  assertEquals([second!.applied, second!.version], [false, 0]);
  assertEquals((await putIf("3", { version: 7 }, null)).applied, false);
  const third = await putIf("3", { version: 0 }, 10);
  assertEquals([third.applied, third.version], [true, 1]);
  const stale = await world.cache.deleteIf("k", 0, world.now);
  assertEquals([stale.applied, stale.version], [false, 1]);
  world.now += 10;
  assertEquals((await world.cache.deleteIf("k", 1, world.now)).applied, false, "it has expired");
  assertEquals((await putIf("4", "absent", null)).applied, true);
  const last = await world.cache.deleteIf("k", 2, world.now);
  assertEquals([last.applied, last.version], [true, null]);
  assertEquals(await world.get("k"), null);
  await world.stop();
});

Deno.test("a full disk refuses writes, changes nothing, and takes them again later", async () => {
  const world = await World.open();
  await world.put("k", "1");
  world.disk.capacityBytes = 1;
  const refused = [
    world.put("k", "2"),
    world.delete("k"),
    world.cache.deleteIf("k", 0, world.now),
    world.cache.putIf("new", text("v"), null, "absent", world.now),
    world.cache.putIf("new", text("v"), null, "absent", world.now),
  ];
  for (const write of refused) {
    const error = await assertRejects(() => write, StorageError);
    assertEquals(error.code, "full");
  }
  assertEquals(await world.get("k"), "1");
  world.disk.capacityBytes = Infinity;
  assertEquals(await world.put("k", "3"), 1, "no offset was lost");
  assertEquals(await world.get("k"), "3");
  await world.stop();
});
