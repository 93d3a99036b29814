// Operations on one log in the order in which they were asked for. Rule: an operation that needs no
// waiting runs at once, in the caller's turn, unless another one is still at work.

/** Runs operations one after the other. */
export class OperationQueue {
  #last: Promise<void> | null = null;

  /** Whether an operation is at work or waits. */
  get busy(): boolean {
    return this.#last !== null;
  }

  /** Runs `operation` after those before it; its result comes at once when nothing had to wait. */
  run<Result>(operation: () => Result | Promise<Result>): Result | Promise<Result> {
    if (this.#last !== null) return this.#track(this.#last.then(operation));
    const result = operation();
    return result instanceof Promise ? this.#track(result) : result;
  }

  #track<Result>(result: Promise<Result>): Promise<Result> {
    const done = () => {
      if (this.#last === settled) this.#last = null;
    };
    const settled: Promise<void> = result.then(done, done);
    this.#last = settled;
    return result;
  }
}
