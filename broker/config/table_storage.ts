// The settings of durable storage (spec/storage.md §18, spec/operations.md §3). A row here has a
// member in `BrokerSettings`; `load.ts` copies it there.

import { BOOLEAN, BYTES, BYTES_OR_ZERO, COUNT, MILLISECONDS, PATH } from "./kinds.ts";
import type { Setting } from "./setting.ts";

/** Durable storage. */
export const STORAGE_SETTINGS: readonly Setting[] = [
  {
    name: "FELIX_DURABLE_STORAGE_DIR",
    key: "storage.dir",
    kind: PATH,
    default: null,
    effect: "applied",
    summary:
      "Root directory of durable streams and of caches; unset: everything is kept in memory.",
  },
  {
    name: "FELIX_DURABLE_FSYNC_MODE",
    key: "storage.fsync_mode",
    kind: { type: "choice", values: ["none", "periodic", "on_commit"] },
    default: "on_commit",
    effect: "applied",
    summary: "When an acked record is on the device: before the ack (`on_commit`), within the " +
      "interval, or when the system likes.",
  },
  {
    name: "FELIX_DURABLE_FSYNC_INTERVAL_MS",
    key: "storage.fsync_interval_ms",
    kind: MILLISECONDS,
    default: "250",
    effect: "applied",
    summary: "Milliseconds between two flushes of the `periodic` mode.",
  },
  {
    name: "FELIX_DURABLE_SEGMENT_BYTES",
    key: "storage.segment_bytes",
    kind: { type: "bytes", min: 60, max: 2 ** 40 },
    default: "268435456",
    effect: "applied",
    summary: "Size after which a log goes on in a new segment file.",
  },
  {
    name: "FELIX_DURABLE_RETENTION_BYTES",
    key: "storage.retention_bytes",
    kind: BYTES,
    default: null,
    effect: "applied",
    summary: "Bytes that the log of a stream's shard may hold before old segments are removed.",
  },
  {
    name: "FELIX_DURABLE_RETENTION_SECONDS",
    key: "storage.retention_seconds",
    kind: COUNT,
    default: null,
    effect: "applied",
    summary: "Age of its newest record after which a segment is removed.",
  },
  {
    name: "FELIX_DURABLE_RETENTION_INTERVAL_SECONDS",
    key: "storage.retention_interval_seconds",
    kind: { type: "integer", min: 1, max: 2_000_000 },
    default: "60",
    effect: "applied",
    summary: "Seconds between two looks at what retention removes.",
  },
  {
    name: "FELIX_STORAGE_COMPACTION_BYTES_PER_SEC",
    kind: BYTES_OR_ZERO,
    default: "67108864",
    effect: "applied",
    summary: "Bytes per second that compactions of caches and counters may read and write; 0: no " +
      "bound.",
  },
  {
    name: "FELIX_DURABLE_INDEX_SPACING_BYTES",
    kind: BYTES,
    default: "4096",
    effect: "applied",
    summary: "Bytes between two entries of a segment's index.",
  },
  {
    name: "FELIX_DURABLE_MAX_RECORDS_PER_READ",
    kind: COUNT,
    default: "10000",
    effect: "applied",
    summary: "Most records of one read of a log.",
  },
  {
    name: "FELIX_DURABLE_VERIFY_ALL_ON_OPEN",
    kind: BOOLEAN,
    default: "false",
    effect: "applied",
    summary: "Read every segment in full at the start, not only the newest.",
  },
  {
    name: "FELIX_DURABLE_REPAIR_CHECKSUM_TAIL",
    kind: BOOLEAN,
    default: "false",
    effect: "applied",
    summary: "Cut a damaged last record even where it may have been acknowledged.",
  },
];
