// The newest batches of one producer (spec/storage.md §5.4), with consecutive sequences. Rule: a
// batch takes 24 bytes and the room grows with what is held, because a shard may know thousands of
// producers most of which wrote once.

import type { RememberedBatch } from "../format/producer_snapshot.ts";

/** Words of a batch: first offset (2), length, whether there is a digest, digest (2). */
const WORDS = 6;
const TWO_TO_32 = 0x1_0000_0000;

/** A ring of batches; when it is full the oldest makes room. */
export class BatchWindow {
  /** Sequence of the newest batch, u64. */
  lastSequence: bigint;
  #words = new Uint32Array(WORDS);
  /** Place of the oldest batch. */
  #oldest = 0;
  #size = 0;

  /** Empty until the first `push`, which gets `firstSequence`; holds at most `limit` batches. */
  constructor(firstSequence: bigint, private readonly limit: number) {
    this.lastSequence = firstSequence - 1n;
  }

  /** Batches held. */
  get size(): number {
    return this.#size;
  }

  /** Adds the batch after the newest. */
  push(first: number, length: number, digest: bigint | null): void {
    if (this.#size === this.limit) {
      this.#oldest = (this.#oldest + 1) % this.#capacity;
    } else {
      if (this.#size === this.#capacity) this.#grow();
      this.#size++;
    }
    this.lastSequence++;
    const at = this.#place(this.#size - 1);
    const words = this.#words;
    words[at] = Math.floor(first / TWO_TO_32);
    words[at + 1] = first % TWO_TO_32;
    words[at + 2] = length;
    words[at + 3] = digest === null ? 0 : 1;
    words[at + 4] = digest === null ? 0 : Number(digest >> 32n);
    words[at + 5] = digest === null ? 0 : Number(digest & 0xFFFF_FFFFn);
  }

  /** The batch with `sequence`; `null` when it is not held. */
  find(sequence: bigint): RememberedBatch | null {
    const age = this.lastSequence - sequence;
    if (age < 0n || age >= BigInt(this.#size)) return null;
    return this.#batch(this.#size - 1 - Number(age));
  }

  /** Drops the batches whose first record is below offset `base`. */
  forgetBelow(base: number): void {
    while (this.#size > 0 && this.#first(0) < base) {
      this.#oldest = (this.#oldest + 1) % this.#capacity;
      this.#size--;
    }
  }

  /** All batches, oldest first. */
  batches(): RememberedBatch[] {
    return Array.from({ length: this.#size }, (_, index) => this.#batch(index));
  }

  get #capacity(): number {
    return this.#words.length / WORDS;
  }

  /** Where the words of a batch begin; 0 is the oldest. */
  #place(index: number): number {
    return ((this.#oldest + index) % this.#capacity) * WORDS;
  }

  #first(index: number): number {
    const at = this.#place(index);
    return this.#words[at]! * TWO_TO_32 + this.#words[at + 1]!;
  }

  #batch(index: number): RememberedBatch {
    const at = this.#place(index);
    const words = this.#words;
    const digest = words[at + 3] === 0
      ? null
      : (BigInt(words[at + 4]!) << 32n) | BigInt(words[at + 5]!);
    return { first: this.#first(index), length: words[at + 2]!, digest };
  }

  #grow(): void {
    const grown = new Uint32Array(Math.min(this.limit, this.#capacity * 2) * WORDS);
    const before = this.#words;
    const turn = this.#oldest * WORDS;
    grown.set(before.subarray(turn));
    grown.set(before.subarray(0, turn), before.length - turn);
    this.#words = grown;
    this.#oldest = 0;
  }
}
