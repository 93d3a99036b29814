// What can go wrong with a log, as typed errors with stable codes. Rule: an operation either did
// nothing, or its error says that the outcome is unknown (spec/storage.md §6, §8.3).

/** Stable code of a storage failure. */
export type StorageCode =
  | "io"
  | "full"
  | "sync_failed"
  | "corruption"
  | "trimmed"
  | "below_commit"
  | "outside_log"
  | "closed"
  | "invalid_range"
  | "invalid_config"
  | "too_large"
  | "offset_mismatch"
  | "locked";

/** Why bytes on disk do not verify (spec/storage.md §3.1, §3.2). */
export type FormatKind =
  | "Truncated"
  | "SegmentMagic"
  | "SegmentVersion"
  | "SegmentFlags"
  | "SegmentHeaderChecksum"
  | "RecordHeaderChecksum"
  | "RecordFlags"
  | "RecordTooLarge"
  | "RecordChecksum"
  | "OffsetOutOfOrder";

/** A failure of the log; `code` is stable, the message is for people. */
export class StorageError extends Error {
  override readonly name: string = "StorageError";

  constructor(readonly code: StorageCode, message: string, options?: ErrorOptions) {
    super(message, options);
  }
}

/** Bytes that must be a valid log and are not. Nothing was changed. */
export class CorruptionError extends StorageError {
  override readonly name = "CorruptionError";

  /** `position` is the byte position of the first bad structure in segment `segment`'s file. */
  constructor(
    readonly kind: FormatKind,
    readonly label: string,
    readonly segment: number,
    readonly position: number,
    detail = "",
  ) {
    const where = `${label}: segment ${segment}, byte ${position}`;
    super("corruption", `${where}: ${kind}${detail === "" ? "" : ` (${detail})`}`);
  }
}

/** The record asked for has been removed by retention, compaction or a purge. */
export class TrimmedError extends StorageError {
  override readonly name = "TrimmedError";

  /** `oldest` is the first offset that the log still holds. */
  constructor(label: string, readonly requested: number, readonly oldest: number) {
    super("trimmed", `${label}: offset ${requested} is gone; the oldest is ${oldest}`);
  }
}

/** A conditional append found another tail; nothing was written. */
export class OffsetMismatchError extends StorageError {
  override readonly name = "OffsetMismatchError";

  constructor(label: string, readonly expected: number, readonly tail: number) {
    super("offset_mismatch", `${label}: expected tail ${expected}, found ${tail}`);
  }
}
