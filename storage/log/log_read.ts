// Reading records of an open log in offset order (spec/storage.md §9). Rules: every record that is
// returned was verified; a page is short only at the end of the log or of its budget; an index that
// turns out wrong costs a scan and never changes what is read.

import { RecordCursor } from "../format/record.ts";
import type { LogRecord } from "../format/record.ts";
import { FileWindow } from "../recovery/file_window.ts";
import { readRecord, scanSegment } from "../recovery/segment_scan.ts";
import type { DiskFile } from "../disk/disk.ts";
import { readWhole } from "../disk/whole_file.ts";
import { SparseIndex } from "../format/sparse_index.ts";
import { CorruptionError, StorageError } from "../storage_error.ts";
import type { LogState } from "./log_state.ts";
import type { Segment } from "./segment.ts";

/** Bounds of one read. */
export interface ReadLimits {
  /** Payload bytes after which the page ends; it holds one record at least. 1 MiB when absent. */
  readonly maxBytes?: number;
  /** Records; the store's `maxRecordsPerRead` when absent. */
  readonly maxRecords?: number;
  /** Offset before which the page ends. */
  readonly until?: number;
}

/** Records of a log. */
export interface LogPage {
  /** As stored, consecutive from the offset that was asked for. */
  readonly records: LogRecord[];
  /** Offset to go on from. */
  readonly next: number;
}

const DEFAULT_PAGE_BYTES = 1024 * 1024;
const MIN_WINDOW_BYTES = 8 * 1024;
const MAX_WINDOW_BYTES = 1024 * 1024;

interface Budget {
  bytes: number;
  records: number;
  readonly until: number;
  readonly windowBytes: number;
}

/** Reads from `start` on; `TrimmedError` when that is gone, an empty page at the end. */
export async function readLog(
  state: LogState,
  start: number,
  limits: ReadLimits,
): Promise<LogPage> {
  if (state.closed) throw new StorageError("closed", `${state.label}: the log is closed`);
  for (;;) {
    const { cuts } = state;
    try {
      return await readOnce(state, start, limits);
    } catch (error) {
      if (state.cuts !== cuts) continue;
      if (error instanceof StorageError && !state.closed) state.checkHeld(start);
      throw error;
    }
  }
}

async function readOnce(state: LogState, start: number, limits: ReadLimits): Promise<LogPage> {
  state.checkHeld(start);
  const { settings, counters } = state.environment;
  const bytes = limits.maxBytes ?? DEFAULT_PAGE_BYTES;
  const budget: Budget = {
    bytes,
    records: Math.min(limits.maxRecords ?? Infinity, settings.maxRecordsPerRead),
    until: Math.min(limits.until ?? Infinity, state.readable),
    windowBytes: Math.min(
      Math.max(MIN_WINDOW_BYTES, bytes + 2 * settings.indexSpacingBytes),
      MAX_WINDOW_BYTES,
    ),
  };
  const records: LogRecord[] = [];
  let next = start;
  while (next < budget.until && budget.bytes > 0 && budget.records > 0) {
    // What retention removes meanwhile is a typed error of the next page, never a skip in this one.
    if (next < state.base) break;
    const segment = state.segmentOf(next);
    next = await readSegment(state, segment, next, budget, records);
  }
  counters.readRecords += records.length;
  counters.readBytes += bytes - budget.bytes;
  return { records, next };
}

async function readSegment(
  state: LogState,
  segment: Segment,
  start: number,
  budget: Budget,
  into: LogRecord[],
): Promise<number> {
  const { openSegments } = state.environment;
  const live = segment === state.active ? state.active.index : null;
  return await openSegments.use(segment.path, async (open) => {
    const window = new FileWindow(open.file, segment.bytes, budget.windowBytes);
    const index = live ?? (open.index ??= await loadIndex(state, segment, open.file));
    let entry = index.find(start);
    if (!await landsOn(window, segment, entry)) {
      open.index = await rebuildIndex(state, segment, open.file);
      entry = open.index.find(start);
    }
    return await collect(state, segment, window, entry, start, budget, into);
  });
}

/** The index of a sealed segment: its file, or where that is unusable a scan of the segment. */
async function loadIndex(state: LogState, segment: Segment, file: DiskFile): Promise<SparseIndex> {
  const { disk, settings } = state.environment;
  const bytes = await readWhole(disk, segment.indexPath);
  const index = bytes === null
    ? null
    : SparseIndex.decode(bytes, segment.base, settings.indexSpacingBytes);
  return index ?? await rebuildIndex(state, segment, file);
}

/** Whether an index entry is the record that it claims to be. */
async function landsOn(
  window: FileWindow,
  segment: Segment,
  entry: { offset: number; position: number },
): Promise<boolean> {
  if (entry.position >= segment.bytes) return false;
  const cursor = new RecordCursor();
  const { position, offset } = entry;
  return await readRecord(window, cursor, position, segment.version, offset) === null;
}

async function rebuildIndex(state: LogState, segment: Segment, file: DiskFile) {
  const scan = await scanSegment({
    label: state.label,
    segment: segment.id,
    file,
    length: segment.bytes,
    repair: null,
    indexSpacingBytes: state.environment.settings.indexSpacingBytes,
  });
  return scan.index!;
}

async function collect(
  state: LogState,
  segment: Segment,
  window: FileWindow,
  entry: { offset: number; position: number },
  start: number,
  budget: Budget,
  into: LogRecord[],
): Promise<number> {
  const cursor = new RecordCursor();
  let { position, offset } = entry;
  const end = Math.min(segment.next, budget.until);
  while (offset < end && budget.bytes > 0 && budget.records > 0) {
    const read = readRecord(window, cursor, position, segment.version, offset);
    const failure = read instanceof Promise ? await read : read;
    if (failure !== null) {
      throw new CorruptionError(failure.kind, state.label, segment.id, position);
    }
    if (offset >= start) {
      into.push(cursor.record(window.bytes, window.view, position - window.start));
      budget.bytes -= cursor.payloadBytes;
      budget.records--;
    }
    position += cursor.size;
    offset++;
  }
  return offset;
}
