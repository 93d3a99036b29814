// The segment files that a store keeps open for reading, each with its index, least recently used
// closed first. Rule: a file in use is never closed, so the bound may be passed by as many files as
// are being read; beyond it neither a descriptor nor an index is held, however long a log is.

import type { Disk, DiskFile } from "../disk/disk.ts";
import type { SparseIndex } from "../format/sparse_index.ts";

/** A file that is open. */
export interface OpenSegment {
  readonly file: DiskFile;
  /** Of a sealed segment, once somebody needed it. */
  index: SparseIndex | null;
}

interface OpenFile extends OpenSegment {
  users: number;
  /** Closed as soon as nobody reads it. */
  dropped: boolean;
}

/** Open files by path. */
export class OpenSegments {
  readonly #files = new Map<string, OpenFile>();

  /** Keeps at most `limit` files that nobody uses. */
  constructor(readonly disk: Disk, readonly limit: number = 256) {}

  /** Files open now. */
  get size(): number {
    return this.#files.size;
  }

  /** Runs `read` with the file of `path`, opened if it is not. */
  async use<Result>(path: string, read: (open: OpenSegment) => Promise<Result>): Promise<Result> {
    const open = this.#files.get(path) ??
      { file: this.disk.open(path, "read"), index: null, users: 0, dropped: false };
    this.#files.delete(path);
    this.#files.set(path, open);
    open.users++;
    try {
      return await read(open);
    } finally {
      open.users--;
      if (open.dropped && open.users === 0) open.file.close();
      this.#trim();
    }
  }

  /** Forgets a file, because it is going away or is about to be written. */
  drop(path: string): void {
    const open = this.#files.get(path);
    if (open === undefined) return;
    this.#files.delete(path);
    open.dropped = true;
    if (open.users === 0) open.file.close();
  }

  #trim(): void {
    for (const [path, open] of this.#files) {
      if (this.#files.size <= this.limit) return;
      if (open.users > 0) continue;
      this.#files.delete(path);
      open.file.close();
    }
  }
}
