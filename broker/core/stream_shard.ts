// One shard of a stream: the most recent records in a ring, who subscribes, and on a durable stream
// the log under it. Offsets are taken in append order; ring and subscribers get one envelope for
// each claim in that order, in memory at once and on a durable stream when the log's promise is
// kept (spec/semantics.md §3.4, §4.1).

import { invariant } from "./core_error.ts";
import { Envelope, EnvelopeTail, HEADROOM_BYTES } from "./envelope.ts";
import type { EncodeStats } from "./envelope.ts";
import type { BatchPart } from "./idempotent_publish.ts";
import { RECORD_PREFIX_BYTES } from "./record_batch.ts";
import type { RecordBatch } from "./record_batch.ts";
import { Ring } from "./ring.ts";
import { ProducerTable } from "@felix/storage";
import type { SegmentLog } from "@felix/storage";
import { ShardLog } from "./shard_log.ts";
import type { ClaimDone } from "./shard_log.ts";
import { Slab } from "./slab.ts";
import type { Stream } from "./stream_registry.ts";
import { Subscriber } from "./subscriber.ts";
import type { DeliveryCounters, SubscriberOptions } from "./subscriber.ts";

/** Where a subscription begins; `offset` = first record the client has not seen. */
export type SubscribeStart = "latest" | "earliest" | { readonly offset: number };

/** What became of a subscribe. */
export type SubscribeResult =
  | {
    readonly kind: "subscribed";
    readonly subscriber: Subscriber;
    /** Sequence of the first record it gets. */
    readonly start: number;
    /** The tail at registration: records from here on are live. */
    readonly live: number;
  }
  | {
    /** The start lies before the ring (`too_old`) or behind the tail (`in_future`). */
    readonly kind: "too_old" | "in_future";
    readonly requested: number;
    /** The oldest sequence held, or the tail. */
    readonly available: number;
  };

/** What the shards of one broker share. */
export interface ShardOptions {
  /** Most recent records that a shard keeps; 1 or more. */
  readonly ringRecords: number;
  /** Most bytes of envelopes that a shard keeps. */
  readonly ringBytes: number;
  /** Counts encoded frames. */
  readonly encodeStats: EncodeStats;
  /** Counts deliveries. */
  readonly deliveryCounters: DeliveryCounters;
}

/** A shard of a stream; made by `StreamRegistry.register`. */
export class StreamShard {
  /** Offset after the newest record that readers may see. */
  tail = 0;
  /** The log under it; `null` on an in-memory stream. */
  readonly log: ShardLog | null;
  /** Called when appending has become possible again; the publish pipeline's. */
  onRoom: (() => void) | null = null;

  readonly #options: ShardOptions;
  readonly #slab = new Slab();
  readonly #ring = new Ring<Envelope>();
  #ringBytes = 0;
  #subscribers: Subscriber[] = [];
  #nextSubscriberId = 0;
  /** `block` subscribers that are full. */
  #full = 0;
  #fanningOut = false;
  #closedWhileFanningOut = false;
  /** Producers of an in-memory stream, once there are any. */
  #producers: ProducerTable | null = null;

  /** `handle` is dense and unique among live shards; `generation` tells its users apart. */
  constructor(
    readonly stream: Stream,
    readonly index: number,
    readonly handle: number,
    readonly generation: number,
    options: ShardOptions,
    log: SegmentLog | null = null,
  ) {
    this.#options = options;
    if (log === null) {
      this.log = null;
      return;
    }
    this.tail = log.tail;
    this.log = new ShardLog(log, {
      mayPublish: () => this.#full === 0,
      publish: (envelope) => this.#publish(envelope),
      onRoom: () => this.onRoom?.(),
    }, options.encodeStats);
  }

  /** Oldest record that can be read. */
  get base(): number {
    return this.log?.base ?? this.oldest;
  }

  /** Oldest sequence in the ring; the tail if the ring is empty. */
  get oldest(): number {
    const first = this.#ring.front;
    if (first === undefined) return this.tail;
    return Math.max(first.base, this.tail - this.#options.ringRecords);
  }

  /** Subscriptions now. */
  get subscribers(): number {
    return this.#subscribers.length;
  }

  /** Bytes of the envelopes in the ring. */
  get ringBytes(): number {
    return this.#ringBytes;
  }

  /** What is known of idempotent producers: what the log says, or in memory since the start. */
  get producers(): ProducerTable {
    return this.log?.producers ?? (this.#producers ??= new ProducerTable());
  }

  /** Whether the stream still exists. */
  get active(): boolean {
    return this.stream.active;
  }

  /** `false` while a `block` subscriber is full or too many claims wait for their flush. */
  mayAppend(): boolean {
    return this.#full === 0 && (this.log === null || this.log.hasRoom);
  }

  /**
   * Appends the first `length` of `batches` as one claim, in order, and hands the envelope to every
   * subscriber. Their bodies are copied once; not empty together. Only while `mayAppend()`.
   */
  append(batches: readonly RecordBatch[], length: number = batches.length): Envelope {
    const envelope = this.#envelopeOf(batches, length, this.tail);
    this.#publish(envelope);
    return envelope;
  }

  /** The same on a durable stream, whose log keeps the claim first: see `ShardLog.stage`. */
  stage(
    batches: readonly RecordBatch[],
    done: ClaimDone,
    part: BatchPart | null = null,
  ): Promise<void> | null {
    invariant(this.log !== null, "B12: a durable stream has a log");
    return this.log.stage(this.#envelopeOf(batches, batches.length, this.log.tail), done, part);
  }

  #envelopeOf(batches: readonly RecordBatch[], length: number, base: number): Envelope {
    invariant(this.#full === 0, "B6: nothing is appended while a `block` subscriber is full");
    invariant(!this.#fanningOut, "B1: an append ends before the next one begins");
    let count = 0;
    let payloadBytes = 0;
    for (let at = 0; at < length; at++) {
      const batch = batches[at]!;
      count += batch.count;
      payloadBytes += batch.payloadBytes;
    }
    invariant(count > 0, "B1: a claim holds a record or more");
    const bytes = HEADROOM_BYTES + payloadBytes + RECORD_PREFIX_BYTES * count;
    const storage = this.#slab.allocate(bytes);
    let end = HEADROOM_BYTES;
    for (let at = 0; at < length; at++) {
      const { body } = batches[at]!;
      storage.set(body, end);
      end += body.length;
    }
    invariant(end === bytes, "B2: a body is its payloads and their lengths");
    return new Envelope(base, count, payloadBytes, storage, this.#options.encodeStats);
  }

  /** Lets readers see a claim: the ring and every subscriber get it in one turn. */
  #publish(envelope: Envelope): void {
    invariant(envelope.base === this.tail, "B1: claims become visible in append order");
    this.tail += envelope.count;
    this.#keep(envelope);
    this.#fanOut(envelope);
  }

  /**
   * Registers a subscriber in the steps of spec/semantics.md §4.5: it gets every record from its
   * start on, each in its backlog or live, never both. Its queue holds the backlog on return.
   */
  subscribe(start: SubscribeStart, options: SubscriberOptions): SubscribeResult {
    const { base: oldest, tail } = this;
    let first = tail;
    if (start === "earliest") first = oldest;
    else if (start !== "latest") {
      const requested = start.offset;
      if (requested > tail) return { kind: "in_future", requested, available: tail };
      if (requested < oldest) return { kind: "too_old", requested, available: oldest };
      first = requested;
    }
    const id = this.#nextSubscriberId++;
    const subscriber = new Subscriber(id, this, options, this.#options.deliveryCounters);
    subscriber.historyFrom = first;
    if (first >= this.oldest) this.#join(subscriber);
    return { kind: "subscribed", subscriber, start: first, live: tail };
  }

  /**
   * Gives a subscriber that is still in history its next page from the log, or lets it join the
   * live ones once the ring holds what it needs next: it joins in the turn in which its backlog is
   * complete, so no record is missing or there twice. One call at a time.
   *
   * @throws {StorageError} `trimmed` when retention removed what it was to get next
   */
  async replay(subscriber: Subscriber): Promise<void> {
    const from = subscriber.historyFrom;
    if (from === null || !subscriber.open || this.log === null) return;
    if (from >= this.oldest) return this.#join(subscriber);
    const { envelopes, next } = await this.log.read(from, this.tail);
    if (!subscriber.open) return;
    for (const envelope of envelopes) subscriber.addBacklog(envelope);
    subscriber.historyFrom = next;
  }

  #join(subscriber: Subscriber): void {
    this.#addBacklog(subscriber, subscriber.historyFrom!);
    subscriber.historyFrom = null;
    subscriber.slot = this.#subscribers.length;
    this.#subscribers.push(subscriber);
  }

  /** Ends a subscription: what it has queued is discarded. Once is enough, twice does no harm. */
  unsubscribe(subscriber: Subscriber): void {
    if (!subscriber.open) return;
    subscriber.close();
    if (this.#fanningOut) this.#closedWhileFanningOut = true;
    else this.#forget(subscriber);
  }

  /** The stream is gone: lets go of the ring and lets parked publishes go on to their refusal. */
  drop(): void {
    this.#ring.clear();
    this.#ringBytes = 0;
    if (this.onRoom !== null) this.onRoom();
  }

  /** A `block` subscriber became full; for `Subscriber`. */
  subscriberFull(): void {
    this.#full++;
  }

  /** A full `block` subscriber has room again or closed; for `Subscriber`. */
  subscriberHasRoom(): void {
    this.#full--;
    invariant(this.#full >= 0, "B6: a subscriber blocks its shard once");
    if (this.#full > 0) return;
    this.log?.resume();
    if (this.mayAppend() && this.onRoom !== null) this.onRoom();
  }

  #keep(envelope: Envelope): void {
    const { ringRecords, ringBytes } = this.#options;
    const ring = this.#ring;
    ring.push(envelope);
    this.#ringBytes += envelope.storage.length;
    const oldest = this.tail - ringRecords;
    for (let first = ring.front; first !== undefined; first = ring.front) {
      if (first.base + first.count > oldest && this.#ringBytes <= ringBytes) break;
      ring.shift();
      this.#ringBytes -= first.storage.length;
    }
  }

  #fanOut(envelope: Envelope): void {
    const subscribers = this.#subscribers;
    const count = subscribers.length;
    this.#fanningOut = true;
    try {
      for (let at = 0; at < count; at++) subscribers[at]!.offer(envelope);
    } finally {
      this.#fanningOut = false;
      if (this.#closedWhileFanningOut) this.#forgetClosed();
    }
  }

  #addBacklog(subscriber: Subscriber, first: number): void {
    if (first === this.tail) return;
    for (let at = 0; at < this.#ring.length; at++) {
      const envelope = this.#ring.at(at)!;
      const skip = first - envelope.base;
      if (skip >= envelope.count) continue;
      subscriber.addBacklog(skip <= 0 ? envelope : new EnvelopeTail(envelope, skip));
    }
  }

  #forget(subscriber: Subscriber): void {
    // One that is still in history is not listed.
    if (subscriber.slot < 0) return;
    const last = this.#subscribers.pop()!;
    if (last !== subscriber) {
      invariant(
        this.#subscribers[subscriber.slot] === subscriber,
        "B5: a subscriber is listed once",
      );
      this.#subscribers[subscriber.slot] = last;
      last.slot = subscriber.slot;
    }
    subscriber.slot = -1;
  }

  #forgetClosed(): void {
    this.#closedWhileFanningOut = false;
    this.#subscribers = this.#subscribers.filter((subscriber) => subscriber.open);
    this.#subscribers.forEach((subscriber, slot) => subscriber.slot = slot);
  }
}
