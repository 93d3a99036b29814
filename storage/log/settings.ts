// How logs are kept, as one typed object, and what they share. Rule: a setting is checked once,
// when the store opens, and named in the refusal (spec/storage.md §18).

import type { Disk } from "../disk/disk.ts";
import { StorageError } from "../storage_error.ts";
import type { EncodeBuffer } from "./encode_buffer.ts";
import type { OpenSegments } from "./open_segments.ts";
import type { StorageCounters } from "./storage_counters.ts";

/** When written bytes are made to reach the device (spec/storage.md §8.1). */
export type FsyncMode = "none" | "periodic" | "on_commit";

/** How logs are kept. */
export interface LogSettings {
  /** `on_commit`: before an append is acknowledged. */
  readonly fsync: FsyncMode;
  /** A segment is left for a new one before it outgrows this; 60 or more. */
  readonly segmentBytes: number;
  /** Bytes between two entries of a sparse index; 1 or more. */
  readonly indexSpacingBytes: number;
  /** Most records that one read returns; 1 or more. */
  readonly maxRecordsPerRead: number;
  /** Read every segment in full when a log opens. */
  readonly verifyAllOnOpen: boolean;
  /** Cut a last record that does not verify even where it may have been synced. */
  readonly repairChecksumTail: boolean;
}

/** Defaults of spec/storage.md §18. */
export const DEFAULT_LOG_SETTINGS: LogSettings = {
  fsync: "on_commit",
  segmentBytes: 256 * 1024 * 1024,
  indexSpacingBytes: 4096,
  maxRecordsPerRead: 10_000,
  verifyAllOnOpen: false,
  repairChecksumTail: false,
};

/** Smallest segment: a header and a record of no bytes. */
const MIN_SEGMENT_BYTES = 60;

/** Refuses settings out of range with `invalid_config`. */
export function checkLogSettings(settings: LogSettings): void {
  const least: [keyof LogSettings, number][] = [
    ["segmentBytes", MIN_SEGMENT_BYTES],
    ["indexSpacingBytes", 1],
    ["maxRecordsPerRead", 1],
  ];
  for (const [name, minimum] of least) {
    const value = settings[name] as number;
    if (Number.isSafeInteger(value) && value >= minimum) continue;
    throw new StorageError("invalid_config", `${name} is ${value}; it is ${minimum} or more`);
  }
}

/** What the logs of one store share. */
export interface LogEnvironment {
  readonly disk: Disk;
  readonly settings: LogSettings;
  /** Wall clock, microseconds since 1970. */
  readonly nowMicros: () => number;
  readonly encodeBuffer: EncodeBuffer;
  readonly openSegments: OpenSegments;
  readonly counters: StorageCounters;
  /** Told what was found wrong and put right. */
  readonly warn?: (what: string) => void;
}
