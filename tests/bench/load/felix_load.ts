// The Felix load: every cell through this repository's client, the way an application would write
// it. Only the spread cache cells speak the protocol themselves, because our client would not
// spread.

import { type CacheHandle, connect, type FelixClient, type StreamHandle } from "@felix/client";
import type {
  AckedCell,
  CacheCell,
  Cell,
  IngestCell,
  LoadResult,
  ReplayCell,
  Target,
} from "../cell.ts";
import { cacheKey, KEY_COUNT, NAMES } from "../frame_sizes.ts";
import { forDuration, keepInFlight, times } from "./in_flight.ts";
import { type PreparedLoad, serveLoad } from "../worker.ts";
import { prepareFelixFanout } from "./felix_fanout.ts";
import { prepareSpread } from "./spread_load.ts";

/** Batches of an ingest run that are unanswered at once: the broker's publish window. */
const INGEST_WINDOW = 256;

/** A client for the development broker. */
export async function connectFelix(target: Target): Promise<FelixClient> {
  return await connect({
    addresses: `${target.hostname}:${target.port}`,
    tenant: target.tenant ?? NAMES.tenant,
    namespace: target.namespace ?? NAMES.namespace,
    token: target.token ?? "",
    serverName: "localhost",
    tls: { caFile: target.caFile ?? "" },
  });
}

function ingest(
  stream: StreamHandle,
  cell: IngestCell | ReplayCell,
  records: number,
): Promise<LoadResult> {
  const payloads = Array.from({ length: cell.batch }, () => new Uint8Array(cell.payloadBytes));
  return keepInFlight(
    INGEST_WINDOW,
    times(records / cell.batch),
    () => stream.publishBatch(payloads, { ack: "perBatch" }),
  );
}

/** Reads the stream from its first record until it has every one. */
async function replay(stream: StreamHandle, cell: ReplayCell): Promise<LoadResult> {
  const started = performance.now();
  const subscription = await stream.subscribe({ start: "earliest" });
  let completed = 0;
  while (completed < cell.records) {
    const events = await subscription.readBatch(1024);
    if (events.length === 0) break;
    completed += events.length;
  }
  const elapsedMs = performance.now() - started;
  await subscription.close();
  return { completed, expected: cell.records, elapsedMs, p50Ms: null, p99Ms: null };
}

function acked(stream: StreamHandle, cell: AckedCell, durationMs: number): Promise<LoadResult> {
  const payload = new Uint8Array(cell.payloadBytes);
  return keepInFlight(
    cell.inFlight,
    forDuration(durationMs),
    () => stream.publish(payload, { ack: "perMessage" }),
  );
}

function cached(cache: CacheHandle, cell: CacheCell, durationMs: number): Promise<LoadResult> {
  const value = new Uint8Array(cell.payloadBytes).fill(0x61);
  const prefix = cell.operation === "miss" ? "no-" : "";
  const keys = Array.from({ length: KEY_COUNT }, (_, index) => prefix + cacheKey(index));
  const keyOf = (index: number): string => keys[index % KEY_COUNT]!;
  if (cell.operation === "put") {
    const put = (index: number): Promise<void> => cache.put(keyOf(index), value);
    return keepInFlight(cell.inFlight, forDuration(durationMs), put);
  }
  const get = (index: number): Promise<unknown> => cache.get(keyOf(index));
  const isRight = (found: unknown): boolean => (found !== null) === (cell.operation === "get");
  return keepInFlight(cell.inFlight, forDuration(durationMs), get, isRight);
}

async function fillCache(cache: CacheHandle, cell: CacheCell): Promise<void> {
  const value = new Uint8Array(cell.payloadBytes).fill(0x61);
  const keys = Array.from({ length: KEY_COUNT }, (_, index) => cacheKey(index));
  await keepInFlight(32, times(KEY_COUNT), (index) => cache.put(keys[index] ?? "", value));
}

async function prepare(cell: Cell, target: Target): Promise<PreparedLoad> {
  if (cell.kind === "python" || cell.kind === "idle" || cell.kind === "recovery") {
    throw new TypeError(`no Felix load for ${cell.kind}`);
  }
  if (cell.kind === "cache" && cell.streams > 0) return await prepareSpread(cell, target);
  if (cell.kind === "fanout") {
    return await prepareFelixFanout(await connectFelix(target), await connectFelix(target), cell);
  }
  const client = await connectFelix(target);
  const finish = () => client.close();
  const stream = client.stream(target.stream ?? NAMES.stream);
  if (cell.kind === "replay") {
    await ingest(stream, cell, cell.records);
    return { run: () => replay(stream, cell), finish };
  }
  if (cell.kind === "ingest") {
    await ingest(stream, cell, cell.batch * 64);
    return {
      run: async () => {
        const result = await ingest(stream, cell, cell.records);
        const { completed, expected } = result;
        return {
          ...result,
          completed: completed * cell.batch,
          expected: Math.max(expected * cell.batch, cell.records),
        };
      },
      finish,
    };
  }
  if (cell.kind === "acked") {
    await acked(stream, cell, 300);
    return { run: () => acked(stream, cell, cell.durationMs), finish };
  }
  const cache = client.cache(target.cache ?? NAMES.cache);
  await fillCache(cache, cell);
  await cached(cache, cell, 300);
  return { run: () => cached(cache, cell, cell.durationMs), finish };
}

if (import.meta.main) await serveLoad(prepare);
