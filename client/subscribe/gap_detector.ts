// Finds lost and repeated records from their offsets (spec/client.md §7.2). Pure. One rule:
// whatever lies between the last offset and the next batch was skipped or lost.

/** What to do with a batch. */
export type BatchVerdict =
  /** Take it, without its first `duplicates` events; `dropped` records are missing before it. */
  { readonly duplicates: number; readonly dropped: bigint };

const FINE: BatchVerdict = { duplicates: 0, dropped: 0n };

/** Follows the offsets of one shard. */
export class GapDetector {
  #expected: bigint | null = null;
  /** Nothing below it is wanted any more. */
  #floor = 0n;

  /** The first offset not seen yet; `null` before the first event. */
  get next(): bigint | null {
    return this.#expected ?? (this.#floor > 0n ? this.#floor : null);
  }

  /** Looks at a batch of `count` events from `base` on, `skipped` empty offsets before it. */
  see(base: bigint, count: number, skipped: bigint): BatchVerdict {
    const expected = this.#expected ?? this.#floor;
    const end = base + BigInt(count);
    if (base < expected) {
      const repeated = expected - base;
      if (end > expected) this.#expected = end;
      return { duplicates: repeated < BigInt(count) ? Number(repeated) : count, dropped: 0n };
    }
    const gap = this.#expected === null ? 0n : base - skipped - expected;
    this.#expected = end;
    return gap > 0n ? { duplicates: 0, dropped: gap } : FINE;
  }

  /** Reading starts again at `next`: what comes first is taken as it is, but nothing below it. */
  resume(next: bigint): void {
    this.#expected = null;
    this.#floor = next;
  }

  /** Reading starts again at a place that is not known. */
  reset(): void {
    this.#expected = null;
    this.#floor = 0n;
  }
}
