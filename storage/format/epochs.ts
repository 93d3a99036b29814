// The bytes and rules of `epochs` (spec/storage.md §5.2): at which offset each leadership
// generation began to write. Rule: it is not authoritative, so whatever does not verify reads as
// no history; what is lost by that is the automatic repair of a divergence, never a record.

import { crc32 } from "./crc32.ts";
import { getU64, setU64 } from "./integers.ts";

/** `FLEP`. */
const MAGIC = 0x464C_4550;
const VERSION = 1;
const HEADER_BYTES = 12;
const ENTRY_BYTES = 16;

/** Most generations remembered; the newest stay (spec/storage.md §5.2, our bound). */
export const MAX_EPOCHS = 1024;

/** `generation` wrote the records from offset `start` up to the next entry's start. */
export interface Epoch {
  /** 0 to 2^53 - 1; ascends strictly in a history. */
  readonly generation: number;
  /** Offset of the generation's first record, 0 to 2^53 - 1; never falls in a history. */
  readonly start: number;
}

/** The bytes of a history, oldest generation first; of more than 1024 entries the newest. */
export function encodeEpochs(history: readonly Epoch[]): Uint8Array {
  const entries = history.slice(-MAX_EPOCHS);
  const bytes = new Uint8Array(HEADER_BYTES + entries.length * ENTRY_BYTES);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, MAGIC);
  view.setUint16(4, VERSION);
  view.setUint16(6, entries.length);
  entries.forEach(({ generation, start }, index) => {
    setU64(view, HEADER_BYTES + index * ENTRY_BYTES, generation);
    setU64(view, HEADER_BYTES + index * ENTRY_BYTES + 8, start);
  });
  view.setUint32(8, crc32(bytes, HEADER_BYTES, bytes.length));
  return bytes;
}

/**
 * Reads a history, oldest generation first. Empty when the bytes are short, longer than their count
 * says, of another version, fail their checksum or do not ascend.
 */
export function decodeEpochs(bytes: Uint8Array): Epoch[] {
  if (bytes.length < HEADER_BYTES) return [];
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  if (view.getUint32(0) !== MAGIC || view.getUint16(4) !== VERSION) return [];
  if (bytes.length !== HEADER_BYTES + view.getUint16(6) * ENTRY_BYTES) return [];
  if (view.getUint32(8) !== crc32(bytes, HEADER_BYTES, bytes.length)) return [];
  const history: Epoch[] = [];
  let before: Epoch = { generation: -1, start: 0 };
  for (let at = HEADER_BYTES; at < bytes.length; at += ENTRY_BYTES) {
    const entry = { generation: getU64(view, at), start: getU64(view, at + 8) };
    if (entry.generation <= before.generation || entry.start < before.start) return [];
    history.push(entry);
    before = entry;
  }
  return history.slice(-MAX_EPOCHS);
}

/**
 * The history with `epoch` at its end. The same history when the generation is at or below its
 * newest, or when `start` is below the newest's: the entry could not be true of an append-only log.
 */
export function addEpoch(history: readonly Epoch[], epoch: Epoch): readonly Epoch[] {
  const newest = history.at(-1);
  if (newest !== undefined) {
    if (epoch.generation <= newest.generation || epoch.start < newest.start) return history;
  }
  return [...history.slice(1 - MAX_EPOCHS), epoch];
}

/**
 * What is left of a history when the log begins at offset `base`: without the generations whose
 * records are all gone, and at most the newest 1024.
 */
export function pruneEpochs(history: readonly Epoch[], base: number): readonly Epoch[] {
  const kept = history.findIndex((_, index) => {
    const next = history[index + 1];
    return next === undefined || next.start > base;
  });
  const oldest = Math.max(0, kept, history.length - MAX_EPOCHS);
  return oldest === 0 ? history : history.slice(oldest);
}

/** What is left of a history when the log is cut at offset `cut` (spec/storage.md §11). */
export function cutEpochs(history: readonly Epoch[], cut: number): readonly Epoch[] {
  return history.filter(({ start }) => start < cut);
}
