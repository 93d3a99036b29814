// The metric families of durable storage (spec/storage.md §19), read from the store's counters and
// its open logs when somebody scrapes.

import type { LogStore } from "@felix/storage";
import { counter, gauge } from "./family.ts";
import type { Family } from "./family.ts";

/** Every family of storage. */
export function storageFamilies(store: LogStore): Family[] {
  const { counters } = store;
  const sum = (of: (log: LogStore["logs"][number]) => number) => () =>
    store.logs.reduce((total, log) => total + of(log), 0);
  return [
    counter(
      "felix_storage_append_records_total",
      "Records appended",
      () => counters.appendedRecords,
    ),
    counter(
      "felix_storage_append_bytes_total",
      "Bytes appended, record headers included",
      () => counters.appendedBytes,
    ),
    counter("felix_storage_sync_total", "Flushes that reached the device", () => counters.syncs),
    counter(
      "felix_storage_synced_records_total",
      "Records that those flushes covered",
      () => counters.syncedRecords,
    ),
    counter(
      "felix_storage_sync_failures_total",
      "Flushes that failed; each ends its log",
      () => counters.syncFailures,
    ),
    counter(
      "felix_storage_segment_roll_total",
      "Segments left for a new one",
      () => counters.segmentRolls,
    ),
    counter(
      "felix_storage_segment_roll_failed_total",
      "Segments that could not be made",
      () => counters.segmentRollFailures,
    ),
    counter(
      "felix_storage_index_write_failures_total",
      "Index files that could not be written",
      () => counters.indexWriteFailures,
    ),
    counter("felix_storage_read_records_total", "Records read back", () => counters.readRecords),
    counter("felix_storage_read_bytes_total", "Payload bytes read back", () => counters.readBytes),
    ...upkeepFamilies(store),
    gauge("felix_storage_logs", "Logs that are open", () => store.logs.length),
    gauge(
      "felix_storage_failed_logs",
      "Open logs that take nothing until a restart",
      () => store.logs.filter((log) => log.failure !== null).length,
    ),
    gauge("felix_storage_segment_count", "Segment files of open logs", sum((log) => log.segments)),
    gauge("felix_storage_bytes", "Bytes of those files", sum((log) => log.bytes)),
    gauge(
      "felix_storage_unsynced_records",
      "Records not known to be on the device",
      sum((log) => log.tail - log.durable),
    ),
  ];
}

function upkeepFamilies({ counters }: LogStore): Family[] {
  return [
    counter(
      "felix_storage_retention_segments_deleted_total",
      "Segments that retention removed",
      () => counters.retentionSegmentsDeleted,
    ),
    counter(
      "felix_storage_retention_bytes_reclaimed_total",
      "Bytes that retention freed",
      () => counters.retentionBytesReclaimed,
    ),
    counter(
      "felix_storage_retention_failures_total",
      "Retention passes that failed",
      () => counters.retentionFailures,
    ),
    counter(
      "felix_storage_recovery_truncated_bytes",
      "Bytes of unfinished writes cut at opening",
      () => counters.recoveryTruncatedBytes,
    ),
    counter(
      "felix_storage_recovery_abandoned_rolls_total",
      "Unfinished segments removed",
      () => counters.recoveryAbandonedRolls,
    ),
    counter(
      "felix_storage_recovery_index_rebuilds_total",
      "Index files made again",
      () => counters.recoveryIndexRebuilds,
    ),
    counter(
      "felix_storage_producer_state_rebuilt_total",
      "Logs whose producers had to be read from sealed segments",
      () => counters.producerStateRebuilds,
    ),
    counter(
      "felix_storage_producer_write_failures_total",
      "Files of producers that could not be written",
      () => counters.producerWriteFailures,
    ),
  ];
}
