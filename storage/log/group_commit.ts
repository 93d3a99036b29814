// One flush for everything that was written before it began (spec/storage.md §8.2). Rules: at most
// one flush runs at a time; the durable bound only rises; a failed flush is final, since what a
// second one would say about the same bytes cannot be believed (§8.3).

import type { StorageError } from "../storage_error.ts";

interface Waiter {
  readonly target: number;
  readonly resolve: () => void;
  readonly reject: (error: StorageError) => void;
}

/** Who waits for which offset to be durable. */
export class GroupCommit {
  /** Everything below is on the device. */
  durable: number;
  /** Why nothing will become durable any more. */
  failure: StorageError | null = null;

  readonly #flush: (waiters: number) => Promise<number>;
  #waiters: Waiter[] = [];
  #running: Promise<void> | null = null;

  /**
   * `flush` makes everything durable that was written when it is called and resolves to the bound;
   * it gets the number of waiters that it may serve, and does not reject but with a `StorageError`.
   */
  constructor(durable: number, flush: (waiters: number) => Promise<number>) {
    this.durable = durable;
    this.#flush = flush;
  }

  /** The flush that runs; `null` when none does. */
  get running(): Promise<void> | null {
    return this.#running;
  }

  /** Resolves when everything below `target` is durable. */
  wait(target: number): Promise<void> {
    if (this.failure !== null) return Promise.reject(this.failure);
    if (this.durable >= target) return Promise.resolve();
    return new Promise((resolve, reject) => {
      this.#waiters.push({ target, resolve, reject });
      this.#running ??= this.#run();
    });
  }

  /** The bound moves to `durable` by other means than a flush of this object: a seal, a cut. */
  move(durable: number): void {
    this.durable = durable;
    this.#settle();
  }

  /** Nothing becomes durable any more: every waiter, now and later, gets `failure`. */
  fail(failure: StorageError): void {
    this.failure ??= failure;
    const waiters = this.#waiters;
    this.#waiters = [];
    for (const { reject } of waiters) reject(this.failure);
  }

  async #run(): Promise<void> {
    try {
      // Appends of this turn ride the same flush.
      await null;
      while (this.#waiters.length > 0 && this.failure === null) {
        const durable = await this.#flush(this.#waiters.length);
        if (durable > this.durable) this.durable = durable;
        this.#settle();
      }
    } catch (error) {
      this.fail(error as StorageError);
    } finally {
      this.#running = null;
    }
  }

  #settle(): void {
    const waiting = this.#waiters;
    if (waiting.length === 0) return;
    this.#waiters = [];
    for (const waiter of waiting) {
      if (waiter.target <= this.durable) waiter.resolve();
      else this.#waiters.push(waiter);
    }
  }
}
