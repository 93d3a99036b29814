// The entries of a cache log that expire, soonest first: a binary heap. An entry that was replaced
// stays in it until it is met or until such entries outnumber the others.

import type { CacheEntry } from "./cache_entry.ts";

const MIN_CLEAN = 64;

/** Entries by their expiry. */
export class ExpiryQueue {
  readonly #isCurrent: (entry: CacheEntry) => boolean;
  #heap: CacheEntry[] = [];
  /** Size at which entries that were replaced are removed. */
  #cleanAt = MIN_CLEAN;

  /** `isCurrent`: the entry has not been replaced. */
  constructor(isCurrent: (entry: CacheEntry) => boolean) {
    this.#isCurrent = isCurrent;
  }

  /** Entries in it, replaced ones included. */
  get size(): number {
    return this.#heap.length;
  }

  /** Takes in an entry that expires. */
  add(entry: CacheEntry): void {
    if (this.#heap.length >= this.#cleanAt) this.#clean();
    this.#heap.push(entry);
    this.#up(this.#heap.length - 1);
  }

  /** Takes out the next entry whose time has passed at `nowMs`; `null` when there is none. */
  takeExpired(nowMs: number): CacheEntry | null {
    for (let first = this.#heap[0]; first?.expired(nowMs); first = this.#heap[0]) {
      this.#removeFirst();
      if (this.#isCurrent(first)) return first;
    }
    return null;
  }

  #clean(): void {
    this.#heap = this.#heap.filter(this.#isCurrent);
    for (let at = (this.#heap.length >> 1) - 1; at >= 0; at--) this.#down(at);
    this.#cleanAt = Math.max(MIN_CLEAN, 2 * this.#heap.length);
  }

  #removeFirst(): void {
    const last = this.#heap.pop()!;
    if (this.#heap.length === 0) return;
    this.#heap[0] = last;
    this.#down(0);
  }

  #up(at: number): void {
    const heap = this.#heap;
    const entry = heap[at]!;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (heap[parent]!.expiresAtMs <= entry.expiresAtMs) break;
      heap[at] = heap[parent]!;
      at = parent;
    }
    heap[at] = entry;
  }

  #down(at: number): void {
    const heap = this.#heap;
    const entry = heap[at]!;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= heap.length) break;
      const right = heap[child + 1];
      if (right !== undefined && right.expiresAtMs < heap[child]!.expiresAtMs) child++;
      if (heap[child]!.expiresAtMs >= entry.expiresAtMs) break;
      heap[at] = heap[child]!;
      at = child;
    }
    heap[at] = entry;
  }
}
