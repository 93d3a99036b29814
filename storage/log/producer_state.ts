// The idempotent producers of an open log: restored when it opens, saved when a segment is left
// (spec/storage.md §5.4). Rules: the records decide, the file only spares reading them; a file that
// speaks of records which the log has not got is removed, durably, before any can take their
// offsets.

import type { Disk } from "../disk/disk.ts";
import { readWhole } from "../disk/whole_file.ts";
import {
  decodeProducerSnapshot,
  encodeProducerSnapshot,
  snapshotFits,
} from "../format/producer_snapshot.ts";
import type { ProducerSnapshot } from "../format/producer_snapshot.ts";
import { ProducerTable } from "../producers/producer_table.ts";
import { StorageError } from "../storage_error.ts";
import { readLog } from "./log_read.ts";
import type { LogState } from "./log_state.ts";
import { writeFileSynced } from "./segment.ts";

/** Name of the file. */
export const PRODUCERS_FILE = "producers";
const TEMPORARY_FILE = "producers.tmp";

/**
 * Makes `state.producers` what the records lead to. `firstMark`: offset of the first record of the
 * active segment that carries a producer mark; `null`: none does. What had to be read of sealed
 * segments is saved, so that it is read once.
 */
export async function openProducers(state: LogState, firstMark: number | null): Promise<void> {
  const snapshot = await readSnapshot(state);
  const { active, environment } = state;
  let from = state.base;
  let table = new ProducerTable();
  if (snapshot !== null) {
    from = snapshot.asOf;
    table = ProducerTable.restore(snapshot);
  } else if (from < active.base) environment.counters.producerStateRebuilds++;
  await replay(state, table, from, active.base);
  if (from < active.base) await save(state, table, active.base);
  if (firstMark !== null) await replay(state, table, Math.max(from, firstMark), active.next);
  table.forgetBelow(state.base);
  state.producers = table;
}

/** Saves what is known when a segment has just been left: everything below its end is sealed. */
export async function saveProducers(state: LogState): Promise<void> {
  if (state.producers !== null) await save(state, state.producers, state.active.base);
}

/** Removes the file, durably, when it covers records from offset `cut` on, which are to go. */
export async function removeProducersAfter(state: LogState, cut: number): Promise<void> {
  if (state.producers === null) return;
  const { environment: { disk }, directory } = state;
  const bytes = await readWhole(disk, `${directory}/${PRODUCERS_FILE}`);
  const snapshot = bytes === null ? null : decodeProducerSnapshot(bytes);
  if (snapshot !== null && snapshot.asOf < cut) return;
  await removeFile(disk, directory, PRODUCERS_FILE);
}

/**
 * The snapshot on the disk, if it is one of this log; what is not is removed. Its offset is outside
 * its checksum, but it is one at which a segment was begun.
 */
async function readSnapshot(state: LogState): Promise<ProducerSnapshot | null> {
  const { environment: { disk, warn }, directory, label } = state;
  await removeFile(disk, directory, TEMPORARY_FILE);
  const bytes = await readWhole(disk, `${directory}/${PRODUCERS_FILE}`);
  if (bytes === null) return null;
  const snapshot = decodeProducerSnapshot(bytes);
  if (snapshot !== null && snapshotFits(snapshot, state.base, state.tail)) {
    const segments = [...state.sealed, state.active];
    if (segments.some(({ base }) => base === snapshot.asOf)) return snapshot;
  }
  const why = snapshot === null ? "does not verify" : `is as of offset ${snapshot.asOf}`;
  warn?.(`${label}: the file of its producers ${why}; their state is read from the log`);
  await removeFile(disk, directory, PRODUCERS_FILE);
  return null;
}

async function replay(
  state: LogState,
  table: ProducerTable,
  from: number,
  until: number,
): Promise<void> {
  for (let next = from; next < until;) {
    const page = await readLog(state, next, { until });
    for (const record of page.records) table.observe(record.offset, record);
    next = page.next;
  }
}

async function save(state: LogState, table: ProducerTable, asOf: number): Promise<void> {
  const { environment: { disk, counters }, directory } = state;
  const temporary = `${directory}/${TEMPORARY_FILE}`;
  try {
    await writeFileSynced(disk, temporary, encodeProducerSnapshot(table.snapshot(asOf)));
    disk.rename(temporary, `${directory}/${PRODUCERS_FILE}`);
    await disk.syncDirectory(directory);
  } catch (error) {
    // The file before it is still true, and without any the records are read.
    if (!(error instanceof StorageError)) throw error;
    counters.producerWriteFailures++;
  }
}

async function removeFile(disk: Disk, directory: string, name: string): Promise<void> {
  const path = `${directory}/${name}`;
  if (disk.fileSize(path) === null) return;
  disk.unlink(path);
  await disk.syncDirectory(directory);
}
