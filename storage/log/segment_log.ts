// One append-only log: segments in a directory, appended to in batches, read by offset, made
// durable in groups (spec/storage.md §6-§9). Rules: an offset names one record for ever; `commit`
// resolves only when the mode's promise is kept; an operation that failed either changed nothing or
// says, by poisoning the log, that its outcome is known only after the next open.

import { checkLogSettings } from "./settings.ts";
import type { LogEnvironment } from "./settings.ts";
import {
  encodeRecord,
  kindOf,
  MAX_PAYLOAD_BYTES,
  RecordKind,
  recordSize,
  versionFor,
} from "../format/record.ts";
import type { NewRecord } from "../format/record.ts";
import { applyPlan, planDirectory } from "../recovery/recover.ts";
import type { RecoveryPlan } from "../recovery/recovery_plan.ts";
import { OffsetMismatchError, StorageError } from "../storage_error.ts";
import { resetLog, truncateLog } from "./cut.ts";
import { readLog } from "./log_read.ts";
import type { LogPage, ReadLimits } from "./log_read.ts";
import { LogState } from "./log_state.ts";
import { MarkFile } from "./mark_file.ts";
import { OperationQueue } from "./operation_queue.ts";
import { openProducers } from "./producer_state.ts";
import type { ProducerTable } from "../producers/producer_table.ts";
import { condemn, countBelow, countExpired, removeCondemned } from "./retention.ts";
import type { RetentionPolicy } from "./retention.ts";
import { rollSegment } from "./roll.ts";
import { createSegment, segmentOf, writeAll } from "./segment.ts";

/** Appends that need an older segment than this carry no producer marks. */
const MARKS_VERSION = versionFor(RecordKind.batchStart);

/** Records that are written and may not be durable yet. */
export interface StagedAppend {
  /** Offset of the first record. */
  readonly first: number;
  /** Offset after the last one: what `commit` waits for. */
  readonly next: number;
}

/** An open log; made by `SegmentLog.open`. */
export class SegmentLog {
  readonly #state: LogState;
  readonly #operations = new OperationQueue();
  #removal: Promise<void> = Promise.resolve();
  #closing: Promise<void> | null = null;
  #change: PromiseWithResolvers<void> | null = null;

  private constructor(
    state: LogState,
    /** What opening the log had to do to it. */
    readonly recovery: Pick<RecoveryPlan, "removals" | "cuts">,
  ) {
    this.#state = state;
  }

  /**
   * Recovers the log of a directory, made if it is missing, and opens it. `label` names it in
   * errors; a new log begins at offset `base`. With `producers` it keeps account of idempotent
   * producers. Corruption is refused with `CorruptionError`.
   */
  static async open(
    environment: LogEnvironment,
    directory: string,
    label: string,
    base = 0,
    producers = false,
  ): Promise<SegmentLog> {
    const { disk, settings, counters, nowMicros } = environment;
    checkLogSettings(settings);
    await disk.makeDirectory(directory);
    const plan = await planDirectory(disk, directory, settings, label);
    await applyPlan(disk, directory, plan, counters);
    const { newest } = plan;
    const active = newest === null
      ? await createSegment(disk, {
        directory,
        id: 0,
        version: 3,
        base,
        createdAtMicros: nowMicros(),
        indexSpacingBytes: settings.indexSpacingBytes,
      })
      : {
        ...segmentOf(newest, directory),
        index: newest.index!,
        file: disk.open(segmentOf(newest, directory).path, "write"),
      };
    let mark: MarkFile | null = null;
    try {
      // What a killed process left in the page cache is vouched for only after a sync.
      await active.file.sync();
      await disk.syncDirectory(directory);
      mark = await MarkFile.open(disk, directory, {
        segment: active.id,
        syncedBytes: active.bytes,
      });
      const sealed = plan.sealed.map((found) => segmentOf(found, directory));
      const holding = sealed.filter(({ base, next }) => next > base);
      const state = new LogState(label, directory, environment, mark, holding, active);
      state.condemned = sealed.filter(({ base, next }) => next === base);
      if (producers) await openProducers(state, newest?.firstMark ?? null);
      return new SegmentLog(state, { removals: plan.removals, cuts: plan.cuts });
    } catch (error) {
      active.file.close();
      await mark?.close().catch(() => {});
      throw error;
    }
  }

  /** What the log is called in errors. */
  get label(): string {
    return this.#state.label;
  }

  /** Offset of the next record. */
  get tail(): number {
    return this.#state.tail;
  }

  /** The oldest offset that is held; the tail when there is none. */
  get base(): number {
    return this.#state.base;
  }

  /** Every record below is on the device. */
  get durable(): number {
    return this.#state.commits.durable;
  }

  /** End of what may be read: the tail, or on a failed log what is known to be durable. */
  get readable(): number {
    return this.#state.readable;
  }

  /** What the records say of idempotent producers; `null` when the log was not opened to know. */
  get producers(): ProducerTable | null {
    return this.#state.producers;
  }

  /** Bytes of all segment files. */
  get bytes(): number {
    return this.#state.bytes;
  }

  /** Segment files. */
  get segments(): number {
    return this.#state.sealed.length + 1;
  }

  /** Why the log takes nothing any more; `null` while it is well. */
  get failure(): StorageError | null {
    return this.#state.failure;
  }

  /**
   * Writes `records` at consecutive offsets, in one write, without waiting for the device. The
   * answer comes at once unless a new segment has to be made first. With `at` only if that is the
   * tail (`OffsetMismatchError`). Errors: `full` and `io` (nothing was written), `too_large`,
   * `invalid_range` (no records), `closed`, `sync_failed` (poisoned).
   */
  stage(records: readonly NewRecord[], at?: number): StagedAppend | Promise<StagedAppend> {
    let size = 0;
    let version = 0;
    for (const record of records) {
      const { length } = record.payload;
      if (length > MAX_PAYLOAD_BYTES) {
        const limit = `${MAX_PAYLOAD_BYTES} bytes at most`;
        throw new StorageError("too_large", `${this.label}: a record of ${length} bytes; ${limit}`);
      }
      size += recordSize(record);
      version = Math.max(version, versionFor(kindOf(record)));
    }
    if (records.length === 0) {
      throw new StorageError("invalid_range", `${this.label}: an append of no records`);
    }
    return this.#operations.run(() => this.#stage(records, size, version, at));
  }

  /** Resolves when the mode's promise for everything below `next` is kept. */
  commit({ next }: Pick<StagedAppend, "next">): Promise<void> {
    const { environment, commits, failure } = this.#state;
    if (environment.settings.fsync === "on_commit") return commits.wait(next);
    return failure === null ? Promise.resolve() : Promise.reject(failure);
  }

  /** Stages and commits. */
  async append(records: readonly NewRecord[], at?: number): Promise<StagedAppend> {
    const staged = await this.stage(records, at);
    await this.commit(staged);
    return staged;
  }

  /** Makes everything written so far durable, whatever the mode; resolves to the bound. */
  async flush(): Promise<number> {
    this.#state.check();
    await this.#state.commits.wait(this.tail);
    return this.durable;
  }

  /** Reads from `start` on (spec/storage.md §9); generation starts and commits come as stored. */
  read(start: number, limits: ReadLimits = {}): Promise<LogPage> {
    return readLog(this.#state, start, limits);
  }

  /** Resolves at the next append, cut or close. Ask for it before reading. */
  nextChange(): Promise<void> {
    this.#change ??= Promise.withResolvers<void>();
    return this.#change.promise;
  }

  /** Seals the active segment, if it holds a record, and resolves to the first offset after it. */
  async roll(): Promise<number> {
    return await this.#operations.run(async () => {
      const { active } = this.#state;
      this.#state.check();
      if (active.next > active.base) await rollSegment(this.#state, active.version);
      return this.#state.active.base;
    });
  }

  /** Removes sealed segments that hold nothing but records below `offset`. */
  async trimBefore(offset: number): Promise<void> {
    this.#state.check();
    await this.#remove(countBelow(this.#state, offset));
  }

  /** Removes what `policy` lets go at `nowMicros`; resolves to the bytes that this freed. */
  async retain(policy: RetentionPolicy, nowMicros: number): Promise<number> {
    this.#state.check();
    const { sealed, active, environment: { counters } } = this.#state;
    try {
      const bytes = await this.#remove(countExpired(sealed, active.bytes, policy, nowMicros));
      counters.retentionBytesReclaimed += bytes;
      return bytes;
    } catch (error) {
      counters.retentionFailures++;
      throw error;
    }
  }

  /** Removes every record from `offset` on; `outside_log` below the base. */
  async truncate(offset: number): Promise<void> {
    await this.#operations.run(async () => {
      this.#state.check();
      await truncateLog(this.#state, offset);
    });
    this.#changed();
  }

  /** Removes every record; the next one gets offset `base`. */
  async reset(base: number): Promise<void> {
    await this.#operations.run(async () => {
      this.#state.check();
      await resetLog(this.#state, base);
    });
    this.#changed();
  }

  /** Flushes and closes; every later call is refused with `closed`. Twice does no harm. */
  close(): Promise<void> {
    return this.#closing ??= this.#close();
  }

  async #close(): Promise<void> {
    const state = this.#state;
    await this.#operations.run(async () => {
      try {
        if (state.failure === null) await state.commits.wait(state.tail);
      } finally {
        state.closed = true;
        state.commits.fail(new StorageError("closed", `${this.label}: the log is closed`));
        await this.#removal;
        for (const segment of [...state.sealed, state.active]) {
          state.environment.openSegments.drop(segment.path);
        }
        state.active.file.close();
        this.#changed();
        await state.mark.close();
      }
    });
  }

  #stage(
    records: readonly NewRecord[],
    size: number,
    version: number,
    at: number | undefined,
  ): StagedAppend | Promise<StagedAppend> {
    const state = this.#state;
    state.check();
    const { active } = state;
    if (at !== undefined && at !== active.next) {
      throw new OffsetMismatchError(this.label, at, active.next);
    }
    const full = active.bytes + size > state.environment.settings.segmentBytes &&
      active.next > active.base;
    if (!full && version <= active.version) return this.#write(records, size, version);
    return rollSegment(state, version).then(() => this.#write(records, size, version));
  }

  #write(records: readonly NewRecord[], size: number, version: number): StagedAppend {
    const state = this.#state;
    const { active, environment: { counters, encodeBuffer, nowMicros } } = state;
    const { bytes, view } = encodeBuffer.take(size);
    const timestampMicros = nowMicros();
    const first = active.next;
    let end = 0;
    let offset = first;
    for (const record of records) {
      end = encodeRecord(bytes, view, end, record, offset++, timestampMicros);
    }
    try {
      writeAll(active.file, bytes, size, active.bytes);
    } catch (error) {
      this.#takeBack(error);
      throw error;
    }
    let position = active.bytes;
    for (let at = 0; at < records.length; at++) {
      const length = recordSize(records[at]!);
      active.index.add(first + at, position, length);
      position += length;
    }
    active.bytes = position;
    active.next = offset;
    active.newestTimestampMicros = timestampMicros;
    counters.appendedRecords += records.length;
    counters.appendedBytes += size;
    if (version >= MARKS_VERSION) {
      records.forEach((record, at) => state.producers?.observe(first + at, record));
    }
    this.#changed();
    return { first, next: offset };
  }

  /** Restores the file after a write of which a part may have landed. */
  #takeBack(reason: unknown): void {
    const { active } = this.#state;
    try {
      active.file.truncate(active.bytes);
    } catch {
      throw this.#state.poison("a failed write could not be taken back", reason);
    }
  }

  #remove(count: number): Promise<number> {
    const state = this.#state;
    condemn(state, count);
    state.producers?.forgetBelow(state.base);
    state.environment.counters.retentionSegmentsDeleted += count;
    const removal = this.#removal.then(() => removeCondemned(state));
    this.#removal = removal.then(() => {}, () => {});
    return removal;
  }

  #changed(): void {
    const change = this.#change;
    if (change === null) return;
    this.#change = null;
    change.resolve();
  }
}
