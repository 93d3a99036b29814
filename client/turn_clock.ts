// The monotonic clock read once per turn of the event loop: calls made together share a reading,
// which is exact enough for deadlines and much cheaper than one reading a call.

import { monotonicMs } from "./runtime/deno.ts";

/** A clock that stands still within a turn. */
export class TurnClock {
  #ms = 0;
  #fresh = false;

  /** Milliseconds since a fixed point that never go back. */
  now(): number {
    if (this.#fresh) return this.#ms;
    this.#fresh = true;
    queueMicrotask(this.#expire);
    return this.#ms = monotonicMs();
  }

  readonly #expire = (): void => {
    this.#fresh = false;
  };
}
