// The segment log's only door.

export type { Disk, DiskFile, DiskLock, OpenMode } from "./disk/disk.ts";
export {
  CorruptionError,
  OffsetMismatchError,
  StorageError,
  TrimmedError,
} from "./storage_error.ts";
export type { FormatKind, StorageCode } from "./storage_error.ts";
