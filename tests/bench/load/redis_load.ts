// The Redis load: cache cells as SET and GET of the same keys and values through ioredis on one
// connection, with its automatic pipelining, which is its fastest way to keep many in flight.

import { Redis } from "ioredis";
import type { CacheCell, Cell, LoadResult, Target } from "../cell.ts";
import { cacheKey, KEY_COUNT } from "../frame_sizes.ts";
import { Samples } from "../statistics.ts";
import { type PreparedLoad, serveLoad } from "../worker.ts";

async function inFlight(redis: Redis, cell: CacheCell, durationMs: number): Promise<LoadResult> {
  const value = Buffer.alloc(cell.payloadBytes, "a");
  const samples = new Samples();
  const started = performance.now();
  const until = started + durationMs;
  let next = 0;
  let completed = 0;
  const worker = async (): Promise<void> => {
    for (let now = performance.now(); now < until;) {
      const key = cacheKey(next++);
      if (cell.operation === "put") await redis.set(key, value);
      else await redis.getBuffer(cell.operation === "get" ? key : `no-${key}`);
      completed++;
      const ended = performance.now();
      samples.add(ended - now);
      now = ended;
    }
  };
  await Promise.all(Array.from({ length: cell.inFlight }, worker));
  const elapsedMs = performance.now() - started;
  return { completed, expected: completed, elapsedMs, ...samples.summary() };
}

async function prepare(cell: Cell, target: Target): Promise<PreparedLoad> {
  if (cell.kind !== "cache") throw new TypeError(`no Redis load for ${cell.kind}`);
  const { hostname: host, port } = target;
  const redis = new Redis({ host, port, enableAutoPipelining: true, lazyConnect: true });
  await redis.connect();
  const value = Buffer.alloc(cell.payloadBytes, "a");
  await Promise.all(
    Array.from({ length: KEY_COUNT }, (_, index) => redis.set(cacheKey(index), value)),
  );
  await inFlight(redis, cell, 300);
  return {
    run: () => inFlight(redis, cell, cell.durationMs),
    finish: async () => void await redis.quit(),
  };
}

if (import.meta.main) await serveLoad(prepare);
