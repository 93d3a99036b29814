// A histogram as plain arrays: one bump is an index and an addition, whatever the value.
// It counts per bucket; the exporter turns that into Prometheus' cumulative form at scrape.

/** Bucket edges of the millisecond families: 0.1 ms to 10 s in 1-2-5 steps. */
export const MILLISECOND_BOUNDS: readonly number[] = oneTwoFive(0.1, 10_000);
/** Bucket edges of the second families: the same times in seconds. */
export const SECOND_BOUNDS: readonly number[] = oneTwoFive(0.1, 10_000).map((ms) => ms / 1000);
/** Bucket edges of the size families: powers of 4 from 64 bytes to 16 MiB. */
export const SIZE_BOUNDS: readonly number[] = Array.from({ length: 10 }, (_, i) => 64 * 4 ** i);
/** Bucket edges of the families that count a few things at once: powers of 2 from 1 to 4096. */
export const COUNT_BOUNDS: readonly number[] = Array.from({ length: 13 }, (_, i) => 2 ** i);

/** A histogram with fixed buckets. */
export class Histogram {
  /** Upper edges, ascending; a value equal to an edge belongs to that bucket. */
  readonly bounds: Float64Array;
  /** Values per bucket; the last one holds those above every edge. */
  readonly counts: Float64Array;
  /** Sum of all values. */
  sum = 0;
  /** For each power of two of the smallest edge: the first bucket that can hold such a value. */
  readonly #firstBucket: Uint8Array;

  /** `bounds`: upper edges, ascending, above 0, at most 255. */
  constructor(bounds: readonly number[]) {
    this.bounds = Float64Array.from(bounds);
    this.counts = new Float64Array(bounds.length + 1);
    this.#firstBucket = new Uint8Array(33);
    const smallest = bounds[0] ?? 1;
    for (let power = 0; power <= 32; power++) {
      const least = power === 0 ? 0 : smallest * 2 ** (power - 1);
      const index = bounds.findIndex((bound) => bound >= least);
      this.#firstBucket[power] = index < 0 ? bounds.length : index;
    }
  }

  /** Counts one value; anything that is not above 0 goes to the first bucket. */
  observe(value: number): void {
    const bounds = this.bounds;
    const ratio = value / bounds[0]!;
    // 0 below the smallest edge, else 1 + floor(log2(ratio)); saturates at 32.
    const power = ratio < 4294967296 ? 32 - Math.clz32(ratio > 0 ? ratio : 0) : 32;
    let index = this.#firstBucket[power]!;
    while (index < bounds.length && value > bounds[index]!) index++;
    this.counts[index]!++;
    this.sum += value;
  }

  /** Values counted so far. */
  get count(): number {
    let total = 0;
    for (const count of this.counts) total += count;
    return total;
  }
}

function oneTwoFive(from: number, to: number): number[] {
  const bounds: number[] = [];
  for (let decade = from; decade <= to; decade *= 10) {
    for (const step of [1, 2, 5]) {
      const bound = Number((decade * step).toPrecision(6));
      if (bound <= to) bounds.push(bound);
    }
  }
  return bounds;
}
