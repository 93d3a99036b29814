// What the logs of a store have done, as plain numbers that a metrics page reads
// (spec/storage.md §19). Rule: they only rise.

/** Counters of one store. */
export class StorageCounters {
  appendedRecords = 0;
  appendedBytes = 0;
  syncs = 0;
  syncFailures = 0;
  /** Records that flushes covered: divided by `syncs`, what one flush pays for. */
  syncedRecords = 0;
  segmentRolls = 0;
  segmentRollFailures = 0;
  indexWriteFailures = 0;
  readRecords = 0;
  readBytes = 0;
  retentionSegmentsDeleted = 0;
  retentionBytesReclaimed = 0;
  retentionFailures = 0;
  recoveryTruncatedBytes = 0;
  recoveryAbandonedRolls = 0;
  recoveryIndexRebuilds = 0;
  producerStateRebuilds = 0;
  producerWriteFailures = 0;
}
