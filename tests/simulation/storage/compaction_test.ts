// The power goes after every single operation while a cache and its counters are written and
// compacted, in every shape of what may be left. What was acknowledged is there with its version,
// nothing is invented, and what was deleted or has expired does not come back (storage/README.md
// S15, spec/storage.md §14 and §20 I17, I18).

import { assert, assertEquals } from "@std/assert";
import {
  CacheLog,
  CounterLog,
  CRASH_SHAPES,
  LogStore,
  Pace,
  SimulatedDisk,
  ValueMemory,
} from "@felix/storage";

import { AssertionError } from "node:assert";

const KEY = { tenant: "t", namespace: "n", name: "c", shard: 0 };
const text = (value: string): Uint8Array => new TextEncoder().encode(value);

/** What one key may hold: every value that was sent, and how far they were acknowledged. */
class KeyHistory {
  readonly sent: (string | null)[] = [null];
  acked = 0;
  version: number | null = null;
}

class World {
  now = 1_000_000;
  compactions = 0;
  readonly keys = new Map<string, KeyHistory>();
  readonly sums = new Map<string, { sent: bigint[]; acked: number }>();
  cache!: CacheLog;
  counters!: CounterLog;
  store!: LogStore;

  async open(disk: SimulatedDisk): Promise<void> {
    this.store = await LogStore.open({
      disk,
      root: "/data",
      settings: { segmentBytes: 400, indexSpacingBytes: 60 },
      nowMicros: () => this.now * 1000,
      owner: "test",
    });
    const environment = {
      values: new ValueMemory(0),
      pace: new Pace(0, () => 0, () => Promise.resolve()),
      nowMs: () => this.now,
      onCompactionFailed: () => {},
      compactionFloorBytes: 100,
    };
    this.cache = await CacheLog.open(await this.store.openLog("caches", KEY), environment);
    this.counters = await CounterLog.open(await this.store.openLog("counters", KEY), environment);
  }

  async put(key: string, value: string, ttlMs: number | null = null): Promise<void> {
    const history = this.#history(key);
    const at = history.sent.push(value) - 1;
    const version = await this.cache.put(key, text(value), ttlMs, this.now);
    history.acked = at;
    history.version = version;
  }

  async delete(key: string): Promise<void> {
    const history = this.#history(key);
    const at = history.sent.push(null) - 1;
    await this.cache.delete(key, this.now);
    history.acked = at;
    history.version = null;
  }

  async add(key: string, delta: bigint): Promise<void> {
    let sum = this.sums.get(key);
    if (sum === undefined) this.sums.set(key, sum = { sent: [0n], acked: 0 });
    const at = sum.sent.push(sum.sent.at(-1)! + delta) - 1;
    await this.counters.add(key, delta);
    sum.acked = at;
  }

  /** Its time has passed: whatever it held is gone, and its delete may or may not be written. */
  expire(key: string): void {
    const history = this.#history(key);
    history.acked = history.sent.push(null) - 1;
    history.version = null;
  }

  async quiet(): Promise<void> {
    await this.cache.compacted();
    await this.counters.compacted();
    this.compactions = this.cache.compactions + this.counters.compactions;
  }

  async close(): Promise<void> {
    await this.cache.close();
    await this.counters.close();
    await this.store.close();
  }

  #history(key: string): KeyHistory {
    let history = this.keys.get(key);
    if (history === undefined) this.keys.set(key, history = new KeyHistory());
    return history;
  }
}

/** Several passes, each beside writes. */
async function live(world: World): Promise<void> {
  for (let round = 0; round < 12; round++) {
    await Promise.all([
      world.put("a", `a${round}`),
      world.put("b", `b${round}`),
      world.add("n", BigInt(round + 1)),
    ]);
    if (round === 3) await world.put("mortal", "m", 50);
    if (round === 4) await world.put("long", "l", 1_000_000);
    if (round === 6) await world.delete("b");
    await Promise.all([world.add("n", -1n), world.add("other", 2n)]);
    if (round === 8) {
      world.now += 60;
      world.expire("mortal");
      world.cache.sweep(world.now, 10);
    }
    await world.put("c", `${round}`.repeat(20));
  }
  await world.quiet();
}

/** Lives until its end or until the power goes. */
async function run(disk: SimulatedDisk): Promise<World> {
  const world = new World();
  try {
    await world.open(disk);
    await live(world);
    await world.close();
  } catch (error) {
    if (!disk.crashed || error instanceof AssertionError) throw error;
  }
  return world;
}

/** Opens what a crash left and holds it to what was sent and acknowledged; goes on writing. */
async function checkRecovered(disk: SimulatedDisk, lived: World): Promise<void> {
  const world = new World();
  world.now = lived.now;
  await world.open(disk);
  for (let looks = 0; looks < 2; looks++) {
    for (const [key, history] of lived.keys) await checkKey(world, key, history);
    for (const [key, { sent, acked }] of lived.sums) {
      const sum = world.counters.get(key) ?? 0n;
      assert(sent.indexOf(sum, acked) >= 0, `${key} is ${sum}, sent ${sent}, acked ${acked}`);
    }
    // The second look is at what a compaction leaves that begins with the opening.
    await world.quiet();
  }
  await world.put("after", "v");
  assertEquals((await world.cache.get("after", world.now))?.value, text("v"));
  await world.close();
}

async function checkKey(world: World, key: string, history: KeyHistory): Promise<void> {
  const found = await world.cache.get(key, world.now);
  const value = found === null ? null : new TextDecoder().decode(found.value);
  const { sent, acked, version } = history;
  const at = sent.indexOf(value, acked);
  assert(at >= 0, `${key} is ${value}, sent ${sent}, acked ${acked}`);
  if (at === acked && version !== null) assertEquals(found!.version, version, key);
}

Deno.test("CA11, crash points: compaction of a cache and its counters", async () => {
  const whole = new SimulatedDisk();
  const { compactions } = await run(whole);
  assert(compactions >= 4, `${compactions} compactions`);
  let states = 0;
  for (let operations = 0; operations <= whole.operations; operations++) {
    const disk = new SimulatedDisk();
    disk.crashAfter(operations);
    const world = await run(disk);
    for (const shape of CRASH_SHAPES) {
      await checkRecovered(disk.afterCrash(shape), world);
      states++;
    }
    // The power goes again in what follows the restart: its recovery, and its own compaction.
    const shape = CRASH_SHAPES[operations % CRASH_SHAPES.length]!;
    for (let more = 0; more < 60; more += 1 + (operations % 3)) {
      const again = disk.afterCrash(shape);
      again.crashAfter(more);
      await checkRecovered(again, world).catch((error) => {
        if (!again.crashed || error instanceof AssertionError) throw error;
      });
      await checkRecovered(again.afterCrash(CRASH_SHAPES[more % CRASH_SHAPES.length]!), world);
      states++;
    }
  }
  Deno.stdout.writeSync(text(`  ${states} states of ${whole.operations} operations\n`));
  assert(states >= 10_000, `${states} states`);
});
