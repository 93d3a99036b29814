// A disk that fails or fills up under an open log: what is refused, what goes on, and that one
// flush serves many (spec/storage.md §7.2, §8, §16, §20 I13-I15).

import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { LogStore, type SegmentLog, SimulatedDisk, StorageError } from "@felix/storage";
import type { LogSettings } from "@felix/storage";
import { readAll } from "./history.ts";

const KEY = { tenant: "t", namespace: "n", name: "s", shard: 0 };
const record = (text: string) => ({ payload: new TextEncoder().encode(text) });
const texts = async (log: SegmentLog) =>
  (await readAll(log)).map(({ payload }) => new TextDecoder().decode(payload));

async function open(disk: SimulatedDisk, settings: Partial<LogSettings> = {}) {
  const options = { disk, root: "/data", settings, nowMicros: () => 7, owner: "test" };
  const store = await LogStore.open(options);
  return { store, log: await store.openLog("streams", KEY) };
}

Deno.test("a failed flush is final: nothing is taken, nothing undurable is read", async () => {
  const disk = new SimulatedDisk();
  const { store, log } = await open(disk);
  await log.append([record("kept")]);
  disk.fail({ operation: "sync", code: "io" });
  const first = log.append([record("failed")]);
  const second = log.append([record("failed too")]);
  const error = await assertRejects(() => first, StorageError);
  assertEquals(error.code, "sync_failed");
  await assertRejects(() => second, StorageError);
  await assertRejects(() => log.append([record("later")]), StorageError);
  await assertRejects(() => log.flush(), StorageError);
  assertEquals(log.durable, 1);
  assertEquals(await texts(log), ["kept"]);
  assertEquals(store.counters.syncFailures, 1);
  const restarted = await open(disk.afterCrash({ names: "kept", data: "kept" }));
  assertEquals((await restarted.log.append([record("after")])).first, 3);
});

Deno.test("a full disk refuses appends, reads go on, and room lets appends go on", async () => {
  const disk = new SimulatedDisk();
  const { log } = await open(disk);
  await log.append([record("kept")]);
  disk.capacityBytes = disk.paths().reduce((sum, path) => sum + disk.bytes(path).length, 0) + 40;
  for (let attempt = 0; attempt < 3; attempt++) {
    const error = await assertRejects(() => log.append([record("x".repeat(100))]), StorageError);
    assertEquals(error.code, "full");
    assertEquals(await texts(log), ["kept"]);
  }
  disk.capacityBytes = Infinity;
  assertEquals((await log.append([record("room")])).first, 1);
  assertEquals(await texts(log), ["kept", "room"]);
  const restarted = await open(disk.afterCrash({ names: "lost", data: "lost" }));
  assertEquals(await texts(restarted.log), ["kept", "room"]);
});

Deno.test("a roll that finds the disk full refuses the append and is tried again", async () => {
  for (const operation of ["create", "syncDirectory", "write"] as const) {
    const disk = new SimulatedDisk();
    const { log } = await open(disk, { segmentBytes: 100 });
    await log.append([record("x".repeat(60))]);
    // The first write of a roll is the mark's, which may fail.
    if (operation === "write") disk.fail({ operation, code: "full" });
    disk.fail({ operation, code: "full" });
    const error = await assertRejects(() => log.append([record("y".repeat(60))]), StorageError);
    assertEquals(error.code, "full");
    await log.append([record("small")]);
    await log.append([record("z".repeat(60))]);
    assertEquals(await texts(log), ["x".repeat(60), "small", "z".repeat(60)]);
    const restarted = await open(disk.afterCrash({ names: "lost", data: "lost" }));
    assertEquals(restarted.log.tail, 3);
  }
});

Deno.test("a write that fails halfway leaves the log as it was, at every byte", async () => {
  for (let afterBytes = 0; afterBytes < 60; afterBytes++) {
    const disk = new SimulatedDisk();
    const { log } = await open(disk);
    await log.append([record("kept")]);
    disk.fail({ operation: "write", code: "io", afterBytes });
    const error = assertThrows(() => log.stage([record("half"), record("more")]), StorageError);
    assertEquals(error.code, "io");
    assertEquals((await log.append([record("next")])).first, 1);
    assertEquals(await texts(log), ["kept", "next"]);
  }
});

Deno.test("a write that cannot be taken back fails the log for good", async () => {
  const disk = new SimulatedDisk();
  const { log } = await open(disk);
  await log.append([record("kept")]);
  disk.fail({ operation: "write", code: "io", afterBytes: 5 });
  disk.fail({ operation: "truncate", code: "io" });
  assertThrows(() => log.stage([record("half")]), StorageError, "taken back");
  await assertRejects(async () => await log.append([record("later")]), StorageError);
  assertEquals(await texts(log), ["kept"]);
});

Deno.test("short writes are continued", async () => {
  const disk = new SimulatedDisk();
  disk.maxWriteBytes = 7;
  const { log } = await open(disk);
  await log.append([record("a record longer than a write")]);
  assertEquals(await texts(log), ["a record longer than a write"]);
});

Deno.test("a slow flush serves everybody who came meanwhile, and no two run at once", async () => {
  const disk = new SimulatedDisk();
  const { store, log } = await open(disk);
  const { syncs } = store.counters;
  let running = 0;
  let release: () => void = () => {};
  disk.beforeSync = async () => {
    assertEquals(++running, 1);
    await new Promise<void>((resolve) => release = resolve);
    running--;
  };
  const acknowledged: number[] = [];
  const appends = Array.from({ length: 64 }, async (_, at) => {
    await log.append([record(`${at}`)]);
    acknowledged.push(at);
  });
  for (let turn = 0; turn < 10; turn++) await null;
  assertEquals(acknowledged, [], "nothing is acknowledged before its flush");
  const late = log.append([record("late")]);
  for (let flushes = 0; flushes < 2; flushes++) {
    release();
    for (let turn = 0; turn < 20; turn++) await null;
  }
  await Promise.all([...appends, late]);
  assertEquals(acknowledged, Array.from({ length: 64 }, (_, at) => at));
  assert(store.counters.syncs - syncs <= 2, `${store.counters.syncs - syncs} flushes`);
});

Deno.test("`periodic` and `none` acknowledge at once; nothing to flush costs no sync", async () => {
  for (const fsync of ["periodic", "none"] as const) {
    const disk = new SimulatedDisk();
    const { store, log } = await open(disk, { fsync });
    await log.append([record("a")]);
    assertEquals([log.durable, store.counters.syncs], [0, 0]);
    await store.flush();
    assertEquals([log.durable, store.counters.syncs], [1, 1]);
    const { operations } = disk;
    await store.flush();
    await log.flush();
    assertEquals([store.counters.syncs, disk.operations], [1, operations]);
  }
});

Deno.test("a root is one process's at a time, and the refusal says whose", async () => {
  const disk = new SimulatedDisk();
  const { store } = await open(disk);
  const error = await assertRejects(() => open(disk), StorageError, "test");
  assertEquals(error.code, "locked");
  await store.close();
  await (await open(disk)).store.close();
});

Deno.test("two that open one log at once get the same one; a closed one opens anew", async () => {
  const { store, log } = await open(new SimulatedDisk());
  const again = await Promise.all([store.openLog("streams", KEY), store.openLog("streams", KEY)]);
  assert(again[0] === log && again[1] === log);
  await log.append([record("a")]);
  await store.closeLog("streams", KEY);
  assertEquals((await store.openLog("streams", KEY)).tail, 1);
  await store.close();
  await assertRejects(() => store.openLog("streams", KEY), StorageError, "closed");
});

Deno.test("the store's retention pass goes by each log's own policy", async () => {
  const { store, log } = await open(new SimulatedDisk(), { segmentBytes: 100 });
  for (let at = 0; at < 6; at++) await log.append([record("x".repeat(50))]);
  await store.retain();
  assertEquals(log.base, 0);
  store.setRetention("streams", KEY, { maxBytes: 250 });
  await store.retain();
  assertEquals([log.base, log.segments], [4, 2]);
});
