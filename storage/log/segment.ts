// One segment of an open log: where its file is, what it holds, and the making of a new one. Rule:
// a segment file is on the device, name and header, before any record goes into it
// (spec/storage.md §3.1, §7.3).

import type { Disk, DiskFile } from "../disk/disk.ts";
import { encodeSegmentHeader, SEGMENT_HEADER_BYTES } from "../format/segment_header.ts";
import { SparseIndex } from "../format/sparse_index.ts";
import { indexFileName, segmentFileName } from "../recovery/directory_view.ts";
import type { FoundSegment } from "../recovery/recovery_plan.ts";
import { StorageError } from "../storage_error.ts";

/** A segment; sealed ones do not change. */
export interface Segment {
  readonly id: number;
  readonly path: string;
  readonly indexPath: string;
  readonly version: number;
  /** Offset of its first record. */
  readonly base: number;
  /** Offset after its last record. */
  next: number;
  bytes: number;
  /** Time of its newest record, microseconds; 0 when it has none. */
  newestTimestampMicros: number;
}

/** The segment that records go into. */
export interface ActiveSegment extends Segment {
  readonly file: DiskFile;
  readonly index: SparseIndex;
}

/** A segment as recovery found it. */
export function segmentOf(found: FoundSegment, directory: string): Segment {
  const { id, version, base, next, bytes, newestTimestampMicros } = found;
  const path = `${directory}/${segmentFileName(id)}`;
  const indexPath = `${directory}/${indexFileName(id)}`;
  return { id, path, indexPath, version, base, next, bytes, newestTimestampMicros };
}

/** What a new segment is made of. */
export interface SegmentPlan {
  readonly directory: string;
  readonly id: number;
  readonly version: number;
  readonly base: number;
  readonly createdAtMicros: number;
  readonly indexSpacingBytes: number;
}

/**
 * Makes a segment file; on failure what was made of it is removed again, durably. `sync_failed`
 * says that even that failed.
 */
export async function createSegment(disk: Disk, plan: SegmentPlan): Promise<ActiveSegment> {
  const { directory, id, version, base, createdAtMicros } = plan;
  const path = `${directory}/${segmentFileName(id)}`;
  const file = disk.open(path, "create");
  try {
    await disk.syncDirectory(directory);
    writeAll(
      file,
      encodeSegmentHeader({ version, base, createdAtMicros }),
      SEGMENT_HEADER_BYTES,
      0,
    );
    await file.sync();
  } catch (error) {
    file.close();
    await takeBack(disk, directory, path, error);
    throw error;
  }
  return {
    id,
    path,
    indexPath: `${directory}/${indexFileName(id)}`,
    version,
    base,
    next: base,
    bytes: SEGMENT_HEADER_BYTES,
    newestTimestampMicros: 0,
    index: new SparseIndex(base, plan.indexSpacingBytes),
    file,
  };
}

async function takeBack(
  disk: Disk,
  directory: string,
  path: string,
  reason: unknown,
): Promise<void> {
  try {
    disk.unlink(path);
    await disk.syncDirectory(directory);
  } catch {
    const detail = reason instanceof Error ? reason.message : String(reason);
    throw new StorageError("sync_failed", `${path} could not be removed after: ${detail}`, {
      cause: reason,
    });
  }
}

/** Writes the first `length` of `bytes` at `position`, in as many calls as the disk needs. */
export function writeAll(
  file: DiskFile,
  bytes: Uint8Array,
  length: number,
  position: number,
): void {
  for (let written = 0; written < length;) {
    written += file.write(bytes, written, length, position + written);
  }
}

/** Writes a small file whole and makes it durable, name included. */
export async function writeFileSynced(disk: Disk, path: string, bytes: Uint8Array): Promise<void> {
  if (disk.fileSize(path) !== null) disk.unlink(path);
  const file = disk.open(path, "create");
  try {
    writeAll(file, bytes, bytes.length, 0);
    await file.sync();
  } finally {
    file.close();
  }
}
