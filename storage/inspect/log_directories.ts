// Which directories are logs, and which root they are below (spec/storage.md §2). Rule: a directory
// is a log when it holds segment files or a mark, and a root when logs are where a store puts them.

import { basename, dirname } from "node:path";
import type { Disk } from "../disk/disk.ts";
import { MARK_FILE } from "../log/mark_file.ts";
import { segmentIds } from "../recovery/directory_view.ts";

const SUBROOTS: readonly string[] = ["caches", "counters", "groups", "dead-letters"];

/** Whether a directory is that of a log. */
export function isLogDirectory(disk: Disk, directory: string): boolean {
  if (disk.fileSize(directory) !== null) return false;
  const names = disk.list(directory) ?? [];
  return names.includes(MARK_FILE) || segmentIds(names).length > 0;
}

/** Directories of all logs below a root, in the order of a store. */
export function logDirectories(disk: Disk, root: string): string[] {
  return ["", ...SUBROOTS].flatMap((subroot) => {
    const parent = subroot === "" ? root : `${root}/${subroot}`;
    if (disk.fileSize(parent) !== null) return [];
    return (disk.list(parent) ?? []).map((name) => `${parent}/${name}`)
      .filter((directory) => isLogDirectory(disk, directory));
  });
}

/** The file whose lock keeps a log's root for one process. */
export function lockFileOf(directory: string): string {
  const parent = dirname(directory);
  const root = SUBROOTS.includes(basename(parent)) ? dirname(parent) : parent;
  return `${root}/LOCK`;
}
