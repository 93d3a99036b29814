// A file of the simulated disk: what it holds, what of that is on the device, and the changes in
// between. Rule: a sync makes durable what was written before it began, and nothing else.

import { StorageError } from "../storage_error.ts";
import type { DiskFile } from "./disk.ts";

/** A change that is not durable yet. */
export type PendingChange =
  | { readonly kind: "write"; readonly position: number; readonly bytes: Uint8Array }
  | { readonly kind: "truncate"; readonly length: number };

/** What a file holds. */
export interface Content {
  bytes: Uint8Array;
  /** What is on the device for certain. */
  durable: Uint8Array;
  /** What turns `durable` into `bytes`. */
  pending: PendingChange[];
}

/**
 * What a power loss leaves of unsynced data: nothing; all; all but half of the last write; all, the
 * last write being zeroes from the next sector on; the sizes with zeroes in them.
 */
export type DataShape = "lost" | "kept" | "torn" | "zeroed" | "sized";

const SECTOR_BYTES = 512;

/** The bytes that a power loss leaves of a file. */
export function surviving({ durable, pending }: Content, shape: DataShape): Uint8Array {
  if (shape === "lost") return durable.slice();
  let bytes = durable;
  for (const [at, change] of pending.entries()) {
    const last = at === pending.length - 1;
    bytes = apply(bytes, change.kind === "write" ? damaged(change, shape, last) : change);
  }
  return bytes.slice();
}

function damaged(
  change: Extract<PendingChange, { kind: "write" }>,
  shape: DataShape,
  last: boolean,
): PendingChange {
  const { kind, position, bytes } = change;
  if (shape === "sized") return { kind, position, bytes: new Uint8Array(bytes.length) };
  if (!last || shape === "kept") return change;
  if (shape === "torn") return { kind, position, bytes: bytes.subarray(0, bytes.length >> 1) };
  const zeroed = bytes.slice();
  const sector = Math.ceil((position + 1) / SECTOR_BYTES) * SECTOR_BYTES;
  return { kind, position, bytes: zeroed.fill(0, Math.min(sector - position, bytes.length)) };
}

function apply(bytes: Uint8Array, change: PendingChange): Uint8Array {
  if (change.kind === "truncate") return bytes.slice(0, change.length);
  const end = change.position + change.bytes.length;
  const changed = new Uint8Array(Math.max(bytes.length, end));
  changed.set(bytes);
  changed.set(change.bytes, change.position);
  return changed;
}

/** What a file asks its disk. */
export interface FileHost {
  /** Counts an operation that is about to take place, or refuses it. */
  step(operation: "write" | "truncate" | "sync"): void;
  /** The failure that a write is due to meet after some of its bytes. */
  takeFault(
    operation: "write",
    partial: true,
  ): { readonly code: "io" | "full"; readonly afterBytes?: number } | null;
  /** Bytes that may still be written. */
  roomBytes(): number;
  /** Most bytes that one write takes. */
  readonly maxWriteBytes: number;
  /** Awaited before a sync takes effect. */
  readonly beforeSync: (() => Promise<void>) | null;
}

/** An open file of a simulated disk. */
export class SimulatedFile implements DiskFile {
  #open = true;

  /** Opened by `SimulatedDisk.open`. */
  constructor(
    readonly path: string,
    readonly content: Content,
    readonly disk: FileHost,
  ) {}

  write(bytes: Uint8Array, start: number, end: number, position: number): number {
    this.#check();
    this.disk.step("write");
    const fault = this.disk.takeFault("write", true);
    const room = this.disk.roomBytes() + Math.max(0, this.content.bytes.length - position);
    const most = Math.min(
      end - start,
      this.disk.maxWriteBytes,
      room,
      fault?.afterBytes ?? Infinity,
    );
    const written = Math.max(0, most);
    if (written > 0) {
      this.#change({ kind: "write", position, bytes: bytes.slice(start, start + written) });
    }
    if (fault !== null) throw new StorageError(fault.code, "a simulated write failed");
    if (room < end - start) throw new StorageError("full", "the simulated disk is full");
    return written;
  }

  read(buffer: Uint8Array, position: number): Promise<number> {
    return Promise.resolve(this.readSync(buffer, position));
  }

  readSync(buffer: Uint8Array, position: number): number {
    this.#check();
    const bytes = this.content.bytes.subarray(position, position + buffer.length);
    buffer.set(bytes);
    return bytes.length;
  }

  size(): number {
    return this.content.bytes.length;
  }

  truncate(length: number): void {
    this.#check();
    this.disk.step("truncate");
    this.#change({ kind: "truncate", length });
  }

  syncData(): Promise<void> {
    return this.sync();
  }

  async sync(): Promise<void> {
    this.#check();
    const { content } = this;
    const { bytes } = content;
    const covered = content.pending.length;
    await this.disk.beforeSync?.();
    this.disk.step("sync");
    content.durable = bytes;
    content.pending.splice(0, covered);
  }

  close(): void {
    this.#open = false;
  }

  #change(change: PendingChange): void {
    this.content.bytes = apply(this.content.bytes, change);
    this.content.pending.push(change);
  }

  #check(): void {
    if (!this.#open) throw new StorageError("io", `${this.path}: the file is closed`);
  }
}
