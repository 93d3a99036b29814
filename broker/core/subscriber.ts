// The queue of one subscription: envelopes, bounded in number and in bytes. What it was offered is
// always what was taken, is queued, was dropped or was discarded at its close (B4), in records.
// A backlog stands in front of the live envelopes and is outside the bounds: it is never dropped.

import { invariant } from "./core_error.ts";
import type { Delivery, Envelope } from "./envelope.ts";
import { RECORD_PREFIX_BYTES } from "./record_batch.ts";
import { Ring } from "./ring.ts";
import type { StreamShard } from "./stream_shard.ts";

/** What happens to an envelope that meets a full queue (spec/semantics.md §4.2). */
export type QueuePolicy = "drop_new" | "drop_old" | "block";

/** Bytes that one subscriber's queue may hold unless told otherwise. */
export const DEFAULT_SUBSCRIBER_BYTES: number = 16 * 1024 * 1024;

/** Bounds and policy of one subscription's queue. */
export interface SubscriberOptions {
  /** What a full queue does. */
  readonly policy: QueuePolicy;
  /** Live envelopes it may hold; 1 or more. */
  readonly capacityEnvelopes: number;
  /**
   * Bytes of live records it may hold, the lengths in front of them included: else empty ones were
   * free. One envelope fits an empty queue in any case.
   */
  readonly budgetBytes?: number;
  /** After the first drop it takes nothing more: the subscription ends there and is resumed. */
  readonly endsAtDrop?: boolean;
}

/** Counted over all subscribers (spec/operations.md §9.2). */
export interface DeliveryCounters {
  /** Records dropped for slow subscribers. */
  dropped: number;
  /** Those of them that `drop_old` discarded. */
  dropOldEmulated: number;
  /** Envelopes put into queues, backlog included. */
  enqueued: number;
  /** Envelopes taken out of queues. */
  dequeued: number;
  /** Gauge: envelopes queued. */
  queueLength: number;
}

/** One subscription of one shard; made by `StreamShard.subscribe`. */
export class Subscriber {
  /** Called when the queue goes from empty to not empty. It must not publish. */
  onReady: (() => void) | null = null;
  /** Records offered so far, backlog included. */
  offered = 0;
  /** Records taken so far. */
  taken = 0;
  /** Records dropped so far. */
  dropped = 0;
  /** Records that were queued when the subscription closed. */
  discarded = 0;
  /** Sequence of the first dropped record; -1 = none was. */
  firstDroppedAt = -1;
  /** Records queued now. */
  queuedRecords = 0;
  /** Bytes queued now, lengths and backlog included. */
  queuedBytes = 0;
  /** `false` once closed: it is offered nothing more. */
  open = true;
  /** Offset of the first record that it has yet to get from history; `null` = it is live. */
  historyFrom: number | null = null;
  /** Place in the shard's list of subscribers; the shard's own. */
  slot = -1;

  /** What a full queue does. */
  readonly policy: QueuePolicy;
  /** Live envelopes it may hold. */
  readonly capacityEnvelopes: number;
  /** Bytes of live records it may hold. */
  readonly budgetBytes: number;
  readonly #endsAtDrop: boolean;
  readonly #queue = new Ring<Delivery>();
  readonly #counters: DeliveryCounters;
  /** How many of the queued deliveries are backlog, and their bytes: outside the bounds. */
  #backlogEnvelopes = 0;
  #backlogBytes = 0;
  /** The shard has been told that this queue holds it up. */
  #blocking = false;

  /** `id` is unique within `shard`. */
  constructor(
    readonly id: number,
    readonly shard: StreamShard,
    options: SubscriberOptions,
    counters: DeliveryCounters,
  ) {
    const budgetBytes = options.budgetBytes ?? DEFAULT_SUBSCRIBER_BYTES;
    invariant(options.capacityEnvelopes >= 1, "B3: a subscriber's queue holds an envelope or more");
    invariant(budgetBytes >= 1, "B3: a subscriber's queue holds a byte or more");
    this.policy = options.policy;
    this.capacityEnvelopes = options.capacityEnvelopes;
    this.budgetBytes = budgetBytes;
    this.#endsAtDrop = options.endsAtDrop ?? false;
    this.#counters = counters;
  }

  /** Envelopes queued now, backlog included. */
  get queuedEnvelopes(): number {
    return this.#queue.length;
  }

  /** Puts history in front of live events; for the shard, before the first `offer`. */
  addBacklog(delivery: Delivery): void {
    invariant(
      this.#queue.length === this.#backlogEnvelopes,
      "B5: backlog comes before live events",
    );
    this.offered += delivery.count;
    this.#enqueue(delivery);
    this.#backlogEnvelopes++;
    this.#backlogBytes += bytesOf(delivery);
  }

  /** Takes a live envelope in, or drops it as the policy says; a closed one ignores it. */
  offer(envelope: Envelope): void {
    if (!this.open) return;
    this.offered += envelope.count;
    const ended = this.#endsAtDrop && this.dropped > 0;
    if (ended || this.policy !== "block" && !this.#fits(bytesOf(envelope))) {
      this.#drop(envelope);
      return;
    }
    const wasEmpty = this.#queue.length === 0;
    this.#enqueue(envelope);
    if (this.policy === "block" && !this.#hasRoom()) this.#block();
    if (wasEmpty && this.onReady !== null) this.onReady();
  }

  /**
   * Takes the oldest deliveries: as many as hold at most `maxEvents` records and `maxBytes` payload
   * bytes together, without a gap between them, and one in any case if something is queued; `[]`
   * if nothing is.
   */
  take(maxEvents: number, maxBytes: number): Delivery[] {
    const taken: Delivery[] = [];
    let events = 0;
    let bytes = 0;
    let after = 0;
    for (let next = this.#queue.front; next !== undefined; next = this.#queue.front) {
      events += next.count;
      bytes += next.payloadBytes;
      if (taken.length > 0 && (events > maxEvents || bytes > maxBytes || next.base !== after)) {
        break;
      }
      after = next.base + next.count;
      taken.push(next);
      this.#dequeue(next);
    }
    if (taken.length > 0) {
      this.#counters.dequeued += taken.length;
      this.#counters.queueLength -= taken.length;
      this.#checkAccount();
      if (this.#blocking && this.#hasRoom()) this.#unblock();
    }
    return taken;
  }

  /** Ends the subscription: what is queued is discarded, a blocked shard goes on. For the shard. */
  close(): void {
    if (!this.open) return;
    this.open = false;
    this.discarded = this.queuedRecords;
    this.#counters.queueLength -= this.#queue.length;
    this.#queue.clear();
    this.queuedRecords = 0;
    this.queuedBytes = 0;
    this.#backlogEnvelopes = 0;
    this.#backlogBytes = 0;
    this.#checkAccount();
    this.onReady = null;
    if (this.#blocking) this.#unblock();
  }

  #enqueue(delivery: Delivery): void {
    this.#queue.push(delivery);
    this.queuedRecords += delivery.count;
    this.queuedBytes += bytesOf(delivery);
    this.#counters.enqueued++;
    this.#counters.queueLength++;
  }

  #dequeue(delivery: Delivery): void {
    this.#queue.shift();
    this.taken += delivery.count;
    this.queuedRecords -= delivery.count;
    const bytes = bytesOf(delivery);
    this.queuedBytes -= bytes;
    if (this.#backlogEnvelopes > 0) {
      this.#backlogEnvelopes--;
      this.#backlogBytes -= bytes;
    }
  }

  /** Whether an arriving envelope is within the bounds. */
  #fits(bytes: number): boolean {
    const live = this.#queue.length - this.#backlogEnvelopes;
    if (live === 0) return true;
    return live < this.capacityEnvelopes &&
      this.queuedBytes - this.#backlogBytes + bytes <= this.budgetBytes;
  }

  /** Whether a `block` queue lets its shard append; one claim may exceed the bytes (B3). */
  #hasRoom(): boolean {
    return this.#queue.length - this.#backlogEnvelopes < this.capacityEnvelopes &&
      this.queuedBytes - this.#backlogBytes < this.budgetBytes;
  }

  #drop(envelope: Envelope): void {
    if (this.dropped === 0) this.firstDroppedAt = envelope.base;
    this.dropped += envelope.count;
    this.#counters.dropped += envelope.count;
    if (this.policy === "drop_old") this.#counters.dropOldEmulated += envelope.count;
  }

  #block(): void {
    if (this.#blocking) return;
    this.#blocking = true;
    this.shard.subscriberFull();
  }

  #unblock(): void {
    this.#blocking = false;
    this.shard.subscriberHasRoom();
  }

  #checkAccount(): void {
    invariant(
      this.offered === this.taken + this.queuedRecords + this.dropped + this.discarded,
      "B4: offered = taken + queued + dropped + discarded",
    );
  }
}

function bytesOf(delivery: Delivery): number {
  return delivery.payloadBytes + RECORD_PREFIX_BYTES * delivery.count;
}
