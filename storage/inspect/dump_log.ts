// The records of a log, read from its files without opening it, so that a log that would refuse to
// open can be looked at as well. Rule: nothing on the disk changes; records come in offset order up
// to the first place that does not verify, and that place is named, never skipped.

import type { Disk } from "../disk/disk.ts";
import type { LogRecord } from "../format/record.ts";
import { SEGMENT_HEADER_BYTES } from "../format/segment_header.ts";
import { DirectoryView } from "../recovery/directory_view.ts";
import { readSegmentHeader } from "../recovery/segment_scan.ts";
import { CorruptionError } from "../storage_error.ts";
import { chainBreak, SegmentWalk } from "./segment_walk.ts";
import type { Damage } from "./segment_walk.ts";

/** Which records. */
export interface DumpRange {
  /** First offset; the oldest there is when absent or gone. */
  readonly from?: number;
  /** Offset before which the dump ends. */
  readonly until?: number;
  /** Most records. */
  readonly limit?: number;
}

/** The records of a directory; `damage` tells, after the iteration, why it ended early. */
export class LogDump implements AsyncIterable<LogRecord> {
  /** Where the log stopped to verify, if the dump came there. */
  damage: Damage | null = null;

  /** `directory` is an absolute path. */
  constructor(
    readonly disk: Disk,
    readonly directory: string,
    readonly range: DumpRange = {},
  ) {}

  /** Reads the range anew. */
  async *[Symbol.asyncIterator](): AsyncGenerator<LogRecord, void, void> {
    this.damage = null;
    const { from = 0, until = Infinity, limit = Infinity } = this.range;
    const view = new DirectoryView(this.disk, this.directory);
    let left = limit;
    let expected: number | null = null;
    // A file too short for a header holds no record: it matters only if it was not skipped over.
    let blank: Damage | null = null;
    try {
      for (const id of await segmentsFrom(view, from)) {
        if (left <= 0 || (expected ?? 0) >= until) return;
        const walk = await SegmentWalk.begin(view.file(id), view.length(id), id);
        if (view.length(id) < SEGMENT_HEADER_BYTES) {
          blank ??= walk.damage;
          continue;
        }
        this.damage = walk.damage ?? gap(walk, expected, blank);
        if (this.damage !== null) return;
        blank = null;
        while (left > 0 && walk.next < until) {
          const moved = walk.advance();
          if (!(moved instanceof Promise ? await moved : moved)) break;
          if (walk.next <= from) continue;
          left--;
          yield walk.record();
        }
        this.damage = walk.damage;
        if (this.damage !== null) return;
        expected = walk.next;
      }
      if (left > 0 && (expected ?? 0) < until) this.damage = blank;
    } finally {
      view.close();
    }
  }
}

/** Segments from the newest on whose header says that it begins at `from` or before. */
async function segmentsFrom(view: DirectoryView, from: number): Promise<readonly number[]> {
  const { ids } = view;
  let start = from === 0 ? 0 : ids.length - 1;
  while (start > 0 && !await beginsBy(view, ids[start]!, from)) start--;
  return ids.slice(Math.max(start, 0));
}

async function beginsBy(view: DirectoryView, segment: number, from: number): Promise<boolean> {
  try {
    const file = view.file(segment);
    const { base } = await readSegmentHeader(file, view.length(segment), "", segment);
    return base <= from;
  } catch (error) {
    if (error instanceof CorruptionError) return false;
    throw error;
  }
}

function gap(walk: SegmentWalk, expected: number | null, blank: Damage | null): Damage | null {
  const base = walk.header?.base ?? 0;
  if (expected === null || base === expected) return expected === null ? blank : null;
  return blank ?? chainBreak(walk.segment, base, expected);
}
