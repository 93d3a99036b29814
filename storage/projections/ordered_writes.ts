// The write shape of everything that is derived from a log (spec/storage.md §13.6, §13.7): writes
// of one turn go to the log together, share its flush, and are applied in the order of their
// offsets. Rule: what the log refused, or may have lost, is never applied.

import type { NewRecord } from "../format/record.ts";
import type { SegmentLog } from "../log/segment_log.ts";
import { StorageError } from "../storage_error.ts";

/** Bounds of one write to the log; one record may exceed the second. */
const MAX_BATCH_RECORDS = 1024;
const MAX_BATCH_BYTES = 1024 * 1024;

/** One write on its way into the log and from there into an index. */
export interface Write {
  /**
   * Called once, in the order of `submit`, when everything before it is in the log. Answers the
   * payload of the record that gets `offset`, or `null`: there is nothing to write after all, and
   * neither `apply` nor `fail` follows.
   */
  prepare(offset: number): Uint8Array | null;
  /** The record is kept, and everything before it has been applied. */
  apply(offset: number): void;
  /** The record was refused, or it is unknown whether it is kept. Newest first. */
  fail(error: StorageError): void;
}

interface Batch {
  readonly first: number;
  readonly writes: readonly Write[];
  kept: boolean;
}

interface Waiter {
  readonly target: number;
  readonly done: (failure: StorageError | null) => void;
}

/** The writes of one log; nobody else appends to it. */
export class OrderedWrites {
  /** Every record below has been applied. */
  applied: number;

  readonly #log: SegmentLog;
  readonly #onApplied: () => void;
  #gathered: Write[] = [];
  /** In the log and not applied, oldest first. */
  #batches: Batch[] = [];
  #waiters: Waiter[] = [];
  /** The log makes a new segment: writes gather until it has. */
  #busy: Promise<void> | null = null;

  /** `onApplied` is called after writes were applied; `log` has been applied as far as it goes. */
  constructor(log: SegmentLog, onApplied: () => void) {
    this.#log = log;
    this.applied = log.tail;
    this.#onApplied = onApplied;
  }

  /** Takes a write in; it reaches the log at the end of the turn. */
  submit(write: Write): void {
    this.#gathered.push(write);
    if (this.#gathered.length === 1 && this.#busy === null) queueMicrotask(this.#stageGathered);
  }

  /** Calls `done` in the turn in which everything below `target` is applied or never will be. */
  whenApplied(target: number, done: (failure: StorageError | null) => void): void {
    if (this.applied >= target) return done(null);
    if (this.#log.failure !== null) return done(this.#log.failure);
    this.#waiters.push({ target, done });
  }

  /**
   * Seals the newest segment of the log and resolves to the first offset after it. `applied` is
   * called in the turn in which everything below has been applied and nothing from there on.
   */
  async seal(applied: (failure: StorageError | null) => void): Promise<number> {
    while (this.#busy !== null) await this.#busy;
    const rolling = this.#log.roll();
    this.#hold(rolling.then((cut) => this.whenApplied(cut, applied), () => {}));
    return await rolling;
  }

  readonly #stageGathered = (): void => {
    while (this.#busy === null && this.#gathered.length > 0) this.#stageBatch();
  };

  #stageBatch(): void {
    const first = this.#log.tail;
    const writes: Write[] = [];
    const records: NewRecord[] = [];
    const gathered = this.#gathered;
    let bytes = 0;
    let taken = 0;
    while (
      taken < gathered.length && records.length < MAX_BATCH_RECORDS && bytes < MAX_BATCH_BYTES
    ) {
      const write = gathered[taken++]!;
      const payload = write.prepare(first + records.length);
      if (payload === null) continue;
      bytes += payload.length;
      writes.push(write);
      records.push({ payload });
    }
    this.#gathered = gathered.slice(taken);
    if (records.length > 0) this.#stage({ first, writes, kept: false }, records);
  }

  #stage(batch: Batch, records: readonly NewRecord[]): void {
    try {
      const staged = this.#log.stage(records, batch.first);
      if (!(staged instanceof Promise)) return this.#commit(batch);
      this.#hold(staged.then(() => this.#commit(batch), (error) => this.#refused(batch, error)));
    } catch (error) {
      this.#refused(batch, error);
    }
  }

  /** The log took nothing of a batch; what waits for its records waits in vain. */
  #refused(batch: Batch, error: unknown): void {
    failAll(batch, error);
    this.#settleWaiters(batch.first, storageError(error));
  }

  /** Nothing is staged until `work`, which does not reject, is done. */
  #hold(work: Promise<void>): void {
    this.#busy = work.then(() => {
      this.#busy = null;
      this.#stageGathered();
    });
  }

  #commit(batch: Batch): void {
    this.#batches.push(batch);
    this.#log.commit({ next: batch.first + batch.writes.length }).then(() => {
      batch.kept = true;
      this.#apply();
    }, (error) => this.#lost(error));
  }

  #apply(): void {
    let done = 0;
    for (; this.#batches[done]?.kept; done++) {
      const { first, writes } = this.#batches[done]!;
      for (let at = 0; at < writes.length; at++) writes[at]!.apply(first + at);
      this.applied = first + writes.length;
      this.#settleWaiters();
    }
    if (done === 0) return;
    this.#batches.splice(0, done);
    this.#onApplied();
  }

  /** The log failed: whether any of these is on the device is known only after a restart. */
  #lost(error: unknown): void {
    this.#apply();
    const unsure = this.#batches;
    this.#batches = [];
    for (const batch of unsure.reverse()) failAll(batch, error);
    this.#settleWaiters(this.applied, storageError(error));
  }

  /** Answers who waits for no more than what is applied, and who waits for more than `lost`. */
  #settleWaiters(lost = Infinity, failure: StorageError | null = null): void {
    if (this.#waiters.length === 0) return;
    const waiting = this.#waiters;
    this.#waiters = [];
    for (const waiter of waiting) {
      if (waiter.target <= this.applied) waiter.done(null);
      else if (waiter.target > lost) waiter.done(failure);
      else this.#waiters.push(waiter);
    }
  }
}

function failAll({ writes }: Batch, error: unknown): void {
  const failure = storageError(error);
  for (let at = writes.length - 1; at >= 0; at--) writes[at]!.fail(failure);
}

function storageError(error: unknown): StorageError {
  if (error instanceof StorageError) return error;
  return new StorageError("io", String(error), { cause: error });
}
