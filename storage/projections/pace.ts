// How fast compactions may read and write: one allowance of bytes per second for all logs of a
// store (spec/storage.md §14.2), so that background work leaves the disk to those who wait for it.

/** An allowance that is spent as it accrues. */
export class Pace {
  readonly #bytesPerSecond: number;
  readonly #nowMs: () => number;
  readonly #sleep: (ms: number, signal: AbortSignal) => Promise<void>;
  /** When everything spent so far has accrued. */
  #paidAtMs = 0;

  /** `bytesPerSecond`: 0 = no bound. `sleep` ends early, without an error, when it is aborted. */
  constructor(
    bytesPerSecond: number,
    nowMs: () => number,
    sleep: (ms: number, signal: AbortSignal) => Promise<void>,
  ) {
    this.#bytesPerSecond = bytesPerSecond;
    this.#nowMs = nowMs;
    this.#sleep = sleep;
  }

  /** Spends `bytes` and waits until they have accrued. */
  async spend(bytes: number, signal: AbortSignal): Promise<void> {
    if (this.#bytesPerSecond === 0) return;
    const now = this.#nowMs();
    this.#paidAtMs = Math.max(this.#paidAtMs, now) + (bytes / this.#bytesPerSecond) * 1000;
    if (this.#paidAtMs > now) await this.#sleep(this.#paidAtMs - now, signal);
  }
}
