// A log's directory as a recovery plan sees it: the segment files there are, less those the plan
// removes, as long as the plan leaves them. Rule: looking changes nothing on the disk.

import type { Disk, DiskFile } from "../disk/disk.ts";
import { readWhole } from "../disk/whole_file.ts";

/** Bytes of a file that a plan cuts off. */
export interface PlannedCut {
  readonly segment: number;
  /** Length that stays. */
  readonly length: number;
  readonly discardedBytes: number;
  readonly cause: string;
}

/** Name of a segment's data file. */
export function segmentFileName(segment: number): string {
  return `${String(segment).padStart(20, "0")}.log`;
}

/** Name of a segment's index file. */
export function indexFileName(segment: number): string {
  return `${String(segment).padStart(20, "0")}.index`;
}

/** Ids of the segment files among `names`, ascending; anything else in a directory is ignored. */
export function segmentIds(names: readonly string[]): number[] {
  return names.filter((name) => /^\d{20}\.log$/.test(name))
    .map((name) => Number(name.slice(0, 20)))
    .filter(Number.isSafeInteger)
    .sort((one, other) => one - other);
}

/** Files of one log during planning. */
export class DirectoryView {
  readonly removals: number[] = [];
  readonly cuts: PlannedCut[] = [];
  #ids: number[];
  readonly #lengths = new Map<number, number>();
  readonly #files = new Map<number, DiskFile>();

  /** `directory` may be missing, which is an empty one. */
  constructor(readonly disk: Disk, readonly directory: string) {
    this.#ids = segmentIds(disk.list(directory) ?? []);
    for (const id of this.#ids) {
      this.#lengths.set(id, disk.fileSize(`${directory}/${segmentFileName(id)}`) ?? 0);
    }
  }

  /** Segments that the plan leaves, ascending. */
  get ids(): readonly number[] {
    return this.#ids;
  }

  /** Bytes that the plan leaves of a segment. */
  length(segment: number): number {
    return this.#lengths.get(segment) ?? 0;
  }

  /** The segment's file; closed by `close`. */
  file(segment: number): DiskFile {
    let file = this.#files.get(segment);
    if (file === undefined) {
      file = this.disk.open(`${this.directory}/${segmentFileName(segment)}`, "read");
      this.#files.set(segment, file);
    }
    return file;
  }

  /** The segment's index file, or `null`. */
  indexBytes(segment: number): Promise<Uint8Array | null> {
    return readWhole(this.disk, `${this.directory}/${indexFileName(segment)}`);
  }

  /** Plans to remove a segment and its index. */
  remove(segment: number): void {
    this.removals.push(segment);
    this.#ids = this.#ids.filter((id) => id !== segment);
  }

  /** Plans to cut a segment. */
  cut(segment: number, length: number, cause: string): void {
    const discardedBytes = this.length(segment) - length;
    this.cuts.push({ segment, length, discardedBytes, cause });
    this.#lengths.set(segment, length);
  }

  /** Closes the files that were looked at. */
  close(): void {
    for (const file of this.#files.values()) file.close();
    this.#files.clear();
  }
}
