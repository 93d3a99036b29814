// One shard of a cache's counters read from its log (spec/storage.md §13.2, spec/semantics.md §7):
// the sum of each key, built by replaying the log and kept in step with it. Rule: a sum is what is
// kept adds up to, over restarts and compactions, and never leaves 64 bits.

import { decodeCounterRecord, encodeCounterRecord } from "../format/counter_record.ts";
import { RecordKind } from "../format/record.ts";
import type { LogRecord } from "../format/record.ts";
import type { SegmentLog } from "../log/segment_log.ts";
import { StorageError } from "../storage_error.ts";
import { Compactor } from "./compactor.ts";
import type { Compactable, CompactionEnvironment } from "./compactor.ts";
import { OrderedWrites } from "./ordered_writes.ts";
import type { Write } from "./ordered_writes.ts";

/** A smaller log is not compacted (spec/storage.md §14.1). */
const FLOOR_BYTES = 64 * 1024;
const MIN_SUM = -(2n ** 63n);
const MAX_SUM = 2n ** 63n - 1n;
/** Checkpoints that one step of a compaction writes. */
const CHECKPOINTS_PER_STEP = 64;

interface Counter {
  sum: bigint;
  /** Offset of the oldest record that the sum needs. */
  since: number;
  /** Payload bytes of one record of it. */
  readonly bytes: number;
}

/** A shard of counters on a log; made by `CounterLog.open`. */
export class CounterLog implements Compactable {
  readonly #log: SegmentLog;
  readonly #counters = new Map<string, Counter>();
  /** Sum of each key with everything that is in the log. */
  readonly #staged = new Map<string, CounterWrite>();
  readonly #writes: OrderedWrites;
  readonly #compactor: Compactor;

  private constructor(log: SegmentLog, environment: CompactionEnvironment) {
    this.#log = log;
    this.#compactor = new Compactor(log, FLOOR_BYTES, environment);
    this.#writes = new OrderedWrites(log, () => this.#compactor.consider(this, this.#writes));
  }

  /**
   * Builds the sums of an open log, to which nobody else appends. `StorageError` `corruption` when
   * a record is no counter record.
   */
  static async open(log: SegmentLog, environment: CompactionEnvironment): Promise<CounterLog> {
    const counters = new CounterLog(log, environment);
    for (let from = log.base; from < log.tail;) {
      const { records, next } = await log.read(from);
      for (const record of records) counters.#replay(record);
      from = next;
    }
    counters.#compactor.consider(counters, counters.#writes);
    return counters;
  }

  /** Keys that were ever added to. */
  get size(): number {
    return this.#counters.size;
  }

  /** Compactions that removed something. */
  get compactions(): number {
    return this.#compactor.passes;
  }

  /** The sum of a key; `null`: never added to. */
  get(key: string): bigint | null {
    return this.#counters.get(key)?.sum ?? null;
  }

  /** The sum after every add that was asked for before: waits until that is kept. */
  getInOrder(key: string): Promise<bigint | null> {
    return new Promise((resolve, reject) => {
      const prepare = (): null => {
        const staged = this.#staged.get(key);
        if (staged === undefined) resolve(this.get(key));
        else staged.onSettled((error) => error === null ? resolve(staged.sum) : reject(error));
        return null;
      };
      this.#writes.submit({ prepare, apply() {}, fail() {} });
    });
  }

  /**
   * Adds to a key. Resolves to the sum with it when it is kept, or to `null` when that would leave
   * 64 bits: then nothing is written. Rejects with a `StorageError`.
   */
  add(key: string, delta: bigint): Promise<bigint | null> {
    return this.#write(key, delta);
  }

  /** Resolves when no compaction runs. */
  compacted(): Promise<void> {
    return this.#compactor.idle();
  }

  /** Ends compaction; the log is closed by whoever opened it. */
  close(): Promise<void> {
    return this.#compactor.stop();
  }

  /** For compactions. */
  async copyBelow(cut: number, spend: (bytes: number) => Promise<void>): Promise<void> {
    const below = [...this.#counters].filter(([, { since }]) => since < cut);
    for (let at = 0; at < below.length; at += CHECKPOINTS_PER_STEP) {
      const step = below.slice(at, at + CHECKPOINTS_PER_STEP);
      await Promise.all(step.map(([key]) => this.#write(key, null)));
      await spend(step.reduce((bytes, [, counter]) => bytes + counter.bytes, 0));
    }
  }

  /** For compactions. */
  holdsBelow(cut: number): boolean {
    for (const { since } of this.#counters.values()) if (since < cut) return true;
    return false;
  }

  /** For compactions: sums are in memory. */
  readersGone(): Promise<unknown> {
    return Promise.resolve();
  }

  #write(key: string, delta: bigint | null): Promise<bigint | null> {
    return new Promise((resolve, reject) => {
      const newest = (): bigint => this.#staged.get(key)?.sum ?? this.#counters.get(key)?.sum ?? 0n;
      const apply = (write: CounterWrite, offset: number): void => {
        const restated = delta === null;
        this.#take(key, write.sum, offset, restated, write.bytes);
      };
      this.#writes.submit(
        new CounterWrite({ key, delta, newest, apply, staged: this.#staged, resolve, reject }),
      );
    });
  }

  #replay(record: LogRecord): void {
    const { kind, payload, offset } = record;
    if (kind === RecordKind.generationStart) return;
    const change = decodeCounterRecord(payload);
    if (typeof change === "string") {
      const where = `${this.#log.label}: offset ${offset}`;
      throw new StorageError("corruption", `${where} is no counter record: ${change}`);
    }
    const { key, op, amount } = change;
    const sum = op === "checkpoint" ? amount : (this.get(key) ?? 0n) + amount;
    this.#take(key, sum, offset, op === "checkpoint", payload.length);
  }

  #take(key: string, sum: bigint, offset: number, restated: boolean, bytes: number): void {
    this.#compactor.logBytes += bytes;
    const counter = this.#counters.get(key);
    if (counter === undefined) {
      this.#counters.set(key, { sum, since: offset, bytes });
      this.#compactor.liveBytes += bytes;
      return;
    }
    counter.sum = sum;
    if (restated) counter.since = offset;
  }
}

interface CounterRequest {
  readonly key: string;
  /** `null`: a checkpoint of the sum. */
  readonly delta: bigint | null;
  /** The sum with everything that is in the log. */
  readonly newest: () => bigint;
  readonly apply: (write: CounterWrite, offset: number) => void;
  readonly staged: Map<string, CounterWrite>;
  readonly resolve: (sum: bigint | null) => void;
  readonly reject: (error: StorageError) => void;
}

/** One record on its way into a counter log. */
class CounterWrite implements Write {
  /** The sum with it. */
  sum = 0n;
  /** Of its payload. */
  bytes = 0;
  readonly #request: CounterRequest;
  #previous: CounterWrite | null = null;
  #settled = false;
  #listeners: ((error: StorageError | null) => void)[] | null = null;

  constructor(request: CounterRequest) {
    this.#request = request;
  }

  /** Calls `listener` when it is kept, or with why it may not be. */
  onSettled(listener: (error: StorageError | null) => void): void {
    (this.#listeners ??= []).push(listener);
  }

  prepare(): Uint8Array | null {
    const { key, delta, newest, staged, resolve } = this.#request;
    this.sum = newest() + (delta ?? 0n);
    if (this.sum < MIN_SUM || this.sum > MAX_SUM) {
      resolve(null);
      return null;
    }
    this.#previous = staged.get(key) ?? null;
    staged.set(key, this);
    const payload = encodeCounterRecord(
      delta === null
        ? { op: "checkpoint", key, amount: this.sum }
        : { op: "delta", key, amount: delta },
    );
    this.bytes = payload.length;
    return payload;
  }

  apply(offset: number): void {
    this.#settle(null);
    this.#request.apply(this, offset);
    this.#request.resolve(this.sum);
  }

  fail(error: StorageError): void {
    this.#settle(error);
    const { staged, key, reject } = this.#request;
    const previous = this.#previous;
    if (previous !== null && !previous.#settled) staged.set(key, previous);
    reject(error);
  }

  #settle(error: StorageError | null): void {
    const { staged, key } = this.#request;
    this.#settled = true;
    if (staged.get(key) === this) staged.delete(key);
    this.#listeners?.forEach((listener) => listener(error));
  }
}
