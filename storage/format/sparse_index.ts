// The sparse offset index of a segment and its file (spec/storage.md §4). Rule: an accelerator that
// is never believed; every use lands on a record that is verified.
// Ours: the file is written once, when its segment is sealed. The newest segment is scanned in full
// at every open, which makes its index anyway, so a file for it would be written and never read.

import { getU64, setU64 } from "./integers.ts";
import { SEGMENT_HEADER_BYTES } from "./segment_header.ts";

/** Bytes of an index file's header. */
export const INDEX_HEADER_BYTES = 24;
/** Bytes of an entry. */
export const INDEX_ENTRY_BYTES = 16;
/** `FLSI`. */
const MAGIC = 0x464C_5349;
const VERSION = 3;

/** Some records' positions, ascending. */
export class SparseIndex {
  readonly #offsets: number[] = [];
  readonly #positions: number[] = [];
  #bytesSince = 0;

  /** `base` is the offset of the segment's first record; `spacingBytes` 1 or more. */
  constructor(readonly base: number, readonly spacingBytes: number) {}

  /** Entries. */
  get length(): number {
    return this.#offsets.length;
  }

  /** Offset and position of the last entry; `null` when there is none. */
  get last(): { readonly offset: number; readonly position: number } | null {
    const at = this.#offsets.length - 1;
    return at < 0 ? null : { offset: this.#offsets[at]!, position: this.#positions[at]! };
  }

  /** Every record of the segment in turn: an entry at most each `spacingBytes`. */
  add(offset: number, position: number, size: number): void {
    if (this.#offsets.length === 0 || this.#bytesSince >= this.spacingBytes) {
      this.#offsets.push(offset);
      this.#positions.push(position);
      this.#bytesSince = 0;
    }
    this.#bytesSince += size;
  }

  /** A record at or before `offset` from which to read forward; the first when there is none. */
  find(offset: number): { readonly offset: number; readonly position: number } {
    let low = 0;
    let high = this.#offsets.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#offsets[middle]! <= offset) low = middle + 1;
      else high = middle;
    }
    if (low === 0) return { offset: this.base, position: SEGMENT_HEADER_BYTES };
    return { offset: this.#offsets[low - 1]!, position: this.#positions[low - 1]! };
  }

  /** The bytes of the index file. */
  encode(): Uint8Array {
    const bytes = new Uint8Array(INDEX_HEADER_BYTES + INDEX_ENTRY_BYTES * this.length);
    const view = new DataView(bytes.buffer);
    view.setUint32(0, MAGIC);
    view.setUint16(4, VERSION);
    setU64(view, 8, this.base);
    for (let entry = 0; entry < this.length; entry++) {
      const at = INDEX_HEADER_BYTES + INDEX_ENTRY_BYTES * entry;
      setU64(view, at, this.#offsets[entry]!);
      setU64(view, at + 8, this.#positions[entry]!);
    }
    return bytes;
  }

  /**
   * Reads an index file; `null` when it is unusable. A partial last entry is ignored, entries out
   * of order are skipped. Not to be added to.
   */
  static decode(bytes: Uint8Array, base: number, spacingBytes: number): SparseIndex | null {
    if (bytes.length < INDEX_HEADER_BYTES) return null;
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    const version = view.getUint16(4);
    if (view.getUint32(0) !== MAGIC || version < 2 || version > 5) return null;
    if (getU64(view, 8) !== base) return null;
    const index = new SparseIndex(base, spacingBytes);
    let previousOffset = -1;
    let previousPosition = -1;
    for (let at = INDEX_HEADER_BYTES; at + INDEX_ENTRY_BYTES <= bytes.length;) {
      const offset = getU64(view, at);
      const position = getU64(view, at + 8);
      at += INDEX_ENTRY_BYTES;
      if (offset < base || offset <= previousOffset || position <= previousPosition) continue;
      if (position < SEGMENT_HEADER_BYTES) continue;
      index.#offsets.push(previousOffset = offset);
      index.#positions.push(previousPosition = position);
    }
    return index;
  }
}
