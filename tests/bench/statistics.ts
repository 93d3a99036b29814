// Percentiles and spread of samples. Rule: the index of percentile p over n sorted samples is
// round((n - 1) · p), as in spec/operations.md §14.1, so figures compare with published ones.

/** The sample at percentile `p` (0 to 1) of ascending `sorted`; `null` when there are none. */
export function percentile(sorted: Float64Array | readonly number[], p: number): number | null {
  if (sorted.length === 0) return null;
  return sorted[Math.round((sorted.length - 1) * p)] ?? null;
}

/** The middle value of `values`; of two middle ones the lower. */
export function median(values: readonly number[]): number | null {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor((sorted.length - 1) / 2)] ?? null;
}

/** Largest over smallest of `values`; 1 for fewer than two. */
export function spread(values: readonly number[]): number {
  if (values.length < 2) return 1;
  const least = Math.min(...values);
  return least > 0 ? Math.max(...values) / least : Infinity;
}

/**
 * A bounded set of duration samples. When it is full it keeps every second sample and from then on
 * takes only every second one (then every fourth, ...), so memory stays fixed and the kept samples
 * stay evenly spread over the run.
 */
export class Samples {
  readonly #values: Float64Array;
  #count = 0;
  #stride = 1;
  #skipped = 0;

  constructor(capacity = 1 << 18) {
    this.#values = new Float64Array(capacity);
  }

  /** Number of samples kept. */
  get count(): number {
    return this.#count;
  }

  /** Takes one sample in milliseconds. */
  add(ms: number): void {
    if (++this.#skipped < this.#stride) return;
    this.#skipped = 0;
    if (this.#count === this.#values.length) this.#halve();
    this.#values[this.#count++] = ms;
  }

  /** Median and 99th percentile of what was kept. */
  summary(): { p50Ms: number | null; p99Ms: number | null } {
    const sorted = this.#values.slice(0, this.#count).sort();
    return { p50Ms: percentile(sorted, 0.5), p99Ms: percentile(sorted, 0.99) };
  }

  /** Forgets everything. */
  clear(): void {
    this.#count = 0;
    this.#stride = 1;
    this.#skipped = 0;
  }

  #halve(): void {
    const half = this.#count >> 1;
    for (let index = 0; index < half; index++) {
      this.#values[index] = this.#values[index * 2] ?? 0;
    }
    this.#count = half;
    this.#stride *= 2;
  }
}
