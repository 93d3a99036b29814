// The buffer between the network and the application: batches as they came, counted in events and
// bytes. Its owner decides what happens when it is full.

import { Deque } from "../deque.ts";
import { eventBytes, ReceivedEvent } from "./event.ts";
import type { EventOrigin, QueuedBatch } from "./event.ts";

/** A bounded queue of events. */
export class EventQueue {
  readonly #origin: EventOrigin;
  readonly #maxEvents: number;
  readonly #maxBytes: number;
  readonly #batches: Deque<QueuedBatch> = new Deque();
  #current: QueuedBatch | null = null;
  #events = 0;
  #bytes = 0;

  /** An empty queue that is full at `maxEvents` or `maxBytes`. */
  constructor(origin: EventOrigin, maxEvents: number, maxBytes: number) {
    this.#origin = origin;
    this.#maxEvents = maxEvents;
    this.#maxBytes = maxBytes;
  }

  /** Events in it. */
  get size(): number {
    return this.#events;
  }

  /** Payload bytes in it. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Whether nothing more should be put in. */
  get full(): boolean {
    return this.#events >= this.#maxEvents || this.#bytes >= this.#maxBytes;
  }

  /** Whether it has drained far enough for reading to go on. */
  get roomy(): boolean {
    return this.#events * 2 <= this.#maxEvents && this.#bytes * 2 <= this.#maxBytes;
  }

  /** Puts a batch in; answers its payload bytes. */
  push(batch: QueuedBatch): number {
    const { run, next, at } = batch;
    const events = run.count - next;
    const bytes = run.records.length - at - events * run.prefixBytes;
    this.#events += events;
    this.#bytes += bytes;
    if (this.#current === null) this.#current = batch;
    else this.#batches.push(batch);
    return bytes;
  }

  /** Takes the next event. */
  take(): ReceivedEvent | undefined {
    const batch = this.#current;
    if (batch === null) return undefined;
    const { run, at } = batch;
    const event = new ReceivedEvent(this.#origin, batch, batch.next++, at);
    const bytes = eventBytes(run, at);
    batch.at = at + run.prefixBytes + bytes;
    this.#events--;
    this.#bytes -= bytes;
    if (batch.next === run.count) this.#current = this.#batches.shift() ?? null;
    return event;
  }

  /** Offset of the next event; `null` without one. */
  get headOffset(): bigint | null {
    const batch = this.#current;
    if (batch === null || batch.base === null) return null;
    return batch.base + BigInt(batch.next);
  }

  /** Forgets everything. */
  clear(): void {
    this.#batches.takeAll();
    this.#current = null;
    this.#events = 0;
    this.#bytes = 0;
  }
}
