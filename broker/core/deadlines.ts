// The publishes that must be answered in time. The earliest deadline is kept as a lower bound, so
// that a shell can arm one timer with it: a look before anything is due costs nothing but the look.

import { DONE } from "./queued_publish.ts";
import type { QueuedPublish } from "./queued_publish.ts";

/** Deadlines that are past use are swept once they outnumber twice what is pending. */
const SLACK = 64;

/** Acked publishes that outlived the turn that brought them. */
export class Deadlines {
  #timed: QueuedPublish[] = [];
  #sweepAt = SLACK;
  #earliestMs = Infinity;

  /** Watches a publish until it is settled. */
  add(publish: QueuedPublish): void {
    this.#timed.push(publish);
    this.#earliestMs = Math.min(this.#earliestMs, publish.deadlineMs);
    if (this.#timed.length >= this.#sweepAt) this.#sweep();
  }

  /** No deadline is before this time; `null` = there is none. */
  nextMs(): number | null {
    if (this.#earliestMs === Infinity) return null;
    const last = this.#timed.at(-1);
    if (last !== undefined && isOver(last)) this.#sweep();
    return this.#timed.length === 0 ? null : this.#earliestMs;
  }

  /** Calls `expired` for every publish whose deadline is `nowMs` or before. */
  expire(nowMs: number, expired: (publish: QueuedPublish) => void): void {
    if (nowMs < this.#earliestMs) return;
    const due = this.#timed.filter((each) => !isOver(each) && each.deadlineMs <= nowMs);
    due.sort((a, b) => a.deadlineMs - b.deadlineMs);
    for (const publish of due) expired(publish);
    this.#sweep();
  }

  #sweep(): void {
    this.#timed = this.#timed.filter((each) => !isOver(each));
    this.#sweepAt = 2 * this.#timed.length + SLACK;
    this.#earliestMs = Infinity;
    for (const { deadlineMs } of this.#timed) {
      if (deadlineMs < this.#earliestMs) this.#earliestMs = deadlineMs;
    }
  }
}

function isOver(publish: QueuedPublish): boolean {
  return publish.settled || publish.state === DONE;
}
