// What a cache on a log promises (spec/semantics.md §6, spec/storage.md §13-§14), on a simulated
// disk: values, lives, deletes, conditions and compaction. Watches are in cache_watchers_test.ts.

import { assert, assertEquals, assertRejects } from "@std/assert";
import { StorageError } from "../storage_error.ts";
import { string, T0, text, World } from "./cache_world.ts";

Deno.test("CA1-CA3: a put is read back until its time has passed", async () => {
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

Deno.test("CA6, CA7: a put replaces the life, and no sweep ends what was renewed", async () => {
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

Deno.test("a get in order sees the writes before it and none behind it", async () => {
  const world = await World.open();
  const read = async () => string((await world.cache.getInOrder("k", T0))?.value ?? null);
  const reads = [read()];
  const writes: Promise<unknown>[] = [world.put("k", "1")];
  reads.push(read());
  writes.push(world.put("k", "2"), world.delete("k"));
  reads.push(read());
  writes.push(world.put("k", "3", 0));
  reads.push(read());
  assertEquals(await Promise.all(reads), [null, "1", null, null]);
  await Promise.all(writes);
  await world.put("k", "4");
  assertEquals(await read(), "4");
  await world.stop();
});
