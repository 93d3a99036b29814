// All logs below one root directory: who may open them, which are open, and what happens to them on
// a timer. Rules: one process at a time holds a root; one log object at a time stands for a
// directory; what would refuse to open is known before the process serves (spec/storage.md §2,
// §15).

import type { Disk, DiskLock } from "./disk/disk.ts";
import { shardDirectoryName, shardLabel } from "./format/shard_directory.ts";
import type { ShardKey } from "./format/shard_directory.ts";
import { EncodeBuffer } from "./log/encode_buffer.ts";
import { OpenSegments } from "./log/open_segments.ts";
import type { RetentionPolicy } from "./log/retention.ts";
import { SegmentLog } from "./log/segment_log.ts";
import { checkLogSettings, DEFAULT_LOG_SETTINGS } from "./log/settings.ts";
import type { LogEnvironment, LogSettings } from "./log/settings.ts";
import { StorageCounters } from "./log/storage_counters.ts";
import { segmentIds } from "./recovery/directory_view.ts";
import { planDirectory } from "./recovery/recover.ts";
import { StorageError } from "./storage_error.ts";

/** What a log is a log of; each but `streams` has a directory of its own below the root. */
export type LogKind = "streams" | "caches" | "counters" | "groups" | "dead-letters";

const KINDS: readonly LogKind[] = ["streams", "caches", "counters", "groups", "dead-letters"];

/** Where and how logs are kept. */
export interface StoreOptions {
  readonly disk: Disk;
  /** Absolute path; made if it is missing. */
  readonly root: string;
  readonly settings?: Partial<LogSettings>;
  /** Wall clock, microseconds since 1970. */
  readonly nowMicros: () => number;
  /** Written into the lock file, for whoever finds it held: a process id and a time. */
  readonly owner: string;
  /** Told what opening a log found wrong and put right. */
  readonly warn?: (what: string) => void;
}

/** A log that would not open. */
export interface Refusal {
  readonly directory: string;
  readonly error: StorageError;
}

interface Slot {
  readonly opening: Promise<SegmentLog>;
  log: SegmentLog | null;
  retention: RetentionPolicy;
}

/** The logs of one root; made by `LogStore.open`. */
export class LogStore {
  readonly #environment: LogEnvironment;
  readonly #root: string;
  readonly #lock: DiskLock;
  readonly #slots = new Map<string, Slot>();
  #closed = false;

  private constructor(environment: LogEnvironment, root: string, lock: DiskLock) {
    this.#environment = environment;
    this.#root = root;
    this.#lock = lock;
  }

  /** Takes the root for this process; `locked` when another one has it. */
  static async open(options: StoreOptions): Promise<LogStore> {
    const { disk, root, nowMicros, owner, warn } = options;
    const settings = { ...DEFAULT_LOG_SETTINGS, ...options.settings };
    checkLogSettings(settings);
    await disk.makeDirectory(root);
    const path = `${root}/LOCK`;
    const lock = await disk.lock(path, owner);
    if (lock === null) {
      const holder = disk.holder(path).trim();
      throw new StorageError("locked", `${root} is in use by another process (${holder})`);
    }
    const environment: LogEnvironment = {
      disk,
      settings,
      nowMicros,
      encodeBuffer: new EncodeBuffer(),
      openSegments: new OpenSegments(disk),
      counters: new StorageCounters(),
      ...(warn === undefined ? {} : { warn }),
    };
    return new LogStore(environment, root, lock);
  }

  /** What the logs of this store have done. */
  get counters(): StorageCounters {
    return this.#environment.counters;
  }

  /** How logs are kept. */
  get settings(): LogSettings {
    return this.#environment.settings;
  }

  /** Logs that are open. */
  get logs(): SegmentLog[] {
    return [...this.#slots.values()].flatMap(({ log }) => log === null ? [] : [log]);
  }

  /** Directory of a log, whether it exists or not. */
  directoryOf(kind: LogKind, key: ShardKey): string {
    return `${this.#rootOf(kind)}/${shardDirectoryName(key)}`;
  }

  /** Looks at every log below the root and names those that would not open; changes nothing. */
  async verify(): Promise<Refusal[]> {
    const { disk, settings } = this.#environment;
    const refusals: Refusal[] = [];
    for (const kind of KINDS) {
      const root = this.#rootOf(kind);
      for (const name of disk.list(root) ?? []) {
        const directory = `${root}/${name}`;
        if (segmentIds(disk.list(directory) ?? []).length === 0) continue;
        try {
          await planDirectory(disk, directory, settings, directory);
        } catch (error) {
          if (!(error instanceof StorageError)) throw error;
          refusals.push({ directory, error });
        }
      }
    }
    return refusals;
  }

  /** Opens a log, or answers the open one. Two at once share one recovery. */
  openLog(kind: LogKind, key: ShardKey, retention: RetentionPolicy = {}): Promise<SegmentLog> {
    if (this.#closed) return Promise.reject(new StorageError("closed", "the store is closed"));
    const directory = this.directoryOf(kind, key);
    const held = this.#slots.get(directory);
    if (held !== undefined) return held.opening;
    const label = kind === "streams" ? shardLabel(key) : `${kind}/${shardLabel(key)}`;
    const slot: Slot = {
      opening: SegmentLog.open(this.#environment, directory, label, 0, kind === "streams"),
      log: null,
      retention,
    };
    this.#slots.set(directory, slot);
    slot.opening.then(
      (log) => slot.log = log,
      () => this.#slots.delete(directory),
    );
    return slot.opening;
  }

  /** Changes what an open log keeps; the next pass goes by it. */
  setRetention(kind: LogKind, key: ShardKey, retention: RetentionPolicy): void {
    const slot = this.#slots.get(this.directoryOf(kind, key));
    if (slot !== undefined) slot.retention = retention;
  }

  /** Closes a log, if it is open. */
  async closeLog(kind: LogKind, key: ShardKey): Promise<void> {
    const directory = this.directoryOf(kind, key);
    const slot = this.#slots.get(directory);
    if (slot === undefined) return;
    const log = await slot.opening;
    try {
      await log.close();
    } finally {
      this.#slots.delete(directory);
    }
  }

  /**
   * Flushes every open log that has something to flush; the timer of the `periodic` mode. A log
   * whose flush fails is poisoned and says so at its next use.
   */
  async flush(): Promise<void> {
    const unsynced = this.logs.filter((log) => log.failure === null && log.durable < log.tail);
    await Promise.allSettled(unsynced.map((log) => log.flush()));
  }

  /**
   * Removes what the logs' policies let go; a log for which that fails is tried again next time.
   */
  async retain(): Promise<void> {
    const now = this.#environment.nowMicros();
    for (const { log, retention } of this.#slots.values()) {
      if (log === null || log.failure !== null) continue;
      try {
        await log.retain(retention, now);
      } catch (error) {
        if (!(error instanceof StorageError)) throw error;
      }
    }
  }

  /**
   * Closes every log and lets another process in. Throws an `AggregateError` of what failed, after
   * all were tried.
   */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    const closing = [...this.#slots.values()].map(async ({ opening }) => {
      const log = await opening.catch(() => null);
      await log?.close();
    });
    const results = await Promise.allSettled(closing);
    this.#slots.clear();
    this.#lock.release();
    const failures = results.flatMap((result) =>
      result.status === "rejected" ? [result.reason] : []
    );
    if (failures.length > 0) throw new AggregateError(failures, "some logs did not close well");
  }

  #rootOf(kind: LogKind): string {
    return kind === "streams" ? this.#root : `${this.#root}/${kind}`;
  }
}
