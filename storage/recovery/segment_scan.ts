// Reads a segment from its head or from a known record to its end and says where the valid bytes
// stop and why (spec/storage.md §10.2). Rule: only what is provably an unfinished write at the end
// is called torn, everything else that does not verify is corruption. It never writes.

import type { DiskFile } from "../disk/disk.ts";
import { RECORD_HEADER_BYTES, RecordCursor, RecordKind } from "../format/record.ts";
import { decodeSegmentHeader, SEGMENT_HEADER_BYTES } from "../format/segment_header.ts";
import type { SegmentHeader } from "../format/segment_header.ts";
import { SparseIndex } from "../format/sparse_index.ts";
import { CorruptionError } from "../storage_error.ts";
import type { FormatKind } from "../storage_error.ts";
import { FileWindow } from "./file_window.ts";

const MARKS = RecordKind.batchStart | RecordKind.batchContinuation;

/** What may be taken for an unfinished write. */
export interface TailRepair {
  /** A last record that does not verify may be cut, though it could have been synced. */
  readonly checksumTail: boolean;
  /** Bytes from here on were never reported synced; `null`: that is not known. */
  readonly unsyncedFrom: number | null;
}

/** What to scan. */
export interface ScanRequest {
  readonly label: string;
  readonly segment: number;
  readonly file: DiskFile;
  /** Bytes to look at; the file's size, or less when a cut is planned. */
  readonly length: number;
  /** A record to begin at; the head when absent. */
  readonly from?: { readonly offset: number; readonly position: number };
  /** `null`: nothing may be repaired. */
  readonly repair: TailRepair | null;
  readonly indexSpacingBytes: number;
}

/** Why and where a segment stops being valid. */
export interface TornTail {
  readonly cause: FormatKind;
  readonly discardedBytes: number;
}

/** What a scan found. */
export interface SegmentScan {
  readonly header: SegmentHeader;
  /** Offset after the last valid record. */
  readonly next: number;
  /** Bytes that are valid. */
  readonly validBytes: number;
  /** Time of the newest record; 0 when none was seen. */
  readonly newestTimestampMicros: number;
  /** Made from the head only. */
  readonly index: SparseIndex | null;
  readonly torn: TornTail | null;
  /** Offset of the first record seen that carries a producer mark. */
  readonly firstMark: number | null;
}

/** Reads and judges the header of a segment file. */
export async function readSegmentHeader(
  file: DiskFile,
  length: number,
  label: string,
  segment: number,
): Promise<SegmentHeader> {
  const bytes = new Uint8Array(Math.min(SEGMENT_HEADER_BYTES, length));
  if (bytes.length > 0) await file.read(bytes, 0);
  const header = decodeSegmentHeader(bytes);
  if (typeof header === "string") throw new CorruptionError(header, label, segment, 0);
  return header;
}

/** Scans a segment; corruption is thrown. */
export async function scanSegment(request: ScanRequest): Promise<SegmentScan> {
  const { file, length, label, segment, from } = request;
  const header = await readSegmentHeader(file, length, label, segment);
  const index = from === undefined ? new SparseIndex(header.base, request.indexSpacingBytes) : null;
  const window = new FileWindow(file, length);
  const cursor = new RecordCursor();
  let position = from?.position ?? SEGMENT_HEADER_BYTES;
  let next = from?.offset ?? header.base;
  let newestTimestampMicros = 0;
  let firstMark: number | null = null;
  while (position < length) {
    const read = readRecord(window, cursor, position, header.version, next);
    const failure = read instanceof Promise ? await read : read;
    if (failure !== null) {
      const torn = await judge(request, window, position, failure);
      if (torn === null) throw new CorruptionError(failure.kind, label, segment, position);
      return { header, next, validBytes: position, newestTimestampMicros, index, torn, firstMark };
    }
    index?.add(next, position, cursor.size);
    newestTimestampMicros = cursor.timestampMicros;
    if ((cursor.kind & MARKS) !== 0) firstMark ??= next;
    position += cursor.size;
    next++;
  }
  return {
    header,
    next,
    validBytes: position,
    newestTimestampMicros,
    index,
    torn: null,
    firstMark,
  };
}

/** What is wrong with a record. */
export interface RecordFailure {
  readonly kind: FormatKind;
  /** Size of the record by its verified header; 0 when the header does not verify. */
  readonly claimed: number;
}

/**
 * Reads and verifies the record at `position`, which has to be number `expected`; `cursor` then
 * describes it and it is whole in the window. `null`: it is good. The answer comes at once when the
 * window holds the record.
 */
export function readRecord(
  window: FileWindow,
  cursor: RecordCursor,
  position: number,
  version: number,
  expected: number,
): RecordFailure | null | Promise<RecordFailure | null> {
  const left = window.length - position;
  if (left < RECORD_HEADER_BYTES) return TRUNCATED;
  if (!window.holds(position, RECORD_HEADER_BYTES)) {
    return loadAndRead(window, cursor, position, version, expected, RECORD_HEADER_BYTES);
  }
  const at = position - window.start;
  const kind = cursor.readHeader(window.bytes, window.view, at, version);
  if (kind !== null) {
    return { kind, claimed: kind === "RecordHeaderChecksum" ? 0 : cursor.size };
  }
  const { size } = cursor;
  if (size > left) return { kind: "Truncated", claimed: size };
  if (!window.holds(position, size)) {
    return loadAndRead(window, cursor, position, version, expected, size);
  }
  if (!cursor.verifies(window.bytes, window.view, at)) {
    return { kind: "RecordChecksum", claimed: size };
  }
  return cursor.offset === expected ? null : { kind: "OffsetOutOfOrder", claimed: size };
}

async function loadAndRead(
  window: FileWindow,
  cursor: RecordCursor,
  position: number,
  version: number,
  expected: number,
  count: number,
): Promise<RecordFailure | null> {
  await window.load(position, count);
  return readRecord(window, cursor, position, version, expected);
}

const TRUNCATED: RecordFailure = { kind: "Truncated", claimed: 0 };

/** Whether what failed is an unfinished write. */
async function judge(
  { repair, length }: ScanRequest,
  window: FileWindow,
  position: number,
  { kind, claimed }: RecordFailure,
): Promise<TornTail | null> {
  if (repair === null) return null;
  const torn = { cause: kind, discardedBytes: length - position };
  if (kind === "Truncated") return torn;
  const { unsyncedFrom, checksumTail } = repair;
  if (unsyncedFrom !== null && position >= unsyncedFrom) return torn;
  if (checksumTail) {
    const reach = kind === "RecordHeaderChecksum" ? RECORD_HEADER_BYTES : claimed;
    const past = position + reach - length;
    if (kind === "RecordTooLarge" ? past > 0 : kind !== "RecordFlags" && past >= 0) return torn;
  }
  const zeroes = await startOfTrailingZeroes(window, position);
  const end = Math.min(position + (claimed || RECORD_HEADER_BYTES), length);
  return zeroes === position || Math.ceil(zeroes / 512) * 512 < end ? torn : null;
}

/** Where the run of zero bytes that ends the file begins, looking no further back than `floor`. */
async function startOfTrailingZeroes(window: FileWindow, floor: number): Promise<number> {
  let end = window.length;
  while (end > floor) {
    const start = Math.max(floor, end - window.windowBytes);
    await window.load(start, end - start);
    for (let at = end - start - 1; at >= 0; at--) {
      if (window.bytes[at] !== 0) return start + at + 1;
    }
    end = start;
  }
  return floor;
}
