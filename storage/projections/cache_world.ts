// A cache shard on a simulated disk, for tests: it can be restarted, and its clock is set by hand.

import { SimulatedDisk } from "../disk/simulated_disk.ts";
import { StorageError } from "../storage_error.ts";
import { LogStore } from "../store.ts";
import { CacheLog } from "./cache_log.ts";
import type { CacheWatch, KeyFilter, WatchStart } from "./cache_watchers.ts";
import { Pace } from "./pace.ts";
import { ValueMemory } from "./value_memory.ts";

/** When the tests begin, Unix milliseconds. */
export const T0 = 1_700_000_000_000;
const KEY = { tenant: "t1", namespace: "default", name: "prices", shard: 0 };
/** Its UTF-8 bytes. */
export const text = (value: string): Uint8Array => new TextEncoder().encode(value);
/** The text of a value. */
export const string = (value: Uint8Array | null): string | null =>
  value === null ? null : new TextDecoder().decode(value);

/** One cache shard on a simulated disk. */
export class World {
  readonly disk = new SimulatedDisk();
  values = new ValueMemory(1 << 20);
  now = T0;
  /** Compactions that failed. */
  readonly failures: string[] = [];
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
      onCompactionFailed: (label, error) => this.failures.push(`${label}: ${error}`),
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
    return string((await this.cache.get(key, this.now))?.value ?? null);
  }

  async delete(key: string): Promise<string | null> {
    return string(await this.cache.delete(key, this.now));
  }

  watch(filter: KeyFilter, start: WatchStart = { kind: "live" }): CacheWatch {
    const result = this.cache.watch(filter, start, 1 << 20);
    if (result.kind !== "watching") throw new StorageError("outside_log", "it is in the future");
    return result.watch;
  }
}
