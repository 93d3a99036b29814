// `durable.mark` of one log: how far its newest segment is known to be on the device
// (spec/storage.md §5.1). Rule: it is written after a flush and may lag, it never leads; so failing
// to write it costs nothing, unless it has to move backwards.

import type { Disk, DiskFile } from "../disk/disk.ts";
import { readWhole } from "../disk/whole_file.ts";
import { decodeDurableMark, encodeDurableMark } from "../format/durable_mark.ts";
import type { DurableMark } from "../format/durable_mark.ts";
import { StorageError } from "../storage_error.ts";
import { writeAll } from "./segment.ts";

/** Name of the file. */
export const MARK_FILE = "durable.mark";

/** Reads the mark of a log directory; `null` when there is none that verifies. */
export async function readMark(disk: Disk, directory: string): Promise<DurableMark | null> {
  const bytes = await readWhole(disk, `${directory}/${MARK_FILE}`);
  return bytes === null ? null : decodeDurableMark(bytes);
}

/** The open mark of a log. */
export class MarkFile {
  readonly #file: DiskFile;

  private constructor(file: DiskFile) {
    this.#file = file;
  }

  /** Opens or makes the file and puts `mark` into it, durable with its name. */
  static async open(disk: Disk, directory: string, mark: DurableMark): Promise<MarkFile> {
    const path = `${directory}/${MARK_FILE}`;
    const file = disk.open(path, disk.fileSize(path) === null ? "create" : "write");
    const opened = new MarkFile(file);
    await opened.moveBack(mark);
    await disk.syncDirectory(directory);
    return opened;
  }

  /** Moves the mark forward, after a flush; a failure only makes it lag. */
  advance(mark: DurableMark): void {
    try {
      this.#write(mark);
    } catch (error) {
      if (!(error instanceof StorageError)) throw error;
    }
  }

  /** Moves the mark anywhere, durably: a mark that is ahead of the log would vouch for nothing. */
  async moveBack(mark: DurableMark): Promise<void> {
    this.#write(mark);
    await this.#file.sync();
  }

  /** Makes the mark durable and closes the file. */
  async close(): Promise<void> {
    try {
      await this.#file.sync();
    } finally {
      this.#file.close();
    }
  }

  #write(mark: DurableMark): void {
    const bytes = encodeDurableMark(mark);
    writeAll(this.#file, bytes, bytes.length, 0);
  }
}
