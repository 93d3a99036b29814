// The seam between the log and the file system: every call that touches a disk goes through it, so
// that a simulated disk can lose, tear, fill up and fail. Rule: nothing here promises durability
// but the three sync calls; a name (create, rename, unlink) is durable only after its directory's
// sync.

/** How a file is opened. `create` fails when it exists; `write` fails when it does not. */
export type OpenMode = "read" | "write" | "create";

/**
 * An open file without a cursor. Failures are `StorageError`s: `full` for no space or quota, `io`
 * for the rest.
 */
export interface DiskFile {
  /**
   * Writes at `position` from `bytes[start, end)` and returns how many bytes it wrote, which may be
   * fewer; synchronous because a write into the page cache is cheaper than a promise.
   */
  write(bytes: Uint8Array, start: number, end: number, position: number): number;
  /** Reads into `buffer` from `position`; resolves to how many bytes, 0 at the end. */
  read(buffer: Uint8Array, position: number): Promise<number>;
  /** The same at once, for bytes that are known to be few. */
  readSync(buffer: Uint8Array, position: number): number;
  /** Bytes in the file. */
  size(): number;
  /** Cuts the file to `length` bytes. */
  truncate(length: number): void;
  /** Waits until data and what is needed to read it back are on the device (`fdatasync`). */
  syncData(): Promise<void>;
  /** Waits until data and all metadata are on the device (`fsync`). */
  sync(): Promise<void>;
  /** Closes the file; twice does no harm. */
  close(): void;
}

/** What holds a process lock until released or until the process dies. */
export interface DiskLock {
  /** Lets another process in. */
  release(): void;
}

/** Files and directories. Paths are absolute and use `/`. */
export interface Disk {
  /** Opens a file. A missing one (or for `create` an existing one) is `io`. */
  open(path: string, mode: OpenMode): DiskFile;
  /**
   * Names of the files and directories in a directory, sorted; `null` when there is no such
   * directory.
   */
  list(path: string): string[] | null;
  /** Size of a file in bytes, or `null` when there is none. */
  fileSize(path: string): number | null;
  /** Creates a directory and those above it, each made durable. */
  makeDirectory(path: string): Promise<void>;
  /** Replaces `to` by `from`. */
  rename(from: string, to: string): void;
  /** Removes a file; a missing one is `io`. */
  unlink(path: string): void;
  /** Removes an empty directory. */
  removeDirectory(path: string): void;
  /** Makes what was created, renamed and removed in a directory durable. */
  syncDirectory(path: string): Promise<void>;
  /**
   * Takes the advisory lock of a file (created if missing) without waiting and writes `owner` into
   * it; `null` with nothing written when another holder has it. `holder` reads what the holder
   * wrote.
   */
  lock(path: string, owner: string): DiskLock | null;
  /** What the holder of a lock file wrote into it. */
  holder(path: string): string;
}
