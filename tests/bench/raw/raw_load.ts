// The load on the raw server: the same bytes, counts and concurrency as a cell's Felix load, with
// no client library. Run by the harness, which talks to it in JSON lines (worker.ts).

import type {
  AckedCell,
  CacheCell,
  Cell,
  FanoutCell,
  IngestCell,
  ReplayCell,
  Target,
} from "../cell.ts";
import {
  ACK_BYTES,
  cacheFrameBytes,
  eventFrameBytes,
  publishFrameBytes,
  replayFrameBytes,
} from "../frame_sizes.ts";
import { type PreparedLoad, serveLoad } from "../worker.ts";
import { ClosedLoop, type LoopPlan } from "./closed_loop.ts";
import { prepareFanout } from "./fanout_load.ts";
import { encodePreamble, RawMode } from "./preamble.ts";
import { connect, readAll } from "./quic.ts";

/** Bytes of batches in flight, as our client bounds them. */
const INGEST_IN_FLIGHT_BYTES = 4 * 1024 * 1024;

/** Read size of the one-way cell. */
const READ_BYTES = 16 * 1024;

/** The closed loop that stands for a request-and-answer cell. */
export function loopPlan(cell: IngestCell | AckedCell | CacheCell): LoopPlan {
  if (cell.kind === "ingest") {
    const requestBytes = publishFrameBytes(cell.payloadBytes, cell.batch);
    return {
      requestBytes,
      answerBytes: ACK_BYTES,
      inFlight: Math.min(256, Math.ceil(INGEST_IN_FLIGHT_BYTES / requestBytes)),
      streams: 1,
      total: Math.ceil(cell.records / cell.batch),
    };
  }
  const sizes = cell.kind === "cache"
    ? cacheFrameBytes(cell)
    : { request: publishFrameBytes(cell.payloadBytes, 1), answer: ACK_BYTES };
  return {
    requestBytes: sizes.request,
    answerBytes: sizes.answer,
    inFlight: cell.inFlight,
    streams: cell.kind === "cache" ? Math.max(1, cell.streams) : 1,
    durationMs: cell.durationMs,
  };
}

/** Connects, opens the cell's streams and warms them up. */
export async function prepareRaw(cell: Cell, target: Target): Promise<PreparedLoad> {
  if (cell.kind === "python" || cell.kind === "idle" || cell.kind === "recovery") {
    throw new TypeError(`no raw load for ${cell.kind}`);
  }
  const ca = Deno.readTextFileSync(target.caFile ?? "");
  if (cell.kind === "fanout") return await prepareFanoutCell(cell, target, ca);
  const connection = await connect(target, ca);
  if (cell.kind === "replay") return await prepareOneWay(connection, cell);
  const plan = loopPlan(cell);
  const loop = await ClosedLoop.open(connection, plan, RawMode.echo);
  await loop.run({ total: 200 * plan.streams, durationMs: 500 });
  return {
    run: async () => {
      const result = await loop.run();
      const each = cell.kind === "ingest" ? cell.batch : 1;
      return { ...result, completed: result.completed * each, expected: result.expected * each };
    },
    finish: () => Promise.resolve(connection.close({ closeCode: 0, reason: "" })),
  };
}

async function prepareOneWay(
  connection: Deno.QuicConn,
  cell: ReplayCell,
): Promise<PreparedLoad> {
  const frames = Math.ceil(cell.records / cell.batch);
  const receive = async (count: number): Promise<number> => {
    const requestBytes = replayFrameBytes(cell.payloadBytes, cell.batch);
    const stream = await connection.createBidirectionalStream();
    const preamble = encodePreamble({ mode: RawMode.send, requestBytes, answerBytes: 0, count });
    await stream.writable.getWriter().write(preamble);
    let bytes = 0;
    await readAll(
      stream.readable,
      READ_BYTES,
      (read) => (bytes += read.byteLength, read.byteLength),
    );
    return Math.floor(bytes / requestBytes) * cell.batch;
  };
  await receive(10);
  return {
    run: async () => {
      const started = performance.now();
      const completed = await receive(frames);
      const elapsedMs = performance.now() - started;
      return { completed, expected: frames * cell.batch, elapsedMs, p50Ms: null, p99Ms: null };
    },
    finish: () => Promise.resolve(connection.close({ closeCode: 0, reason: "" })),
  };
}

async function prepareFanoutCell(
  cell: FanoutCell,
  target: Target,
  ca: string,
): Promise<PreparedLoad> {
  const publisher = await connect(target, ca);
  const subscriber = await connect(target, ca);
  const frameBytes = eventFrameBytes(cell.payloadBytes, cell.batch);
  const load = await prepareFanout(publisher, subscriber, cell, frameBytes);
  return {
    run: () => load.run(),
    finish: () => {
      publisher.close({ closeCode: 0, reason: "" });
      subscriber.close({ closeCode: 0, reason: "" });
      return Promise.resolve();
    },
  };
}

if (import.meta.main) await serveLoad(prepareRaw);
