// Removing the end of a log, for replication: truncate and reset (spec/storage.md §11). Rules:
// files go newest first, each made durable, so a crash leaves a longer prefix and never a hole; a
// failure on the way poisons the log.

import type { Segment } from "./segment.ts";
import { RecordCursor } from "../format/record.ts";
import { SEGMENT_HEADER_BYTES } from "../format/segment_header.ts";
import { FileWindow } from "../recovery/file_window.ts";
import { readRecord, scanSegment } from "../recovery/segment_scan.ts";
import { CorruptionError, StorageError } from "../storage_error.ts";
import type { LogState } from "./log_state.ts";
import { openProducers, removeProducersAfter } from "./producer_state.ts";
import { newActive } from "./roll.ts";

/** Removes every record from `offset` on; nothing to do at the tail or behind it. */
export async function truncateLog(state: LogState, offset: number): Promise<void> {
  if (offset >= state.tail) return;
  if (offset < state.base) {
    const held = `the log holds [${state.base}, ${state.tail})`;
    throw new StorageError("outside_log", `${state.label}: cannot cut at ${offset}: ${held}`);
  }
  await cutting(state, offset, async () => {
    // The segment stays that the cut is in; the first one stays even when nothing of it does, so
    // that its base is never lost.
    const kept = state.segmentOf(Math.max(offset - 1, state.base));
    await removeAfter(state, kept);
    return await reopenCut(state, kept, offset);
  });
}

/** Removes every record; the next one gets offset `base`. */
export async function resetLog(state: LogState, base: number): Promise<void> {
  await cutting(state, 0, async () => {
    await removeAfter(state, null);
    state.active = await newActive(state, state.active.version, base);
    return null;
  });
}

/**
 * Runs `work`, which removes every record from `cut` on and answers the first producer mark of what
 * is then the active segment.
 */
async function cutting(
  state: LogState,
  cut: number,
  work: () => Promise<number | null>,
): Promise<void> {
  await state.restructure(async () => {
    state.cuts++;
    try {
      await removeProducersAfter(state, cut);
      const firstMark = await work();
      const { active } = state;
      await state.mark.moveBack({ segment: active.id, syncedBytes: active.bytes });
      state.commits.move(active.next);
      if (state.producers !== null) await openProducers(state, firstMark);
    } catch (error) {
      throw state.poison("cutting the log failed", error);
    } finally {
      state.cuts++;
    }
  });
}

/** Unlinks the segments behind `kept`, newest first; all of them with `null`. */
async function removeAfter(state: LogState, kept: Segment | null): Promise<void> {
  const { disk } = state.environment;
  if (kept !== state.active) {
    state.active.file.close();
    await removeSegment(state, state.active);
    while (state.sealed.length > 0 && state.sealed.at(-1) !== kept) {
      await removeSegment(state, state.sealed.pop()!);
    }
  }
  if (kept !== null && disk.fileSize(kept.indexPath) !== null) disk.unlink(kept.indexPath);
}

/** Unlinks one segment and its index, durably. */
export async function removeSegment(state: LogState, segment: Segment): Promise<void> {
  const { disk, openSegments } = state.environment;
  openSegments.drop(segment.path);
  if (disk.fileSize(segment.indexPath) !== null) disk.unlink(segment.indexPath);
  if (disk.fileSize(segment.path) !== null) disk.unlink(segment.path);
  await disk.syncDirectory(state.directory);
}

async function reopenCut(
  state: LogState,
  kept: Segment,
  offset: number,
): Promise<number | null> {
  const { environment, label } = state;
  const { disk, openSegments, settings } = environment;
  const wasActive = kept === state.active;
  const file = wasActive ? state.active.file : disk.open(kept.path, "write");
  const length = await positionOf(state, kept, offset);
  openSegments.drop(kept.path);
  file.truncate(length);
  await file.sync();
  const scan = await scanSegment({
    label,
    segment: kept.id,
    file,
    length,
    repair: null,
    indexSpacingBytes: settings.indexSpacingBytes,
  });
  if (!wasActive) state.sealed.pop();
  const { newestTimestampMicros } = scan;
  const bytes = length;
  const index = scan.index!;
  state.active = { ...kept, next: offset, bytes, newestTimestampMicros, index, file };
  return scan.firstMark;
}

/** Byte position of the record `offset` in a segment. */
async function positionOf(state: LogState, segment: Segment, offset: number): Promise<number> {
  const { disk } = state.environment;
  const file = disk.open(segment.path, "read");
  try {
    const window = new FileWindow(file, segment.bytes);
    const cursor = new RecordCursor();
    // From the head: an index could be wrong, and a cut at the wrong byte could not be undone.
    let position = SEGMENT_HEADER_BYTES;
    for (let at = segment.base; at < offset; at++) {
      const read = readRecord(window, cursor, position, segment.version, at);
      const failure = read instanceof Promise ? await read : read;
      if (failure !== null) {
        throw new CorruptionError(failure.kind, state.label, segment.id, position);
      }
      position += cursor.size;
    }
    return position;
  } finally {
    file.close();
  }
}
