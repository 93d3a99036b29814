// Carries out on one log, offline, what opening it would do. Rule: only with the root's lock, so
// never beside a running broker, and nothing but the plan of recovery.

import type { Disk } from "../disk/disk.ts";
import { EncodeBuffer } from "../log/encode_buffer.ts";
import { readMark } from "../log/mark_file.ts";
import { OpenSegments } from "../log/open_segments.ts";
import { SegmentLog } from "../log/segment_log.ts";
import type { LogEnvironment, LogSettings } from "../log/settings.ts";
import { StorageCounters } from "../log/storage_counters.ts";
import { DirectoryView } from "../recovery/directory_view.ts";
import { applyPlan, planDirectory } from "../recovery/recover.ts";
import { StorageError } from "../storage_error.ts";
import { missingBytes, repairsOf } from "./inspect_log.ts";
import type { MissingBytes, Repair } from "./inspect_log.ts";
import { lockFileOf } from "./log_directories.ts";

/** What a repair needs. */
export interface RepairRequest {
  readonly disk: Disk;
  /** Absolute path. */
  readonly directory: string;
  readonly settings: LogSettings;
  /** Wall clock, microseconds since 1970. */
  readonly nowMicros: () => number;
  /** Written into the lock file. */
  readonly owner: string;
}

/** What a recovery did. */
export interface RepairedLog {
  readonly repaired: readonly Repair[];
  /** What the mark vouched for and was gone already; the mark does so no more. */
  readonly missing: MissingBytes | null;
}

/**
 * Recovers a log and resolves to what that took. Errors: `locked` when a process has the root, and
 * `CorruptionError` when opening would refuse; both change nothing.
 */
export async function repairLog(request: RepairRequest): Promise<RepairedLog> {
  const { disk, directory, settings, owner } = request;
  const path = lockFileOf(directory);
  const lock = disk.lock(path, owner);
  if (lock === null) {
    const holder = disk.holder(path).trim();
    const held = `${path} is held by another process (${holder}); stop it first`;
    throw new StorageError("locked", held);
  }
  try {
    const view = new DirectoryView(disk, directory);
    const plan = await planDirectory(disk, directory, settings, directory);
    const repaired = repairsOf(plan, view);
    const missing = missingBytes(await readMark(disk, directory), plan);
    const environment: LogEnvironment = {
      ...request,
      encodeBuffer: new EncodeBuffer(),
      openSegments: new OpenSegments(disk),
      counters: new StorageCounters(),
    };
    if (plan.newest === null) {
      // Where the log begins anew is for its owner to say.
      await applyPlan(disk, directory, plan, environment.counters);
    } else {
      const log = await SegmentLog.open(environment, directory, directory);
      await log.close();
    }
    return { repaired, missing };
  } finally {
    lock.release();
  }
}
