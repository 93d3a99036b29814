// A disk in memory that keeps apart what was written and what was synced, so that a test can cut
// the power after any single operation and see what is left, fill it up, or make it fail. Rule: it
// is deterministic; time and chance come from the test.

import { StorageError } from "../storage_error.ts";
import type { Disk, DiskFile, DiskLock, OpenMode } from "./disk.ts";
import { SimulatedFile, surviving } from "./simulated_file.ts";
import type { Content, DataShape, FileHost } from "./simulated_file.ts";

/** What changes a disk and so can be the last thing that it did. */
export type DiskOperation =
  | "create"
  | "write"
  | "truncate"
  | "sync"
  | "rename"
  | "unlink"
  | "makeDirectory"
  | "removeDirectory"
  | "syncDirectory";

/**
 * The power went: thrown by the operation that did not take place any more, and by all after it.
 */
export class SimulatedCrash extends Error {
  override readonly name = "SimulatedCrash";

  /** `operation` is what did not take place. */
  constructor(readonly operation: DiskOperation) {
    super(`the power went before a ${operation}`);
  }
}

/** What a power loss leaves of what was not synced. */
export interface CrashShape {
  /** Files created, renamed and removed since their directory's sync. */
  readonly names: "lost" | "kept";
  readonly data: DataShape;
}

/** Every combination of what a power loss may leave. */
export const CRASH_SHAPES: readonly CrashShape[] = (["lost", "kept"] as const).flatMap((names) =>
  (["lost", "kept", "torn", "zeroed", "sized"] as const).map((data) => ({ names, data }))
);

/** A failure to come. */
export interface Fault {
  readonly operation: DiskOperation;
  readonly code: "io" | "full";
  /** A write lands this many bytes before it fails. */
  readonly afterBytes?: number;
}

/** A disk in memory. */
export class SimulatedDisk implements Disk, FileHost {
  /** Most bytes that all files together may hold. */
  capacityBytes = Infinity;
  /** Most bytes that one write takes. */
  maxWriteBytes = Infinity;
  /** Awaited before a file's sync takes effect. */
  beforeSync: (() => Promise<void>) | null = null;
  /** Operations that changed the disk so far. */
  operations = 0;
  /** Operation after which the power goes. */
  #lastOperation = Infinity;
  #crashed: SimulatedCrash | null = null;
  #faults: Fault[] = [];
  #names = new Map<string, Content>();
  #durableNames = new Map<string, Content>();
  #directories = new Set<string>(["/"]);
  readonly #locks = new Map<string, string>();

  /** The power goes after `operations` more operations; `Infinity` for never. */
  crashAfter(operations: number): void {
    this.#lastOperation = this.operations + operations;
  }

  /** Whether the power has gone. */
  get crashed(): boolean {
    return this.#crashed !== null;
  }

  /** The next operation of its kind fails; several wait in turn. */
  fail(fault: Fault): void {
    this.#faults.push(fault);
  }

  /** What a restart finds after the power went now. */
  afterCrash(shape: CrashShape): SimulatedDisk {
    const after = new SimulatedDisk();
    const names = shape.names === "kept" ? this.#names : this.#durableNames;
    for (const [path, content] of names) after.setBytes(path, surviving(content, shape.data));
    after.#directories = new Set(this.#directories);
    return after;
  }

  /** Bytes of a file as they are now. */
  bytes(path: string): Uint8Array {
    return this.#content(path).bytes.slice();
  }

  /** Puts a file there, durably. */
  setBytes(path: string, bytes: Uint8Array): void {
    const content: Content = { bytes, durable: bytes.slice(), pending: [] };
    this.#names.set(path, content);
    this.#durableNames.set(path, content);
  }

  /** Paths of all files, sorted. */
  paths(): string[] {
    return [...this.#names.keys()].sort();
  }

  open(path: string, mode: OpenMode): DiskFile {
    this.#alive("create");
    const known = this.#names.get(path);
    if (mode !== "create") return new SimulatedFile(path, this.#content(path), this);
    if (known !== undefined) throw new StorageError("io", `creating ${path}: EEXIST`);
    if (!this.#directories.has(parentOf(path))) {
      throw new StorageError("io", `creating ${path}: ENOENT`);
    }
    this.step("create");
    const content: Content = { bytes: new Uint8Array(0), durable: new Uint8Array(0), pending: [] };
    this.#names.set(path, content);
    return new SimulatedFile(path, content, this);
  }

  list(path: string): string[] | null {
    if (!this.#directories.has(path)) return null;
    const all = [...this.#names.keys(), ...this.#directories];
    return all.filter((other) => other !== "/" && parentOf(other) === path)
      .map((other) => other.slice(other.lastIndexOf("/") + 1)).sort();
  }

  fileSize(path: string): number | null {
    return this.#names.get(path)?.bytes.length ?? null;
  }

  async makeDirectory(path: string): Promise<void> {
    if (this.#directories.has(path)) return;
    await this.makeDirectory(parentOf(path));
    this.step("makeDirectory");
    this.#directories.add(path);
  }

  rename(from: string, to: string): void {
    const content = this.#content(from);
    this.step("rename");
    this.#names.delete(from);
    this.#names.set(to, content);
  }

  unlink(path: string): void {
    this.#content(path);
    this.step("unlink");
    this.#names.delete(path);
  }

  removeDirectory(path: string): void {
    if (!this.#directories.has(path) || this.list(path)!.length > 0) {
      throw new StorageError("io", `removing ${path}: not an empty directory`);
    }
    this.step("removeDirectory");
    this.#directories.delete(path);
  }

  async syncDirectory(path: string): Promise<void> {
    this.step("syncDirectory");
    await null;
    const inside = (file: string) => parentOf(file) === path;
    for (const file of [...this.#durableNames.keys()].filter(inside)) {
      this.#durableNames.delete(file);
    }
    for (const [file, content] of this.#names) {
      if (inside(file)) this.#durableNames.set(file, content);
    }
  }

  lock(path: string, owner: string): DiskLock | null {
    if (this.#locks.has(path)) return null;
    if (!this.#names.has(path)) this.setBytes(path, new Uint8Array(0));
    this.#locks.set(path, owner);
    return { release: () => this.#locks.delete(path) };
  }

  holder(path: string): string {
    return this.#locks.get(path) ?? "";
  }

  /** Counts an operation that is about to take place, or refuses it; for the disk's own files. */
  step(operation: DiskOperation): void {
    this.#alive(operation);
    if (this.operations >= this.#lastOperation) {
      this.#crashed = new SimulatedCrash(operation);
      throw this.#crashed;
    }
    this.operations++;
    const fault = this.takeFault(operation, false);
    if (fault !== null) throw new StorageError(fault.code, `a simulated ${operation} failed`);
  }

  /** The failure that is due for `operation`; for the disk's own files. */
  takeFault(operation: DiskOperation, partial: boolean): Fault | null {
    const at = this.#faults.findIndex((fault) =>
      fault.operation === operation && (fault.afterBytes !== undefined) === partial
    );
    return at < 0 ? null : this.#faults.splice(at, 1)[0]!;
  }

  /** Bytes that may still be written; for the disk's own files. */
  roomBytes(): number {
    if (this.capacityBytes === Infinity) return Infinity;
    let used = 0;
    for (const content of new Set(this.#names.values())) used += content.bytes.length;
    return this.capacityBytes - used;
  }

  #alive(operation: DiskOperation): void {
    if (this.#crashed !== null) throw new SimulatedCrash(operation);
  }

  #content(path: string): Content {
    const content = this.#names.get(path);
    if (content === undefined) throw new StorageError("io", `${path}: ENOENT`);
    return content;
  }
}

function parentOf(path: string): string {
  return path.slice(0, path.lastIndexOf("/")) || "/";
}
