// How many publish bytes may be on their way at once. The rule: first come first served, and a
// frame larger than the whole budget waits until nothing is in flight, then takes all of it
// (spec/client.md §5.2).

/** Someone who waits for bytes. */
export interface BudgetWaiter {
  /** Bytes wanted. */
  readonly budgetBytes: number;
  /** Called once when the bytes are theirs. */
  admitted(): void;
}

/** A byte budget with a queue. */
export class ByteBudget {
  readonly #limit: number;
  #used = 0;
  #waiting: (BudgetWaiter | null)[] = [];
  #head = 0;
  #draining = false;

  /** A budget of `limitBytes`. */
  constructor(limitBytes: number) {
    this.#limit = limitBytes;
  }

  /** Bytes taken now. */
  get usedBytes(): number {
    return this.#used;
  }

  /** Takes the bytes if nobody waits and they fit; otherwise queues `waiter` and returns false. */
  acquire(waiter: BudgetWaiter): boolean {
    if (this.#head === this.#waiting.length && this.#fits(waiter.budgetBytes)) {
      this.#used += waiter.budgetBytes;
      return true;
    }
    this.#waiting.push(waiter);
    return false;
  }

  /** Takes a waiter out of the queue; false when it is not in it (any more). */
  cancel(waiter: BudgetWaiter): boolean {
    const at = this.#waiting.indexOf(waiter, this.#head);
    if (at < 0) return false;
    this.#waiting[at] = null;
    this.#admit();
    return true;
  }

  /** Gives bytes back. */
  release(bytes: number): void {
    this.#used -= bytes;
    if (this.#head < this.#waiting.length) this.#admit();
  }

  #fits(bytes: number): boolean {
    return this.#used + bytes <= this.#limit || this.#used === 0;
  }

  #admit(): void {
    if (this.#draining) return;
    this.#draining = true;
    while (this.#head < this.#waiting.length) {
      const waiter = this.#waiting[this.#head]!;
      if (waiter !== null) {
        if (!this.#fits(waiter.budgetBytes)) break;
        this.#used += waiter.budgetBytes;
      }
      this.#waiting[this.#head++] = null;
      waiter?.admitted();
    }
    if (this.#head === this.#waiting.length || this.#head > 1024) {
      this.#waiting = this.#waiting.slice(this.#head);
      this.#head = 0;
    }
    this.#draining = false;
  }
}
