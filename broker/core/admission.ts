// Whether there is room for one more publish: bytes of its connection, bytes of the process, a slot
// of its tenant, in this order (spec/semantics.md §3, stages 6 and 7). Those that wait are let in
// first come first served, and nobody overtakes a publish that waits for the same room.

import { invariant } from "./core_error.ts";
import type { FairQueue } from "./fair_queue.ts";
import type { ConnectionBudget } from "./publish_job.ts";
import { WAITING } from "./queued_publish.ts";
import type { QueuedPublish } from "./queued_publish.ts";

/** Whether there is room, or which room is missing. */
export type Room = "room" | "connection_bytes" | "process_bytes" | "queue";

/** The budgets of one pipeline and the publishes that wait for them. */
export class Admission {
  /** Bytes charged in the whole process. */
  usedBytes = 0;
  /** Publishes waiting for room. */
  waiting = 0;
  /** Room has been freed since waiting publishes were last looked at. */
  freed = false;
  readonly #queue: FairQueue<QueuedPublish>;
  readonly #limitBytes: number;
  /** In order of arrival; those no longer `WAITING` are skipped and dropped at the next look. */
  #waiters: QueuedPublish[] = [];
  #waitingForProcessBytes = 0;

  /** `limitBytes`: budget of the whole process. */
  constructor(queue: FairQueue<QueuedPublish>, limitBytes: number) {
    this.#queue = queue;
    this.#limitBytes = limitBytes;
  }

  /** Charges the budgets for `publish` if there is room everywhere. */
  enter(publish: QueuedPublish): Room {
    const { budget } = publish.job;
    const { tenant } = publish.lane;
    const connectionBytes = Math.min(publish.bytes, budget.limitBytes);
    if (budget.waiting > 0 || budget.used + connectionBytes > budget.limitBytes) {
      return "connection_bytes";
    }
    const processBytes = Math.min(publish.bytes, this.#limitBytes);
    if (this.#waitingForProcessBytes > 0 || this.usedBytes + processBytes > this.#limitBytes) {
      return "process_bytes";
    }
    if (tenant.waiting > 0 || !this.#queue.admits(tenant)) return "queue";
    budget.used += connectionBytes;
    this.usedBytes += processBytes;
    return "room";
  }

  /** Gives back what `enter` charged. */
  leave(publish: QueuedPublish): void {
    const { budget } = publish.job;
    budget.used -= Math.min(publish.bytes, budget.limitBytes);
    this.usedBytes -= Math.min(publish.bytes, this.#limitBytes);
    this.freed = true;
    invariant(budget.used >= 0 && this.usedBytes >= 0, "B9: a budget is given back once");
  }

  /** Lets `publish` wait for the room that was missing. */
  wait(publish: QueuedPublish, missing: Room): void {
    publish.state = WAITING;
    this.#waiters.push(publish);
    this.waiting++;
    this.#note(publish, missing);
  }

  /** Ends the wait of `publish` without letting it in; the room it stood in front of is free. */
  giveUp(publish: QueuedPublish): void {
    invariant(publish.state === WAITING, "B10: only what waits gives up");
    this.waiting--;
    this.freed = true;
  }

  /** Publishes of one connection that wait. */
  waitersOf(budget: ConnectionBudget): QueuedPublish[] {
    return this.#waiters.filter((each) => each.state === WAITING && each.job.budget === budget);
  }

  /** Lets in those that have room now, oldest first; `admit` queues each. Answers how many. */
  letIn(admit: (publish: QueuedPublish) => void): number {
    if (!this.freed) return 0;
    this.freed = false;
    if (this.#waiters.length === 0) return 0;
    const waiters = this.#waiters;
    this.#waiters = [];
    this.#waitingForProcessBytes = 0;
    for (const each of waiters) {
      each.job.budget.waiting = 0;
      each.lane.tenant.waiting = 0;
    }
    let admitted = 0;
    for (const each of waiters) {
      if (each.state !== WAITING) continue;
      const room = this.enter(each);
      if (room === "room") {
        this.waiting--;
        admitted++;
        admit(each);
      } else {
        this.#waiters.push(each);
        this.#note(each, room);
      }
    }
    return admitted;
  }

  /** Remembers what a waiting publish waits for, so that nobody overtakes it there. */
  #note(publish: QueuedPublish, missing: Room): void {
    if (missing === "connection_bytes") publish.job.budget.waiting++;
    else if (missing === "process_bytes") this.#waitingForProcessBytes++;
    else publish.lane.tenant.waiting++;
  }
}
