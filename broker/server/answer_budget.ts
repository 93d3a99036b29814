// Bytes of answers that one connection may owe before its requests are left unread: a client that
// asks on a thousand streams and reads none of the answers costs no more than this.

/** Most answer bytes of a connection that are queued at once; one more answer may exceed it. */
export const MAX_OWED_BYTES: number = 32 * 1024 * 1024;

/** What the streams of one connection owe together. */
export class AnswerBudget {
  #owed = 0;
  #waiters: (() => void)[] = [];

  /** `limitBytes`: 1 or more. */
  constructor(private readonly limitBytes: number = MAX_OWED_BYTES) {}

  /** Bytes owed now. */
  get owedBytes(): number {
    return this.#owed;
  }

  /** Whether no further request should be answered yet. */
  get full(): boolean {
    return this.#owed >= this.limitBytes;
  }

  /** Counts bytes in, or out when negative. */
  change(bytes: number): void {
    this.#owed += bytes;
    if (this.full || this.#waiters.length === 0) return;
    const waiters = this.#waiters;
    this.#waiters = [];
    for (const resolve of waiters) resolve();
  }

  /** Resolves when there is room. */
  room(): Promise<void> {
    if (!this.full) return Promise.resolve();
    return new Promise((resolve) => this.#waiters.push(resolve));
  }
}
