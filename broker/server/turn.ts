// What has to happen before the event loop goes on: answers written first, then deliveries.
// A turn handles everything that one read brought; appending to a shard marks its subscribers here,
// and they are served together when the turn's own work is done, without a timer.

import type { Outbox } from "./outbox.ts";

/** Something that has events to send; `deliver` starts its write. */
export interface Deliverer {
  deliver(): void;
}

/** Work put off to the end of the present turn of the event loop. */
export class TurnQueue {
  #outboxes: Outbox[] = [];
  #deliverers: Deliverer[] = [];
  #pump = false;
  #scheduled = false;
  readonly #runPump: () => void;

  /** `pump` runs the publish pipeline. */
  constructor(pump: () => void) {
    this.#runPump = pump;
  }

  /** Flushes `outbox` when the turn's work is done. */
  flushLater(outbox: Outbox): void {
    this.#outboxes.push(outbox);
    this.#schedule();
  }

  /** Lets `deliverer` write when the turn's work is done. */
  deliverLater(deliverer: Deliverer): void {
    this.#deliverers.push(deliverer);
    this.#schedule();
  }

  /** Runs the publish pipeline when the turn's work is done: a subscriber has room again. */
  pumpLater(): void {
    this.#pump = true;
    this.#schedule();
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    queueMicrotask(this.#run);
  }

  readonly #run = (): void => {
    this.#scheduled = false;
    if (this.#pump) {
      this.#pump = false;
      this.#runPump();
    }
    const outboxes = this.#outboxes;
    if (outboxes.length > 0) {
      this.#outboxes = [];
      for (const outbox of outboxes) outbox.flush();
    }
    const deliverers = this.#deliverers;
    if (deliverers.length > 0) {
      this.#deliverers = [];
      for (const deliverer of deliverers) deliverer.deliver();
    }
  };
}
