// The Redis stream load: records of ingest and acknowledged cells as XADD through ioredis on one
// connection with its automatic pipelining. A batch is that many commands; all of a run's bytes in
// flight are bounded as our client bounds them.

import { Redis } from "ioredis";
import type { AckedCell, Cell, IngestCell, LoadResult, Target } from "../cell.ts";
import { recordsInFlight, runInFlight } from "./in_flight.ts";
import { type PreparedLoad, serveLoad } from "../worker.ts";

const KEY = "bench";

async function prepareStream(
  cell: IngestCell | AckedCell,
  target: Target,
): Promise<PreparedLoad> {
  const { hostname: host, port } = target;
  const redis = new Redis({ host, port, enableAutoPipelining: true, lazyConnect: true });
  await redis.connect();
  const payload = Buffer.alloc(cell.payloadBytes, "a");
  const add = (): Promise<unknown> => redis.xadd(KEY, "*", "p", payload);
  const run = (): Promise<LoadResult> => runInFlight(cell, recordsInFlight(cell), add);
  await Promise.all(Array.from({ length: 500 }, add));
  return { run, finish: async () => void await redis.quit() };
}

async function prepare(cell: Cell, target: Target): Promise<PreparedLoad> {
  if (cell.kind === "ingest" || cell.kind === "acked") return await prepareStream(cell, target);
  throw new TypeError(`no Redis stream load for ${cell.kind}`);
}

if (import.meta.main) await serveLoad(prepare);
