// One shard of a cache read from its log (spec/storage.md §13, spec/semantics.md §6): an index of
// where each key's newest value lies, built by replaying the log and kept in step with it. Rules:
// reads and watches see what is kept and nothing else, in offset order; a compaction changes
// neither a value nor a version, and no watch sees it.

import { decodeCacheRecord } from "../format/cache_record.ts";
import type { CacheRecord } from "../format/cache_record.ts";
import { RecordKind } from "../format/record.ts";
import type { LogRecord } from "../format/record.ts";
import type { SegmentLog } from "../log/segment_log.ts";
import { StorageError, TrimmedError } from "../storage_error.ts";
import { CacheEntry } from "./cache_entry.ts";
import { CacheWatchers } from "./cache_watchers.ts";
import type { CacheChange, KeyFilter, WatchResult, WatchStart } from "./cache_watchers.ts";
import { CacheWrite } from "./cache_writes.ts";
import type { CacheCondition, CacheIndex, CacheRequest, WriteResult } from "./cache_writes.ts";
import { Compactor } from "./compactor.ts";
import type { Compactable, CompactionEnvironment } from "./compactor.ts";
import { ExpiryQueue } from "./expiry_queue.ts";
import { OrderedWrites } from "./ordered_writes.ts";
import type { ValueMemory } from "./value_memory.ts";

/** A smaller log is not compacted (spec/storage.md §14.1). */
const FLOOR_BYTES = 1024 * 1024;
/** Copies that one step of a compaction makes. */
const COPIES_PER_STEP = 64;

/** What the cache logs of one broker share. */
export interface CacheEnvironment extends CompactionEnvironment {
  /** Holds the values used most recently. */
  readonly values: ValueMemory;
  /** Milliseconds since the Unix epoch. */
  readonly nowMs: () => number;
}

/** What a key holds. */
export interface VersionedValue {
  /** Not to be changed. */
  readonly value: Uint8Array;
  /** Offset of the put that wrote it. */
  readonly version: number;
}

/** A cache shard on a log; made by `CacheLog.open`. */
export class CacheLog implements CacheIndex, Compactable {
  readonly #log: SegmentLog;
  readonly #environment: CacheEnvironment;
  readonly #entries = new Map<string, CacheEntry>();
  readonly #expiry: ExpiryQueue;
  readonly #writes: OrderedWrites;
  readonly #compactor: Compactor;
  readonly #watchers: CacheWatchers;
  readonly #reads = new Set<Promise<Uint8Array>>();
  /** Newest write of each key that is in the log and not applied. */
  readonly staged: Map<string, CacheWrite> = new Map();

  private constructor(log: SegmentLog, environment: CacheEnvironment) {
    this.#log = log;
    this.#environment = environment;
    this.#expiry = new ExpiryQueue((entry) => this.#entries.get(entry.key) === entry);
    this.#compactor = new Compactor(log, FLOOR_BYTES, environment);
    this.#watchers = new CacheWatchers(this);
    this.#writes = new OrderedWrites(log, () => this.#compactor.consider(this, this.#writes));
  }

  /**
   * Builds the index of an open log, to which nobody else appends. `CorruptionError` when a record
   * is no cache record.
   */
  static async open(log: SegmentLog, environment: CacheEnvironment): Promise<CacheLog> {
    const cache = new CacheLog(log, environment);
    for (let from = log.base; from < log.tail;) {
      const { records, next } = await log.read(from);
      for (const record of records) cache.#replay(record);
      from = next;
    }
    cache.#compactor.consider(cache, cache.#writes);
    return cache;
  }

  /** Keys with an entry, expired ones that nobody has removed yet included. */
  get size(): number {
    return this.#entries.size;
  }

  /** What the log is called in errors. */
  get label(): string {
    return this.#log.label;
  }

  /** Every change below is visible. */
  get frontier(): number {
    return this.#writes.applied;
  }

  /** The oldest change that can be replayed. */
  get base(): number {
    return this.#log.base;
  }

  /** Watches that are open. */
  get watches(): number {
    return this.#watchers.size;
  }

  /** Compactions that removed something. */
  get compactions(): number {
    return this.#compactor.passes;
  }

  /** Payload bytes of the log, and of its live records. */
  get sizes(): { readonly logBytes: number; readonly liveBytes: number } {
    const { logBytes, liveBytes } = this.#compactor;
    return { logBytes, liveBytes };
  }

  /** The live entry of a key at `nowMs`; `null` when it is missing or expired. */
  find(key: string, nowMs: number): CacheEntry | null {
    const entry = this.#entries.get(key);
    return entry === undefined || entry.expired(nowMs) ? null : entry;
  }

  /** The entry of a key, expired or not. */
  entryOf(key: string): CacheEntry | undefined {
    return this.#entries.get(key);
  }

  /** Every entry. */
  entries(): IterableIterator<CacheEntry> {
    return this.#entries.values();
  }

  /** The value of an entry, at once when memory holds it. Not to be changed. */
  valueOf(entry: CacheEntry): Uint8Array | Promise<Uint8Array> {
    const { value } = entry;
    if (value === null) return this.#read(entry);
    this.#environment.values.use(entry);
    return value;
  }

  /**
   * The live value of a key. Rejects with a `StorageError` when it cannot be read: never a miss.
   */
  async get(key: string, nowMs: number): Promise<VersionedValue | null> {
    for (;;) {
      const entry = this.find(key, nowMs);
      if (entry === null) return null;
      try {
        return { value: await this.valueOf(entry), version: entry.version };
      } catch (error) {
        // A compaction moved the record while it was looked for.
        if (error instanceof TrimmedError && this.#entries.get(key) !== entry) continue;
        throw error;
      }
    }
  }

  /**
   * What a key holds after every write that was asked for before, and before every later one:
   * waits until that is kept.
   */
  async getInOrder(key: string, nowMs: number): Promise<VersionedValue | null> {
    const { value, version } = await this.#write({ op: "read", key, nowMs });
    return value === null ? null : { value, version: version! };
  }

  /**
   * Stores a copy of `value`. `ttlMs`: life in milliseconds, `null` = no end. Resolves to the
   * version when it is kept; rejects with a `StorageError`.
   */
  async put(key: string, value: Uint8Array, ttlMs: number | null, nowMs: number): Promise<number> {
    return (await this.putIf(key, value, ttlMs, null, nowMs)).version!;
  }

  /**
   * Stores a value if the condition holds, `null` = always, when its turn in the log has come.
   */
  putIf(
    key: string,
    value: Uint8Array,
    ttlMs: number | null,
    condition: CacheCondition | null,
    nowMs: number,
  ): Promise<WriteResult> {
    // 0 in a record means never, so a life that ended at once ends a millisecond after the epoch.
    const expiresAtMs = ttlMs === null ? 0 : Math.min(Math.max(1, nowMs + ttlMs), LAST_MS);
    return this.#write({ op: "put", key, value, expiresAtMs, nowMs, condition });
  }

  /** Removes a key. Resolves to the value that it had; `null` if it was missing or expired. */
  async delete(key: string, nowMs: number): Promise<Uint8Array | null> {
    return (await this.#write({ op: "delete", key, nowMs, condition: null })).value;
  }

  /** Removes a key if its live value has this version. */
  deleteIf(key: string, version: number, nowMs: number): Promise<WriteResult> {
    return this.#write({ op: "delete", key, nowMs, condition: { version } });
  }

  /** Writes the deletes of up to `max` entries whose time has passed; answers how many. */
  sweep(nowMs: number, max: number): number {
    let found = 0;
    for (; found < max; found++) {
      const entry = this.#expiry.takeExpired(nowMs);
      if (entry === null) break;
      this.#expire(entry);
    }
    return found;
  }

  /** Follows the changes of a key or prefix: see `CacheWatchers.watch`. */
  watch(filter: KeyFilter, start: WatchStart, budgetBytes: number): WatchResult {
    return this.#watchers.watch(filter, start, budgetBytes);
  }

  /** Changes of the log from `from` to before `until`, a page of them. */
  async changes(
    from: number,
    until: number,
  ): Promise<{ readonly changes: CacheChange[]; readonly next: number }> {
    const { records, next } = await this.#log.read(from, { until });
    const changes: CacheChange[] = [];
    for (const record of records) {
      const change = decodeChange(record, this.label);
      // A copy that a compaction made is no change.
      if (change === null || (change.op === "put" && change.version !== null)) continue;
      const { offset } = record;
      const { key } = change;
      changes.push(
        change.op === "put"
          ? { key, value: change.value, offset, expiresAtMs: change.expiresAtMs }
          : { key, value: null, offset, expiresAtMs: 0 },
      );
    }
    return { changes, next };
  }

  /** Resolves when everything below `target` is visible; rejects when that can no more happen. */
  applied(target: number): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#writes.whenApplied(target, (error) => error === null ? resolve() : reject(error));
    });
  }

  /** Resolves when no compaction runs. */
  compacted(): Promise<void> {
    return this.#compactor.idle();
  }

  /** Ends watches and compaction; the log is closed by whoever opened it. */
  async close(): Promise<void> {
    this.#watchers.close();
    await this.#compactor.stop();
    for (const entry of this.#entries.values()) this.#environment.values.drop(entry);
  }

  /** Lets `entry`, whose put is kept, take its key's place; for the writes. */
  replace(entry: CacheEntry, value: Uint8Array): void {
    this.#forget(entry.key);
    this.#compactor.logBytes += entry.bytes;
    this.#index(entry);
    this.#environment.values.hold(entry, value);
  }

  /** Takes a key out; its delete, of `bytes`, is kept; for the writes. */
  remove(key: string, bytes: number): void {
    this.#forget(key);
    this.#compactor.logBytes += bytes;
  }

  /** Tells the watches; for the writes. */
  notify(change: CacheChange): void {
    this.#watchers.notify(change);
  }

  /** For compactions: the live puts below `cut` again, in the order of the log. */
  async copyBelow(cut: number, spend: (bytes: number) => Promise<void>): Promise<void> {
    for (let from = this.#log.base; from < cut;) {
      const { records, next } = await this.#log.read(from, { until: cut });
      let bytes = 0;
      for (let at = 0; at < records.length; at += COPIES_PER_STEP) {
        bytes += await this.#copy(records.slice(at, at + COPIES_PER_STEP));
      }
      for (const { payload } of records) bytes += payload.length;
      from = next;
      await spend(bytes);
    }
  }

  /** For compactions. */
  holdsBelow(cut: number): boolean {
    for (const { offset } of this.#entries.values()) if (offset < cut) return true;
    return false;
  }

  /** For compactions. */
  readersGone(): Promise<unknown> {
    return Promise.allSettled(this.#reads);
  }

  /** Resolves to the bytes that were written again. */
  async #copy(records: readonly LogRecord[]): Promise<number> {
    const nowMs = this.#environment.nowMs();
    let bytes = 0;
    const writes: Promise<unknown>[] = [];
    for (const record of records) {
      const put = decodeChange(record, this.label);
      const entry = put === null ? undefined : this.#entries.get(put.key);
      if (put?.op !== "put" || entry?.offset !== record.offset) continue;
      const { key, value } = put;
      if (entry.expired(nowMs)) writes.push(this.#expire(entry));
      else writes.push(this.#write({ op: "copy", key, value, entry }));
      bytes += entry.bytes;
    }
    await Promise.all(writes);
    return bytes;
  }

  /** Ends an entry whose time has passed; what fails is tried again by a later sweep. */
  #expire(entry: CacheEntry): Promise<unknown> {
    return this.#write({ op: "expire", key: entry.key, entry }).catch(() => {
      if (this.#entries.get(entry.key) === entry) this.#expiry.add(entry);
    });
  }

  #write(request: CacheRequest): Promise<WriteResult> {
    return new Promise((resolve, reject) => {
      this.#writes.submit(new CacheWrite(this, request, resolve, reject));
    });
  }

  #replay(record: LogRecord): void {
    const change = decodeChange(record, this.label);
    this.#compactor.logBytes += record.payload.length;
    if (change === null) return;
    this.#forget(change.key);
    if (change.op === "delete") return;
    const { key, version, expiresAtMs } = change;
    const { offset, payload } = record;
    this.#index(new CacheEntry(key, offset, version ?? offset, expiresAtMs, payload.length));
  }

  #index(entry: CacheEntry): void {
    this.#entries.set(entry.key, entry);
    this.#compactor.liveBytes += entry.bytes;
    if (entry.expiresAtMs !== 0) this.#expiry.add(entry);
  }

  #forget(key: string): void {
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    this.#entries.delete(key);
    this.#compactor.liveBytes -= entry.bytes;
    this.#environment.values.drop(entry);
  }

  #read(entry: CacheEntry): Promise<Uint8Array> {
    const read = this.#readNow(entry);
    this.#reads.add(read);
    const done = (): void => void this.#reads.delete(read);
    read.then(done, done);
    return read;
  }

  async #readNow(entry: CacheEntry): Promise<Uint8Array> {
    const { offset, key } = entry;
    const { records } = await this.#log.read(offset, { maxRecords: 1, maxBytes: entry.bytes });
    const record = records[0];
    const put = record === undefined ? null : decodeChange(record, this.label);
    if (put?.op !== "put" || put.key !== key || record!.offset !== offset) {
      throw new StorageError("io", `${this.label}: no value can be read at offset ${offset}`);
    }
    // A copy: the view would keep the whole page that was read.
    const value = put.value.slice();
    const isCurrent = this.#entries.get(key) === entry && entry.value === null;
    if (isCurrent) this.#environment.values.hold(entry, value);
    return value;
  }
}

/** Latest expiry that a record can hold exactly. */
const LAST_MS = Number.MAX_SAFE_INTEGER;

/** The change that a record is; `null`: none. */
function decodeChange(record: LogRecord, label: string): CacheRecord | null {
  if (record.kind === RecordKind.generationStart) return null;
  const change = decodeCacheRecord(record.payload);
  if (typeof change !== "string") return change;
  const at = `offset ${record.offset}`;
  throw new StorageError("corruption", `${label}: ${at} is no cache record: ${change}`);
}
