// The disk of this machine. Rule: a failure becomes a `StorageError`: `full` when there is no room
// (ENOSPC, EDQUOT), `io` for everything else, with the system's own error as its cause.

import {
  close,
  closeSync,
  existsSync,
  fdatasync,
  fstatSync,
  fsync,
  ftruncateSync,
  mkdirSync,
  openSync,
  read,
  readdirSync,
  readFileSync,
  readSync,
  renameSync,
  rmdirSync,
  statSync,
  unlinkSync,
  writeSync,
} from "node:fs";
import { dirname } from "node:path";
import { StorageError } from "../storage_error.ts";
import type { Disk, DiskFile, DiskLock, OpenMode } from "./disk.ts";

const FLAGS: Readonly<Record<OpenMode, string>> = { read: "r", write: "r+", create: "wx+" };

/** What a failed call of the system is to a log. */
export function diskFailure(what: string, path: string, cause: unknown): StorageError {
  const code = (cause as { code?: string } | null)?.code;
  const kind = code === "ENOSPC" || code === "EDQUOT" ? "full" : "io";
  const reason = code ?? (cause instanceof Error ? cause.message : String(cause));
  return new StorageError(kind, `${what} ${path}: ${reason}`, { cause });
}

function attempt<Result>(what: string, path: string, call: () => Result): Result {
  try {
    return call();
  } catch (error) {
    throw diskFailure(what, path, error);
  }
}

type Callback = (error: Error | null) => void;

function settled(what: string, path: string, call: (done: Callback) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    call((error) => error === null ? resolve() : reject(diskFailure(what, path, error)));
  });
}

class RealFile implements DiskFile {
  #open = true;

  constructor(readonly path: string, readonly descriptor: number) {}

  write(bytes: Uint8Array, start: number, end: number, position: number): number {
    return attempt(
      "writing",
      this.path,
      () => writeSync(this.descriptor, bytes, start, end - start, position),
    );
  }

  read(buffer: Uint8Array, position: number): Promise<number> {
    return new Promise((resolve, reject) => {
      read(this.descriptor, buffer, 0, buffer.length, position, (error, count) => {
        if (error === null) resolve(count);
        else reject(diskFailure("reading", this.path, error));
      });
    });
  }

  readSync(buffer: Uint8Array, position: number): number {
    return attempt(
      "reading",
      this.path,
      () => readSync(this.descriptor, buffer, 0, buffer.length, position),
    );
  }

  size(): number {
    return attempt("looking at", this.path, () => fstatSync(this.descriptor).size);
  }

  truncate(length: number): void {
    attempt("cutting", this.path, () => ftruncateSync(this.descriptor, length));
  }

  syncData(): Promise<void> {
    return settled("syncing", this.path, (done) => fdatasync(this.descriptor, done));
  }

  sync(): Promise<void> {
    return settled("syncing", this.path, (done) => fsync(this.descriptor, done));
  }

  close(): void {
    if (!this.#open) return;
    this.#open = false;
    attempt("closing", this.path, () => closeSync(this.descriptor));
  }
}

/** The file system of this machine. */
export class RealDisk implements Disk {
  open(path: string, mode: OpenMode): DiskFile {
    return new RealFile(path, attempt("opening", path, () => openSync(path, FLAGS[mode])));
  }

  list(path: string): string[] | null {
    if (!statSync(path, { throwIfNoEntry: false })?.isDirectory()) return null;
    return attempt("listing", path, () => readdirSync(path).sort());
  }

  fileSize(path: string): number | null {
    const stats = attempt("looking at", path, () => statSync(path, { throwIfNoEntry: false }));
    return stats?.isFile() ? stats.size : null;
  }

  async makeDirectory(path: string): Promise<void> {
    if (existsSync(path)) return;
    const parent = dirname(path);
    await this.makeDirectory(parent);
    attempt("making", path, () => mkdirSync(path, { recursive: true }));
    await this.syncDirectory(parent);
  }

  rename(from: string, to: string): void {
    attempt("renaming", from, () => renameSync(from, to));
  }

  unlink(path: string): void {
    attempt("removing", path, () => unlinkSync(path));
  }

  removeDirectory(path: string): void {
    attempt("removing", path, () => rmdirSync(path));
  }

  async syncDirectory(path: string): Promise<void> {
    const descriptor = attempt("opening", path, () => openSync(path, "r"));
    try {
      await settled("syncing", path, (done) => fsync(descriptor, done));
    } finally {
      close(descriptor, () => {});
    }
  }

  lock(path: string, owner: string): DiskLock | null {
    return attempt("locking", path, () => {
      const file = Deno.openSync(path, { read: true, write: true, create: true });
      if (!file.tryLockSync(true)) {
        file.close();
        return null;
      }
      file.truncateSync(0);
      file.writeSync(new TextEncoder().encode(owner));
      return { release: () => file.close() };
    });
  }

  holder(path: string): string {
    return attempt("reading", path, () => readFileSync(path, "utf8"));
  }
}
