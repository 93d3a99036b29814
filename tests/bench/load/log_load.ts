// The segment log by itself: what opening a log costs after a crash that vouched for nothing. One
// segment, every byte of it read and verified. Run by the harness (worker.ts).

import { LogStore, RealDisk } from "@felix/storage";
import type { Cell, LoadResult, Target } from "../cell.ts";
import { type PreparedLoad, serveLoad } from "../worker.ts";

const KEY = { tenant: "bench", namespace: "bench", name: "log", shard: 0 };
const BATCH = 256;

async function openStore(root: string): Promise<LogStore> {
  return await LogStore.open({
    disk: new RealDisk(),
    root,
    settings: { fsync: "none", segmentBytes: 2 ** 40 },
    nowMicros: () => Date.now() * 1000,
    owner: "bench",
  });
}

async function prepare(cell: Cell, { directory = "" }: Target): Promise<PreparedLoad> {
  if (cell.kind !== "recovery") throw new TypeError(`no log load for ${cell.kind}`);
  const root = `${directory}/log`;
  let store = await openStore(root);
  let log = await store.openLog("streams", KEY);
  const payload = crypto.getRandomValues(new Uint8Array(cell.payloadBytes));
  const batch = Array.from({ length: BATCH }, () => ({ payload }));
  while (log.bytes < cell.bytes) await log.append(batch);
  const { bytes, tail } = log;
  await store.close();
  await Deno.remove(`${store.directoryOf("streams", KEY)}/durable.mark`);
  const run = async (): Promise<LoadResult> => {
    store = await openStore(root);
    const started = performance.now();
    log = await store.openLog("streams", KEY);
    const elapsedMs = performance.now() - started;
    const completed = log.tail === tail ? bytes : 0;
    return { completed, expected: bytes, elapsedMs, p50Ms: elapsedMs, p99Ms: null };
  };
  return { run, finish: () => store.close() };
}

if (import.meta.main) await serveLoad(prepare);
