// The time limit and the abort signal of one call. The rule: whatever a call waits for, it waits
// for through its guard, so that both are honoured everywhere, and nothing is left behind when the
// call is over (spec/client.md §15).

import { InvalidArgumentError, TimeoutError } from "./failure/classes.ts";
import { monotonicMs } from "./runtime/deno.ts";
import type { CallOptions } from "./types.ts";

/** Checks `timeoutMs`. @throws {InvalidArgumentError} */
export function checkTimeout(timeoutMs: number | undefined, operation: string): void {
  if (timeoutMs === undefined || (Number.isFinite(timeoutMs) && timeoutMs > 0)) return;
  throw new InvalidArgumentError({
    message: `timeoutMs must be a positive number, not ${timeoutMs}`,
    operation,
  });
}

/**
 * Watches the signal and the explicit time limit of a call on a hot path; `null` when it has
 * neither, so that such a call costs no listener, timer or closure that stays. Returns how to stop.
 */
export function watchCall(
  options: CallOptions,
  cancel: (reason: unknown) => void,
  expire: () => void,
): (() => void) | null {
  const { signal, timeoutMs } = options;
  if (signal === undefined && timeoutMs === undefined) return null;
  const onAbort = (): void => cancel(signal?.reason);
  signal?.addEventListener("abort", onAbort, { once: true });
  const timer = timeoutMs === undefined ? undefined : setTimeout(expire, timeoutMs);
  return () => {
    signal?.removeEventListener("abort", onAbort);
    clearTimeout(timer);
  };
}

/** Time and abort of one call; `dispose` it when the call is over. */
export class CallGuard {
  /** When the call began, on the monotonic clock. */
  readonly startedMs: number = monotonicMs();
  readonly #operation: string;
  readonly #timeoutMs: number;
  readonly #signal: AbortSignal | undefined;
  readonly #abort = new AbortController();
  readonly #cancelled: Promise<never>;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #reject!: (reason: unknown) => void;

  /** Starts the clock. @throws the signal's reason when it has fired already */
  constructor(operation: string, options: CallOptions, defaultTimeoutMs: number) {
    checkTimeout(options.timeoutMs, operation);
    options.signal?.throwIfAborted();
    this.#operation = operation;
    this.#timeoutMs = options.timeoutMs ?? defaultTimeoutMs;
    this.#signal = options.signal;
    this.#cancelled = new Promise<never>((_, reject) => {
      this.#reject = reject;
    });
    this.#cancelled.catch(() => undefined);
    this.#signal?.addEventListener("abort", this.#onAbort, { once: true });
    if (this.#timeoutMs !== Infinity) {
      this.#timer = setTimeout(() => this.cancel(this.#expired()), this.#timeoutMs);
    }
  }

  /** Fires when the call is given up, for things that take a signal. */
  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** Milliseconds since the call began. */
  get elapsedMs(): number {
    return monotonicMs() - this.startedMs;
  }

  /** Resolves as `promise` does, or rejects when the call is given up first. */
  wait<T>(promise: Promise<T>): Promise<T> {
    return Promise.race([promise, this.#cancelled]);
  }

  /** Waits. */
  async delay(delayMs: number): Promise<void> {
    let timer: ReturnType<typeof setTimeout> | undefined;
    try {
      await this.wait(
        new Promise<void>((resolve) => {
          timer = setTimeout(resolve, delayMs);
        }),
      );
    } finally {
      clearTimeout(timer);
    }
  }

  /** Throws when the call has been given up. */
  check(): void {
    this.signal.throwIfAborted();
  }

  /** Gives the call up for `reason`. */
  cancel(reason: unknown): void {
    this.#reject(reason);
    if (!this.#abort.signal.aborted) this.#abort.abort(reason);
    this.dispose();
  }

  /** Stops the clock; the guard stays usable but nothing ends the call any more. */
  dispose(): void {
    clearTimeout(this.#timer);
    this.#signal?.removeEventListener("abort", this.#onAbort);
  }

  readonly #onAbort = (): void => this.cancel(this.#signal?.reason);

  #expired(): TimeoutError {
    return new TimeoutError(this.#timeoutMs, {
      message: `${this.#operation} took longer than ${this.#timeoutMs} ms`,
      operation: this.#operation,
      retryable: false,
    });
  }
}
