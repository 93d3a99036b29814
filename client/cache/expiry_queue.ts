// Keys by the time they expire: a binary heap. Pure. A key that got another time leaves its old
// place behind; the owner tells whether a place still counts, and the heap is rebuilt once most of
// it does not.

/** A key and when it expires. */
export interface Expiry {
  readonly key: string;
  /** Milliseconds since the Unix epoch. */
  readonly atMs: number;
}

/** Places that a heap may hold that count no more, before it is rebuilt. */
const SPARE = 64;

/** The keys that expire, the next one first. */
export class ExpiryQueue {
  readonly #counts: (expiry: Expiry) => boolean;
  #heap: Expiry[] = [];

  /** Empty; `counts` tells whether a key still expires at that time. */
  constructor(counts: (expiry: Expiry) => boolean) {
    this.#counts = counts;
  }

  /** Places held. */
  get size(): number {
    return this.#heap.length;
  }

  /** Adds a key; `live` keys expire at present. */
  add(expiry: Expiry, live: number): void {
    if (this.#heap.length >= 2 * live + SPARE) this.#rebuild();
    this.#heap.push(expiry);
    this.#rise(this.#heap.length - 1);
  }

  /** The next key that expires. */
  peek(): Expiry | undefined {
    while (this.#heap.length > 0 && !this.#counts(this.#heap[0]!)) this.#removeFirst();
    return this.#heap[0];
  }

  /** Takes the next key if its time has come. */
  due(nowMs: number): Expiry | undefined {
    const first = this.peek();
    if (first === undefined || first.atMs > nowMs) return undefined;
    this.#removeFirst();
    return first;
  }

  #rebuild(): void {
    const kept = new Map<string, Expiry>();
    for (const expiry of this.#heap) if (this.#counts(expiry)) kept.set(expiry.key, expiry);
    // In order of time an array is a heap.
    this.#heap = [...kept.values()].sort((a, b) => a.atMs - b.atMs);
  }

  #removeFirst(): void {
    const last = this.#heap.pop()!;
    if (this.#heap.length === 0) return;
    this.#heap[0] = last;
    this.#sink();
  }

  #rise(from: number): void {
    const heap = this.#heap;
    for (let at = from; at > 0;) {
      const above = (at - 1) >> 1;
      if (heap[above]!.atMs <= heap[at]!.atMs) return;
      [heap[above], heap[at]] = [heap[at]!, heap[above]!];
      at = above;
    }
  }

  #sink(): void {
    const heap = this.#heap;
    for (let at = 0;;) {
      const left = 2 * at + 1;
      if (left >= heap.length) return;
      const right = left + 1;
      const least = right < heap.length && heap[right]!.atMs < heap[left]!.atMs ? right : left;
      if (heap[at]!.atMs <= heap[least]!.atMs) return;
      [heap[at], heap[least]] = [heap[least]!, heap[at]!];
      at = least;
    }
  }
}
