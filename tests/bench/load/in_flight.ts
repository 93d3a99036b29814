// How many acknowledged records a peer keeps in flight, and the loop that every load
// does it with: as many bytes as our client has in flight for the same cell, so that nobody waits
// for a round trip more often.

import type { AckedCell, IngestCell, LoadResult } from "../cell.ts";
import { Samples } from "../statistics.ts";

/** Bytes of records in flight, as our client bounds them. */
const IN_FLIGHT_BYTES = 4 * 1024 * 1024;
/** Records in flight at most: four windows of batches of 64. */
const MAX_RECORDS = 256 * 64;

/** Records in flight of a cell. */
export function recordsInFlight(cell: IngestCell | AckedCell): number {
  if (cell.kind === "acked") return cell.inFlight;
  return Math.min(MAX_RECORDS, Math.ceil(IN_FLIGHT_BYTES / (cell.payloadBytes + 1)));
}

/** Keeps `inFlight` calls of `add` running until the cell's records or its time are reached. */
export function runInFlight(
  cell: IngestCell | AckedCell,
  inFlight: number,
  add: () => Promise<unknown>,
): Promise<LoadResult> {
  const more = cell.kind === "acked" ? forDuration(cell.durationMs) : times(cell.records);
  return keepInFlight(inFlight, more, add);
}

/** Keeps `inFlight` calls running until `more` says no; samples how long each took. */
export async function keepInFlight(
  inFlight: number,
  more: (now: number) => boolean,
  call: (index: number) => Promise<unknown>,
  isRight: (answer: unknown) => boolean = () => true,
): Promise<LoadResult> {
  const samples = new Samples();
  const started = performance.now();
  let next = 0;
  let completed = 0;
  const worker = async (): Promise<void> => {
    for (let now = performance.now(); more(now);) {
      if (!isRight(await call(next++))) throw new TypeError("a wrong answer");
      completed++;
      const ended = performance.now();
      samples.add(ended - now);
      now = ended;
    }
  };
  await Promise.all(Array.from({ length: inFlight }, worker));
  const elapsedMs = performance.now() - started;
  return { completed, expected: next, elapsedMs, ...samples.summary() };
}

/** True for `durationMs` milliseconds from now. */
export function forDuration(durationMs: number): (now: number) => boolean {
  const until = performance.now() + durationMs;
  return (now) => now < until;
}

/** True `total` times. */
export function times(total: number): () => boolean {
  let left = total;
  return () => left-- > 0;
}
