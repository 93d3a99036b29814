// Leaving a full segment for a new one (spec/storage.md §7.3). Rules: the old one is on the device
// before the new one exists; a seal that fails is a failed flush and poisons the log, a new segment
// that cannot be made (disk full) only refuses the append, and the next append tries again.

import { StorageError } from "../storage_error.ts";
import type { LogState } from "./log_state.ts";
import { saveProducers } from "./producer_state.ts";
import { createSegment, writeFileSynced } from "./segment.ts";
import type { ActiveSegment } from "./segment.ts";
import { SEGMENT_HEADER_BYTES } from "../format/segment_header.ts";

/** Seals the active segment and goes on in a new one of `version` or newer. */
export async function rollSegment(state: LogState, version: number): Promise<void> {
  const { counters } = state.environment;
  await state.restructure(async () => {
    const old = state.active;
    try {
      await old.file.syncData();
    } catch (error) {
      counters.syncFailures++;
      throw state.poison("sealing a segment failed", error);
    }
    state.commits.move(old.next);
    state.mark.advance({ segment: old.id, syncedBytes: old.bytes });
    let active: ActiveSegment;
    try {
      active = await newActive(state, Math.max(version, old.version), old.next);
    } catch (error) {
      counters.segmentRollFailures++;
      throw error;
    }
    old.file.close();
    const { file: _file, index: _index, ...sealed } = old;
    state.active = active;
    // Left for its version alone it is empty; a sealed segment holds a record or more.
    const empty = old.next === old.base;
    (empty ? state.condemned : state.sealed).push(sealed);
    if (!empty) await writeIndex(state, old);
    state.mark.advance({ segment: active.id, syncedBytes: SEGMENT_HEADER_BYTES });
    counters.segmentRolls++;
    await saveProducers(state);
  });
}

/** Makes the next segment of a log. */
export async function newActive(
  state: LogState,
  version: number,
  base: number,
): Promise<ActiveSegment> {
  const { disk, settings, nowMicros } = state.environment;
  try {
    return await createSegment(disk, {
      directory: state.directory,
      id: state.nextId++,
      version,
      base,
      createdAtMicros: nowMicros(),
      indexSpacingBytes: settings.indexSpacingBytes,
    });
  } catch (error) {
    // What was made of it could not be taken back: it could come between two segments some day.
    if (error instanceof StorageError && error.code !== "sync_failed") throw error;
    throw state.poison("a new segment was left half made", error);
  }
}

async function writeIndex(state: LogState, segment: ActiveSegment): Promise<void> {
  try {
    await writeFileSynced(state.environment.disk, segment.indexPath, segment.index.encode());
  } catch (error) {
    // Recovery makes it again.
    if (!(error instanceof StorageError)) throw error;
    state.environment.counters.indexWriteFailures++;
  }
}
