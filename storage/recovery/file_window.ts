// A moving window over a file, for reading records in order. Rule: it grows only for a record whose
// length has been checked against the file, and shrinks back after it (spec/storage.md §1 P6).

import type { DiskFile } from "../disk/disk.ts";
import { StorageError } from "../storage_error.ts";

/** Usual size of a scan's window. */
export const SCAN_WINDOW_BYTES = 1024 * 1024;

/** Bytes `[start, end)` of a file. */
export class FileWindow {
  bytes: Uint8Array;
  view: DataView;
  start = 0;
  end = 0;

  /**
   * Reads `file` up to `length` bytes, at least `windowBytes` at a time where there are as many.
   */
  constructor(
    readonly file: DiskFile,
    readonly length: number,
    readonly windowBytes: number = SCAN_WINDOW_BYTES,
  ) {
    this.bytes = new Uint8Array(Math.min(windowBytes, Math.max(length, 1)));
    this.view = new DataView(this.bytes.buffer);
  }

  /** Whether `[position, position + count)` is in the window already. */
  holds(position: number, count: number): boolean {
    return position >= this.start && position + count <= this.end;
  }

  /** Brings `[position, position + count)`, which lies within `length`, into the window. */
  async load(position: number, count: number): Promise<void> {
    const size = Math.max(count, Math.min(this.windowBytes, this.length - position));
    // A new buffer each time: payloads that were handed out are views of the one before.
    this.bytes = new Uint8Array(size);
    this.view = new DataView(this.bytes.buffer);
    let filled = 0;
    while (filled < size) {
      const got = await this.file.read(this.bytes.subarray(filled), position + filled);
      if (got === 0) break;
      filled += got;
    }
    this.start = position;
    this.end = position + filled;
    if (filled < count) {
      throw new StorageError("io", `the file ends at byte ${this.end}, before ${position + count}`);
    }
  }
}
