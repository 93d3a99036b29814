// The segment log's only door.

export type { Disk, DiskFile, DiskLock, OpenMode } from "./disk/disk.ts";
export { RealDisk } from "./disk/real_disk.ts";
export { CRASH_SHAPES, SimulatedCrash, SimulatedDisk } from "./disk/simulated_disk.ts";
export type { CrashShape, DiskOperation, Fault } from "./disk/simulated_disk.ts";
export type { DataShape } from "./disk/simulated_file.ts";
export { decodeCommitEvent, encodeCommitBody } from "./format/commit_body.ts";
export type { CommitBody, CommitBodyFault, CommitOperation } from "./format/commit_body.ts";
export { MAX_PAYLOAD_BYTES, RecordKind } from "./format/record.ts";
export type { BatchTag, LogRecord, NewRecord } from "./format/record.ts";
export { shardDirectoryName, shardLabel } from "./format/shard_directory.ts";
export type { ShardKey } from "./format/shard_directory.ts";
export type { LogPage, ReadLimits } from "./log/log_read.ts";
export type { RetentionPolicy } from "./log/retention.ts";
export { SegmentLog } from "./log/segment_log.ts";
export type { StagedAppend } from "./log/segment_log.ts";
export { DEFAULT_LOG_SETTINGS } from "./log/settings.ts";
export type { FsyncMode, LogSettings } from "./log/settings.ts";
export { StorageCounters } from "./log/storage_counters.ts";
export { CacheEntry } from "./projections/cache_entry.ts";
export { CacheLog } from "./projections/cache_log.ts";
export type { CacheEnvironment, VersionedValue } from "./projections/cache_log.ts";
export type {
  CacheChange,
  CacheWatch,
  KeyFilter,
  WatchResult,
  WatchStart,
} from "./projections/cache_watchers.ts";
export type { CacheCondition, WriteResult } from "./projections/cache_writes.ts";
export { CounterLog } from "./projections/counter_log.ts";
export type { CompactionEnvironment } from "./projections/compactor.ts";
export { Pace } from "./projections/pace.ts";
export { ValueMemory } from "./projections/value_memory.ts";
export { ProducerTable } from "./producers/producer_table.ts";
export type { Admission, OfferedBatch } from "./producers/producer_table.ts";
export type { PlannedCut } from "./recovery/directory_view.ts";
export type { FoundSegment, RecoveryPlan } from "./recovery/recovery_plan.ts";
export {
  CorruptionError,
  OffsetMismatchError,
  StorageError,
  TrimmedError,
} from "./storage_error.ts";
export type { FormatKind, StorageCode } from "./storage_error.ts";
export { LogStore } from "./store.ts";
export type { LogKind, Refusal, StoreOptions } from "./store.ts";
