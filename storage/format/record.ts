// One record of a segment (spec/storage.md §3.2, §3.3). Rule: a length is believed only after the
// header's own checksum verified it, so no byte on disk sizes an allocation by itself.

import type { FormatKind } from "../storage_error.ts";
import { crc32 } from "./crc32.ts";
import { getU64, setU64 } from "./integers.ts";

/** Bytes before a record's tag or payload. */
export const RECORD_HEADER_BYTES = 28;
/** Bytes of the tag that opens a producer batch. */
export const TAG_BYTES = 20;
/** Largest payload: 64 MiB. */
export const MAX_PAYLOAD_BYTES = 64 * 1024 * 1024;

const LENGTH_MASK = 0x0FFF_FFFF;

/** What a record is; the value is its bit of the length field. */
export const RecordKind = {
  plain: 0,
  /** Opens a producer batch and carries its tag. */
  batchStart: 0x8000_0000,
  /** Continues the batch that the record before belongs to. */
  batchContinuation: 0x4000_0000,
  /** A leadership generation begins; seen by replication only. */
  generationStart: 0x2000_0000,
  /** An event and state changes, all or nothing. */
  commit: 0x1000_0000,
} as const;

/** One of `RecordKind`. */
export type RecordKind = typeof RecordKind[keyof typeof RecordKind];

/** What opens a producer batch. */
export interface BatchTag {
  /** u64. */
  readonly producerId: bigint;
  /** u64. */
  readonly sequence: bigint;
  /** Records of the batch, this one included; 1 or more. */
  readonly length: number;
}

/** A record to be appended. */
export interface NewRecord {
  readonly payload: Uint8Array;
  /** Plain when absent; `tag` makes it `batchStart`. */
  readonly kind?: RecordKind;
  readonly tag?: BatchTag;
}

/** A record of the log. `payload` is a view of the buffer that was read. */
export interface LogRecord {
  readonly offset: number;
  /** Wall clock at the append, microseconds since 1970. */
  readonly timestampMicros: number;
  readonly kind: RecordKind;
  readonly tag: BatchTag | null;
  readonly payload: Uint8Array;
}

/** The kind that a new record has. */
export function kindOf(record: NewRecord): RecordKind {
  return record.tag !== undefined ? RecordKind.batchStart : record.kind ?? RecordKind.plain;
}

/** Oldest segment version that may hold records of this kind (§3.3). */
export function versionFor(kind: RecordKind): number {
  switch (kind) {
    case RecordKind.plain:
      return 2;
    case RecordKind.generationStart:
      return 4;
    case RecordKind.commit:
      return 5;
    default:
      return 3;
  }
}

/** Bytes that a record takes in a segment. */
export function recordSize(record: NewRecord): number {
  const tag = record.tag === undefined ? 0 : TAG_BYTES;
  return RECORD_HEADER_BYTES + tag + record.payload.length;
}

/**
 * Writes a record into `bytes` at `at`, where it must fit; `view` covers the same bytes. Returns
 * the position after it.
 */
export function encodeRecord(
  bytes: Uint8Array,
  view: DataView,
  at: number,
  record: NewRecord,
  offset: number,
  timestampMicros: number,
): number {
  const { payload, tag } = record;
  view.setUint32(at, (payload.length | kindOf(record)) >>> 0);
  setU64(view, at + 4, offset);
  setU64(view, at + 12, timestampMicros);
  const headerSum = crc32(bytes, at, at + 20);
  view.setUint32(at + 20, headerSum);
  let end = at + RECORD_HEADER_BYTES;
  if (tag !== undefined) {
    view.setBigUint64(end, tag.producerId);
    view.setBigUint64(end + 8, tag.sequence);
    view.setUint32(end + 16, tag.length);
    end += TAG_BYTES;
  }
  bytes.set(payload, end);
  const next = end + payload.length;
  const head = crc32(bytes, at + 20, at + 24, headerSum);
  view.setUint32(at + 24, crc32(bytes, at + RECORD_HEADER_BYTES, next, head));
  return next;
}

/** Reads records one after the other without making an object for each. */
export class RecordCursor {
  /** Of the record whose header was read last. */
  kind: RecordKind = RecordKind.plain;
  offset = 0;
  timestampMicros = 0;
  payloadBytes = 0;
  /** Whole size in the segment. */
  size = 0;

  /**
   * Reads the header at `at`, of which all 28 bytes are there; `null` when it verifies. On
   * `RecordTooLarge` `payloadBytes` holds what it claimed; on other failures nothing is known.
   */
  readHeader(bytes: Uint8Array, view: DataView, at: number, version: number): FormatKind | null {
    if (view.getUint32(at + 20) !== crc32(bytes, at, at + 20)) return "RecordHeaderChecksum";
    const word = view.getUint32(at);
    const kind = (word & ~LENGTH_MASK) >>> 0;
    this.payloadBytes = word & LENGTH_MASK;
    this.kind = kind as RecordKind;
    this.size = RECORD_HEADER_BYTES + this.payloadBytes +
      (kind === RecordKind.batchStart ? TAG_BYTES : 0);
    if ((kind & (kind - 1)) !== 0 || versionFor(this.kind) > version) return "RecordFlags";
    if (this.payloadBytes > MAX_PAYLOAD_BYTES) return "RecordTooLarge";
    this.offset = getU64(view, at + 4);
    this.timestampMicros = Math.max(0, getU64(view, at + 12));
    return null;
  }

  /**
   * Whether the whole record at `at`, whose header was read last and verified, has the checksum it
   * claims.
   */
  verifies(bytes: Uint8Array, view: DataView, at: number): boolean {
    const head = crc32(bytes, at + 20, at + 24, view.getUint32(at + 20));
    const sum = crc32(bytes, at + RECORD_HEADER_BYTES, at + this.size, head);
    return sum === view.getUint32(at + 24);
  }

  /** The tag of the record at `at`, whose header was read last; `null` unless it opens a batch. */
  tag(view: DataView, at: number): BatchTag | null {
    if (this.kind !== RecordKind.batchStart) return null;
    const start = at + RECORD_HEADER_BYTES;
    return {
      producerId: view.getBigUint64(start),
      sequence: view.getBigUint64(start + 8),
      length: view.getUint32(start + 16),
    };
  }

  /** The record at `at`, whose header was read last; its payload is a view of `bytes`. */
  record(bytes: Uint8Array, view: DataView, at: number): LogRecord {
    const end = at + this.size;
    return {
      offset: this.offset,
      timestampMicros: this.timestampMicros,
      kind: this.kind,
      tag: this.tag(view, at),
      payload: bytes.subarray(end - this.payloadBytes, end),
    };
  }
}
