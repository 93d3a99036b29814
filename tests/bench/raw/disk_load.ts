// The disk by itself: the bytes of a cell written to one file in order, each write followed by a
// data sync before it counts, or the bytes of a log read from one end to the other. It is the
// ceiling of what an acknowledgement after fsync, or a recovery, can reach on this machine.

import { promises as fs } from "node:fs";
import type { Cell, LoadResult, Target } from "../cell.ts";
import { Samples } from "../statistics.ts";
import { type PreparedLoad, serveLoad } from "../worker.ts";

/** What one sync of a bulk run covers: more did not go faster. */
const BULK_SYNC_BYTES = 1024 * 1024;
/** What a record adds on disk to its payload. */
const RECORD_BYTES = 28;
const READ_BYTES = 1024 * 1024;

/** How many records of how many bytes one sync covers, until when. */
interface WritePlan {
  readonly recordBytes: number;
  readonly recordsPerSync: number;
  readonly records?: number;
  readonly durationMs?: number;
}

function writePlan(cell: Cell): WritePlan {
  if (cell.kind === "acked") {
    const { payloadBytes, durationMs, inFlight } = cell;
    return { recordBytes: payloadBytes + RECORD_BYTES, recordsPerSync: inFlight, durationMs };
  }
  if (cell.kind !== "ingest") throw new TypeError(`no disk load for ${cell.kind}`);
  const recordBytes = cell.payloadBytes + RECORD_BYTES;
  const recordsPerSync = Math.max(cell.batch, Math.floor(BULK_SYNC_BYTES / recordBytes));
  return { recordBytes, recordsPerSync, records: cell.records };
}

async function prepareWrites(cell: Cell, directory: string): Promise<PreparedLoad> {
  const { recordBytes, recordsPerSync, records, durationMs } = writePlan(cell);
  const bytes = crypto.getRandomValues(new Uint8Array(64 * 1024));
  const block = new Uint8Array(recordBytes * recordsPerSync);
  for (let at = 0; at < block.length; at += bytes.length) {
    block.set(bytes.subarray(0, block.length - at), at);
  }
  const file = await fs.open(`${directory}/disk`, "w");
  const run = async (): Promise<LoadResult> => {
    const samples = new Samples();
    const started = performance.now();
    const until = durationMs === undefined ? Infinity : started + durationMs;
    let completed = 0;
    for (let now = started; completed < (records ?? Infinity) && now < until;) {
      await file.write(block);
      await file.datasync();
      completed += recordsPerSync;
      const ended = performance.now();
      samples.add(ended - now);
      now = ended;
    }
    const elapsedMs = performance.now() - started;
    return { completed, expected: records ?? completed, elapsedMs, ...samples.summary() };
  };
  return { run, finish: () => file.close() };
}

async function prepareRead(bytes: number, directory: string): Promise<PreparedLoad> {
  const path = `${directory}/disk`;
  const file = await fs.open(path, "w+");
  const block = crypto.getRandomValues(new Uint8Array(64 * 1024));
  for (let at = 0; at < bytes; at += block.length) await file.write(block);
  await file.sync();
  const run = async (): Promise<LoadResult> => {
    const buffer = new Uint8Array(READ_BYTES);
    const started = performance.now();
    let completed = 0;
    while (completed < bytes) {
      const { bytesRead } = await file.read(buffer, 0, buffer.length, completed);
      if (bytesRead === 0) break;
      completed += bytesRead;
    }
    const elapsedMs = performance.now() - started;
    return { completed, expected: bytes, elapsedMs, p50Ms: elapsedMs, p99Ms: null };
  };
  return { run, finish: () => file.close() };
}

function prepare(cell: Cell, { directory = "" }: Target): Promise<PreparedLoad> {
  if (cell.kind === "recovery") return prepareRead(cell.bytes, directory);
  return prepareWrites(cell, directory);
}

if (import.meta.main) await serveLoad(prepare);
