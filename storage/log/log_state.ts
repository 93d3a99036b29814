// What an open log holds, for the files of this folder that work on it. Rule: `sealed` and `active`
// together cover every offset in [base, tail) once, in order (README S1).

import { StorageError, TrimmedError } from "../storage_error.ts";
import { GroupCommit } from "./group_commit.ts";
import type { MarkFile } from "./mark_file.ts";
import type { ProducerTable } from "../producers/producer_table.ts";
import type { ActiveSegment, Segment } from "./segment.ts";
import type { LogEnvironment } from "./settings.ts";

/** The segments of an open log and what is known of them. */
export class LogState {
  /** Segments that are not written to any more, oldest first; each holds a record or more. */
  sealed: Segment[];
  active: ActiveSegment;
  /** Segments that readers have lost and that are still to be unlinked, oldest first. */
  condemned: Segment[] = [];
  /** Why the log takes nothing any more; cleared only by opening it again. */
  failure: StorageError | null = null;
  closed = false;
  /** Id of the next segment file; no id is used twice while the log is open. */
  nextId: number;
  /** Counts truncations and resets, so that a read knows that it was overtaken. */
  cuts = 0;
  /** The sync that runs on the active file. */
  syncing: Promise<void> | null = null;
  /** A roll or a cut at work: no sync may begin. */
  restructuring: Promise<void> | null = null;
  readonly commits: GroupCommit;
  /** What the records say of idempotent producers; `null`: nobody asked to know. */
  producers: ProducerTable | null = null;

  /** A log whose bytes are all on the device. */
  constructor(
    readonly label: string,
    readonly directory: string,
    readonly environment: LogEnvironment,
    readonly mark: MarkFile,
    sealed: Segment[],
    active: ActiveSegment,
  ) {
    this.sealed = sealed;
    this.active = active;
    this.nextId = active.id + 1;
    this.commits = new GroupCommit(active.next, () => this.sync());
  }

  /** Offset of the next record. */
  get tail(): number {
    return this.active.next;
  }

  /** The oldest offset that can be read; the tail when there is none. */
  get base(): number {
    return this.sealed[0]?.base ?? this.active.base;
  }

  /** Bytes of all segment files. */
  get bytes(): number {
    let sum = this.active.bytes;
    for (const segment of this.sealed) sum += segment.bytes;
    return sum;
  }

  /** End of what may be read: the tail, or on a failed log what is known to be durable. */
  get readable(): number {
    return this.failure === null ? this.tail : Math.min(this.tail, this.commits.durable);
  }

  /** Refuses when the log was closed or has failed. */
  check(): void {
    if (this.closed) throw new StorageError("closed", `${this.label}: the log is closed`);
    if (this.failure !== null) throw this.failure;
  }

  /** Fails the log for good: what it would answer from now on could not be believed. */
  poison(what: string, cause: unknown): StorageError {
    const reason = cause instanceof Error ? cause.message : String(cause);
    this.failure ??= new StorageError("sync_failed", `${this.label}: ${what}: ${reason}`, {
      cause,
    });
    this.commits.fail(this.failure);
    return this.failure;
  }

  /** The segment that holds `offset`, which lies in [base, tail). */
  segmentOf(offset: number): Segment {
    const { sealed, active } = this;
    if (offset >= active.base) return active;
    let low = 0;
    let high = sealed.length;
    while (high - low > 1) {
      const middle = (low + high) >>> 1;
      if (sealed[middle]!.base <= offset) low = middle;
      else high = middle;
    }
    return sealed[low]!;
  }

  /** Refuses an offset that is no longer held. */
  checkHeld(offset: number): void {
    if (offset < this.base) throw new TrimmedError(this.label, offset, this.base);
  }

  /** Makes everything written so far durable; resolves to the bound. A failure poisons the log. */
  async sync(): Promise<number> {
    while (this.restructuring !== null) await this.restructuring;
    this.check();
    const { active, environment } = this;
    const { id, next, bytes } = active;
    if (next <= this.commits.durable) return next;
    const appends = next - this.commits.durable;
    this.syncing = active.file.syncData();
    try {
      await this.syncing;
    } catch (error) {
      environment.counters.syncFailures++;
      throw this.poison("a flush failed", error);
    } finally {
      this.syncing = null;
    }
    environment.counters.syncs++;
    environment.counters.syncedRecords += appends;
    this.mark.advance({ segment: id, syncedBytes: bytes });
    return next;
  }

  /** Runs a roll or a cut while no sync runs and none can begin. */
  async restructure<Result>(work: () => Promise<Result>): Promise<Result> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.restructuring = promise;
    try {
      // Its failure is its own caller's to hear.
      await this.syncing?.catch(() => {});
      this.check();
      return await work();
    } finally {
      this.restructuring = null;
      resolve();
    }
  }
}
