// Compaction of a derived log (spec/storage.md §14): what is still live below a cut is written
// again above it, then everything below goes. Rules: nothing is removed before what restates it is
// on the device; a write never waits for a pass; a pass that cannot finish leaves a longer log.

import type { SegmentLog } from "../log/segment_log.ts";
import { StorageError } from "../storage_error.ts";
import type { OrderedWrites } from "./ordered_writes.ts";
import type { Pace } from "./pace.ts";

/** A log is compacted when it holds more than this many times its live bytes. */
const WASTE_FACTOR = 4;

/** What is compacted. */
export interface Compactable {
  /** Writes again what is live below `cut`; `spend` after each step, stop when aborted. */
  copyBelow(cut: number, spend: (bytes: number) => Promise<void>): Promise<void>;
  /** Whether anything live still lies below `cut`. */
  holdsBelow(cut: number): boolean;
  /** Resolves when nobody reads a record any more that was replaced before the call. */
  readersGone(): Promise<unknown>;
}

/** What the compactions of one broker share. */
export interface CompactionEnvironment {
  readonly pace: Pace;
  /** Told why a pass of the log called `label` failed; it is tried again when the log has grown. */
  readonly onCompactionFailed: (label: string, error: unknown) => void;
  /** Compact logs larger than this; by default what spec/storage.md §14.1 says. */
  readonly compactionFloorBytes?: number;
}

/** Keeps one log from growing for ever. */
export class Compactor {
  /** Payload bytes of all records of the log. */
  logBytes = 0;
  /** Payload bytes of those that are live. */
  liveBytes = 0;
  /** Passes that removed what they set out to. */
  passes = 0;

  readonly #log: SegmentLog;
  readonly #floorBytes: number;
  readonly #environment: CompactionEnvironment;
  readonly #stop = new AbortController();
  #running: Promise<void> | null = null;
  /** After a pass that failed: size at which the next one is tried. */
  #retryBytes = 0;

  /** `floorBytes`: a smaller log is left alone, unless the environment says otherwise. */
  constructor(log: SegmentLog, floorBytes: number, environment: CompactionEnvironment) {
    this.#log = log;
    this.#floorBytes = environment.compactionFloorBytes ?? floorBytes;
    this.#environment = environment;
  }

  /** Starts a pass if one is due and none runs. */
  consider(target: Compactable, writes: OrderedWrites): void {
    const { logBytes, liveBytes } = this;
    if (logBytes <= this.#floorBytes || logBytes <= WASTE_FACTOR * liveBytes) return;
    if (this.#running !== null || logBytes < this.#retryBytes || this.#stop.signal.aborted) return;
    this.#running = this.#run(target, writes);
  }

  /** Resolves when no pass runs. */
  async idle(): Promise<void> {
    while (this.#running !== null) await this.#running;
  }

  /** Ends a pass at its next step and lets no other begin. */
  async stop(): Promise<void> {
    this.#stop.abort();
    await this.idle();
  }

  async #run(target: Compactable, writes: OrderedWrites): Promise<void> {
    this.#retryBytes = this.logBytes + this.#floorBytes;
    try {
      if (await this.#pass(target, writes)) {
        this.#retryBytes = 0;
        this.passes++;
      }
    } catch (error) {
      const closed = error instanceof StorageError && error.code === "closed";
      if (!closed) this.#environment.onCompactionFailed(this.#log.label, error);
    } finally {
      this.#running = null;
    }
    this.consider(target, writes);
  }

  async #pass(target: Compactable, writes: OrderedWrites): Promise<boolean> {
    const { signal } = this.#stop;
    const below = Promise.withResolvers<number>();
    // Handled below, but not when the log cannot be sealed.
    below.promise.catch(() => {});
    const cut = await writes.seal((failure) => {
      if (failure === null) below.resolve(this.logBytes);
      else below.reject(failure);
    });
    const bytesBelow = await below.promise;
    await target.copyBelow(cut, async (bytes) => {
      await this.#environment.pace.spend(bytes, signal);
      if (signal.aborted) {
        throw new StorageError("closed", `${this.#log.label}: compaction stopped`);
      }
    });
    if (target.holdsBelow(cut)) return false;
    await this.#log.flush();
    await target.readersGone();
    await this.#log.trimBefore(cut);
    this.logBytes -= bytesBelow;
    return true;
  }
}
