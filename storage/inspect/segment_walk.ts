// Goes through a segment file record by record, from its head to the first byte that does not
// verify. Rule: it judges nothing and repairs nothing; what it says about the end is a place and a
// kind.

import type { DiskFile } from "../disk/disk.ts";
import { RecordCursor } from "../format/record.ts";
import type { LogRecord } from "../format/record.ts";
import { SEGMENT_HEADER_BYTES } from "../format/segment_header.ts";
import { FileWindow } from "../recovery/file_window.ts";
import { readRecord, readSegmentHeader } from "../recovery/segment_scan.ts";
import type { RecordFailure } from "../recovery/segment_scan.ts";
import { CorruptionError } from "../storage_error.ts";
import type { FormatKind } from "../storage_error.ts";

/** A place in a log that does not verify. */
export interface Damage {
  readonly segment: number;
  /** Byte position in the segment's file. */
  readonly position: number;
  readonly kind: FormatKind;
  /** More about it; empty when the kind says all. */
  readonly detail: string;
}

/** What a corruption says, without the name of the log. */
export function damageOf({ segment, position, kind, message }: CorruptionError): Damage {
  const detail = / \((.*)\)$/.exec(message)?.[1] ?? "";
  return { segment, position, kind, detail };
}

/** A segment that begins somewhere else than the one before it ends. */
export function chainBreak(segment: number, base: number, expected: number): Damage {
  const detail = `begins at offset ${base}, expected ${expected}`;
  return { segment, position: 0, kind: "OffsetOutOfOrder", detail };
}

/** A position in a segment; made by `SegmentWalk.begin`. */
export class SegmentWalk {
  /** Byte after the last good record, or 0 without a good header. */
  position: number;
  /** Offset after the last good record. */
  next: number;
  /** What is wrong at `position`; `null` while nothing is. */
  damage: Damage | null = null;
  readonly #window: FileWindow;
  readonly #cursor = new RecordCursor();

  private constructor(
    readonly segment: number,
    /** `null`: the segment's header does not verify, and there is nothing to walk. */
    readonly header: { readonly base: number; readonly version: number } | null,
    file: DiskFile,
    readonly length: number,
  ) {
    this.position = header === null ? 0 : SEGMENT_HEADER_BYTES;
    this.next = header?.base ?? 0;
    this.#window = new FileWindow(file, length);
  }

  /** Stands before the first record of a segment of `length` bytes; `file` stays the caller's. */
  static async begin(file: DiskFile, length: number, segment: number): Promise<SegmentWalk> {
    try {
      const header = await readSegmentHeader(file, length, "", segment);
      return new SegmentWalk(segment, header, file, length);
    } catch (error) {
      if (!(error instanceof CorruptionError)) throw error;
      const walk = new SegmentWalk(segment, null, file, length);
      walk.damage = damageOf(error);
      return walk;
    }
  }

  /** Moves past the next record and says whether there was a good one; at once where it can. */
  advance(): boolean | Promise<boolean> {
    const { header, position, next, length } = this;
    if (header === null || this.damage !== null || position >= length) return false;
    const read = readRecord(this.#window, this.#cursor, position, header.version, next);
    return read instanceof Promise
      ? read.then((failure) => this.#settle(failure))
      : this.#settle(read);
  }

  /** The record that `advance` just passed. */
  record(): LogRecord {
    const { bytes, view, start } = this.#window;
    return this.#cursor.record(bytes, view, this.position - this.#cursor.size - start);
  }

  #settle(failure: RecordFailure | null): boolean {
    if (failure !== null) {
      const { segment, position } = this;
      this.damage = { segment, position, kind: failure.kind, detail: "" };
      return false;
    }
    this.position += this.#cursor.size;
    this.next++;
    return true;
  }
}
