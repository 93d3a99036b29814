// Lets one line of a kind through per interval and counts those it held back, for events that may
// come in thousands: a subscriber that falls behind logs at most once in ten seconds.

const DEFAULT_EVERY_MS = 10_000;

/** A gate for one kind of line of one thing; costs two numbers. */
export class LogGate {
  /** Lines held back since the last one that passed. */
  suppressed = 0;
  #openedMs = -Infinity;

  constructor(readonly everyMs: number = DEFAULT_EVERY_MS) {}

  /** Whether a line may be written now; say in it what `takeSuppressed` answers. */
  open(nowMs: number): boolean {
    if (nowMs - this.#openedMs < this.everyMs) {
      this.suppressed++;
      return false;
    }
    this.#openedMs = nowMs;
    return true;
  }

  /** Lines held back; starts to count anew. */
  takeSuppressed(): number {
    const count = this.suppressed;
    this.suppressed = 0;
    return count;
  }
}
