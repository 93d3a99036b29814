// The changes of a mirror as one reader sees them. The rule: a reader that falls behind holds at
// most one change for each key, the newest; what came and went unseen is not told.

import { Deque } from "../deque.ts";
import type { CacheChange } from "./mirror_state.ts";

interface Waiter {
  resolve(result: IteratorResult<CacheChange, undefined>): void;
  reject(error: unknown): void;
}

const DONE: IteratorReturnResult<undefined> = { done: true, value: undefined };

/** Hands changes to one reader. */
export class ChangeReader implements AsyncIterableIterator<CacheChange, undefined> {
  readonly #onEnded: (reader: ChangeReader) => void;
  readonly #pending = new Map<string, CacheChange>();
  readonly #waiters: Deque<Waiter> = new Deque();
  #ended = false;
  #failure: unknown = null;

  /** Nothing changed yet; `onEnded` is told when the reader has had enough. */
  constructor(onEnded: (reader: ChangeReader) => void) {
    this.#onEnded = onEnded;
  }

  /** Changes that wait to be read. */
  get pending(): number {
    return this.#pending.size;
  }

  /** Takes a change in. */
  push(change: CacheChange): void {
    if (this.#ended) return;
    const waiter = this.#waiters.shift();
    if (waiter !== undefined) return waiter.resolve({ done: false, value: change });
    const { key, value } = change;
    const unseen = this.#pending.get(key);
    if (unseen === undefined) {
      this.#pending.set(key, change);
      return;
    }
    const { previous } = unseen;
    if (value === null && previous === undefined) this.#pending.delete(key);
    else this.#pending.set(key, { key, value, previous });
  }

  /** Nothing more comes; `failure` is told once, behind what waits. */
  end(failure: unknown): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#failure = failure;
    for (const waiter of this.#waiters.takeAll()) this.#answer(waiter);
  }

  next(): Promise<IteratorResult<CacheChange, undefined>> {
    return new Promise((resolve, reject) => {
      const waiter = { resolve, reject };
      for (const [key, change] of this.#pending) {
        this.#pending.delete(key);
        return resolve({ done: false, value: change });
      }
      if (this.#ended) this.#answer(waiter);
      else this.#waiters.push(waiter);
    });
  }

  return(): Promise<IteratorResult<CacheChange, undefined>> {
    this.#pending.clear();
    this.end(null);
    this.#onEnded(this);
    return Promise.resolve(DONE);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  #answer(waiter: Waiter): void {
    const failure = this.#failure;
    this.#failure = null;
    if (failure === null) waiter.resolve(DONE);
    else waiter.reject(failure);
  }
}
