// Opening a log's directory: plan, then carry the plan out (spec/storage.md §10.3 A, B, I, J).
// Rule: carried out in an order in which a crash anywhere leaves a directory with the same plan's
// end.

import type { Disk } from "../disk/disk.ts";
import type { StorageCounters } from "../log/storage_counters.ts";
import { MARK_FILE, readMark } from "../log/mark_file.ts";
import { writeFileSynced } from "../log/segment.ts";
import { DirectoryView, indexFileName, segmentFileName } from "./directory_view.ts";
import { planRecovery } from "./recovery_plan.ts";
import type { RecoveryPlan, RecoverySettings } from "./recovery_plan.ts";

/** What recovery would do to a directory; reads only. */
export async function planDirectory(
  disk: Disk,
  directory: string,
  settings: RecoverySettings,
  label: string,
): Promise<RecoveryPlan> {
  const mark = await readMark(disk, directory);
  const view = new DirectoryView(disk, directory);
  try {
    return await planRecovery(view, mark, settings, label);
  } finally {
    view.close();
  }
}

/** Makes a directory exactly what `plan` says; the newest segment's length is synced. */
export async function applyPlan(
  disk: Disk,
  directory: string,
  plan: RecoveryPlan,
  counters: StorageCounters,
): Promise<void> {
  for (const segment of plan.removals) {
    removeIfThere(disk, `${directory}/${indexFileName(segment)}`);
    disk.unlink(`${directory}/${segmentFileName(segment)}`);
    counters.recoveryAbandonedRolls++;
  }
  if (plan.removals.length > 0) await disk.syncDirectory(directory);
  for (const segment of plan.indexes) {
    const path = `${directory}/${indexFileName(segment.id)}`;
    await writeFileSynced(disk, path, segment.index!.encode());
    counters.recoveryIndexRebuilds++;
  }
  if (plan.indexes.length > 0) await disk.syncDirectory(directory);
  for (const cut of plan.cuts) {
    const file = disk.open(`${directory}/${segmentFileName(cut.segment)}`, "write");
    try {
      file.truncate(cut.length);
      await file.sync();
    } finally {
      file.close();
    }
    counters.recoveryTruncatedBytes += cut.discardedBytes;
  }
  if (plan.newest === null) {
    // The log begins anew, and its first segment must not be judged by what the old mark vouches
    // for.
    if (removeIfThere(disk, `${directory}/${MARK_FILE}`)) await disk.syncDirectory(directory);
    return;
  }
  // The newest segment is scanned at every open: an index file of it could only be stale.
  removeIfThere(disk, `${directory}/${indexFileName(plan.newest.id)}`);
}

function removeIfThere(disk: Disk, path: string): boolean {
  const there = disk.fileSize(path) !== null;
  if (there) disk.unlink(path);
  return there;
}
