// What the index of a cache log knows of one key: where its newest value lies, and while there is
// memory for it the value itself. An entry is replaced, never changed: whoever holds one holds what
// the key was at that moment.

/** The live put of a key. */
export class CacheEntry {
  /** The value while memory holds it; never changed in place. */
  value: Uint8Array | null = null;
  /** Neighbours in the order of use, for `ValueMemory`. */
  newer: CacheEntry | null = null;
  older: CacheEntry | null = null;

  /** An entry whose record lies at `offset`. */
  constructor(
    readonly key: string,
    readonly offset: number,
    /** Offset of the put that wrote the value; a compaction keeps it. */
    readonly version: number,
    /** Unix milliseconds; 0 = never. */
    readonly expiresAtMs: number,
    /** Bytes of the record's payload. */
    readonly bytes: number,
  ) {}

  /** Whether its time has passed (spec/semantics.md §6.1). */
  expired(nowMs: number): boolean {
    return this.expiresAtMs !== 0 && this.expiresAtMs <= nowMs;
  }
}
