// What counters on a log promise (spec/semantics.md §7, spec/storage.md §13.2, §14).

import { assert, assertEquals, assertRejects } from "@std/assert";
import { SimulatedDisk } from "../disk/simulated_disk.ts";
import { StorageError } from "../storage_error.ts";
import { LogStore } from "../store.ts";
import { CounterLog } from "./counter_log.ts";
import { Pace } from "./pace.ts";

const KEY = { tenant: "t1", namespace: "default", name: "hits", shard: 0 };

async function open(disk: SimulatedDisk): Promise<{ counters: CounterLog; store: LogStore }> {
  const store = await LogStore.open({
    disk,
    root: "/data",
    settings: { segmentBytes: 4096 },
    nowMicros: () => 1,
    owner: "test",
  });
  const pace = new Pace(0, () => 0, () => Promise.resolve());
  const log = await store.openLog("counters", KEY);
  const onCompactionFailed = (_label: string, error: unknown): never => {
    throw error;
  };
  const environment = { pace, compactionFloorBytes: 2000, onCompactionFailed };
  return { counters: await CounterLog.open(log, environment), store };
}

Deno.test("CA29: adds answer the sum with them; a key never added to has none", async () => {
  const { counters, store } = await open(new SimulatedDisk());
  assertEquals(await counters.add("k", 5n), 5n);
  assertEquals(await counters.add("k", -2n), 3n);
  assertEquals(counters.get("k"), 3n);
  assertEquals(counters.get("other"), null);
  const many = await Promise.all([
    counters.add("k", 1n),
    counters.add("j", 1n),
    counters.add("k", 1n),
  ]);
  assertEquals(many, [4n, 1n, 5n]);
  await counters.close();
  await store.close();
});

Deno.test("CA30: sums are exact over compactions and restarts", async () => {
  const disk = new SimulatedDisk();
  let { counters, store } = await open(disk);
  const expected = new Map<string, bigint>();
  let compactions = 0;
  for (let round = 0; round < 100; round++) {
    const adds: Promise<bigint | null>[] = [];
    for (let at = 0; at < 100; at++) {
      const key = `k${at % 7}`;
      const delta = BigInt(((round * 100 + at) % 11) - 4);
      expected.set(key, (expected.get(key) ?? 0n) + delta);
      adds.push(counters.add(key, delta));
    }
    await Promise.all(adds);
    if (round % 25 !== 24) continue;
    await counters.compacted();
    compactions += counters.compactions;
    await counters.close();
    await store.close();
    ({ counters, store } = await open(disk));
    for (const [key, sum] of expected) assertEquals(counters.get(key), sum, key);
  }
  assert(compactions > 5, `${compactions} compactions`);
  await counters.close();
  await store.close();
});

Deno.test("an add that would leave 64 bits is refused and writes nothing", async () => {
  const disk = new SimulatedDisk();
  const { counters, store } = await open(disk);
  const top = 2n ** 63n - 1n;
  assertEquals(await counters.add("k", top), top);
  const adds = [counters.add("k", 1n), counters.add("k", -1n), counters.add("k", 1n)];
  assertEquals(await Promise.all(adds), [null, top - 1n, top]);
  assertEquals(await counters.add("low", -(2n ** 63n)), -(2n ** 63n));
  assertEquals(await counters.add("low", -1n), null);
  await counters.close();
  await store.close();
  const again = await open(disk);
  assertEquals(again.counters.get("k"), top);
  await again.counters.close();
  await again.store.close();
});

Deno.test("an add that the disk refuses leaves the sums as they were", async () => {
  const disk = new SimulatedDisk();
  const { counters, store } = await open(disk);
  await counters.add("k", 1n);
  disk.capacityBytes = 1;
  for (const add of [counters.add("k", 5n), counters.add("k", 5n)]) {
    assertEquals((await assertRejects(() => add, StorageError)).code, "full");
  }
  disk.capacityBytes = Infinity;
  assertEquals(await counters.add("k", 1n), 2n);
  await counters.close();
  await store.close();
});

Deno.test("a get in order sees the adds before it and none behind it", async () => {
  const { counters, store } = await open(new SimulatedDisk());
  const work = [
    counters.getInOrder("k"),
    counters.add("k", 1n),
    counters.getInOrder("k"),
    counters.add("k", 1n),
    counters.getInOrder("k"),
  ];
  assertEquals(await Promise.all(work), [null, 1n, 1n, 2n, 2n]);
  await counters.close();
  await store.close();
});
