// Publisher and subscribers of a fan-out through this repository's client, on a connection each.
// Rule: every subscriber counts every record; the run ends when all have all, or says what is lost.

import type { FelixClient, StreamHandle, Subscription } from "@felix/client";
import { type FanoutCell, type LoadResult, STAMP_BYTES } from "../cell.ts";
import { NAMES } from "../frame_sizes.ts";
import { Samples } from "../statistics.ts";
import type { PreparedLoad } from "../worker.ts";

/** Sets of payload buffers in rotation: a frame may wait in the client after its call resolved. */
const PAYLOAD_SETS = 16;
/** Single publishes that are handed over before the loop waits for the last of them. */
const PUBLISHES_PER_WAIT = 64;
/** Events that one read takes at most. */
const READ_EVENTS = 1024;
/** Of the deliveries of a bulk run every so many-th gives a sample. */
const SAMPLE_EVERY = 64;
/** A run that stands still this long has lost something. */
const STALL_MS = 15_000;

/** Counts what one subscription delivers. */
class Reader {
  received = 0;
  failure: unknown = null;
  readonly ended: Promise<void>;
  readonly #sampleEvery: number;
  readonly #samples: Samples;
  readonly #progress: () => void;

  constructor(
    subscription: Subscription,
    sampleEvery: number,
    samples: Samples,
    progress: () => void,
  ) {
    this.#sampleEvery = sampleEvery;
    this.#samples = samples;
    this.#progress = progress;
    this.ended = this.#read(subscription).catch((error) => {
      this.failure = error;
      progress();
    });
  }

  async #read(subscription: Subscription): Promise<void> {
    for (;;) {
      const events = await subscription.readBatch(READ_EVENTS);
      if (events.length === 0) return;
      const now = performance.now();
      const first = this.#sampleEvery - 1 - (this.received % this.#sampleEvery);
      for (let index = first; index < events.length; index += this.#sampleEvery) {
        const payload = events[index]?.payload ?? new Uint8Array();
        const sentAt = new DataView(payload.buffer, payload.byteOffset).getFloat64(0);
        this.#samples.add(now - sentAt);
      }
      this.received += events.length;
      this.#progress();
    }
  }
}

/** A running fan-out. */
class FelixFanout {
  readonly #cell: FanoutCell;
  readonly #stream: StreamHandle;
  readonly #samples = new Samples();
  readonly #readers: Reader[];
  readonly #payloads: Uint8Array[][];
  #published = 0;
  #turn = 0;
  #wake: (() => void) | null = null;

  constructor(cell: FanoutCell, stream: StreamHandle, subscriptions: readonly Subscription[]) {
    this.#cell = cell;
    this.#stream = stream;
    const sampleEvery = cell.latencyRecords > 0 ? 1 : SAMPLE_EVERY;
    const progress = () => this.#wake?.();
    this.#readers = subscriptions.map((subscription) =>
      new Reader(subscription, sampleEvery, this.#samples, progress)
    );
    const record = () => new Uint8Array(STAMP_BYTES + cell.payloadBytes);
    const batch = () => Array.from({ length: cell.batch }, record);
    const sets = cell.batch === 1 ? PAYLOAD_SETS * PUBLISHES_PER_WAIT : PAYLOAD_SETS;
    this.#payloads = Array.from({ length: sets }, batch);
  }

  async warmUp(): Promise<void> {
    for (let index = 0; index < 20; index++) await this.#oneInFlight();
    await this.#bulk(2048);
  }

  async run(): Promise<LoadResult> {
    const { records, fanout, latencyRecords } = this.#cell;
    this.#samples.clear();
    for (let index = 0; index < latencyRecords; index++) await this.#oneInFlight();
    const latency = latencyRecords > 0 ? this.#samples.summary() : null;
    this.#samples.clear();
    const before = this.#received();
    const started = performance.now();
    await this.#bulk(records);
    const elapsedMs = performance.now() - started;
    const completed = this.#received() - before;
    const percentiles = latency ?? this.#samples.summary();
    return { completed, expected: records * fanout, elapsedMs, ...percentiles };
  }

  /** Resolves when every reader has ended. */
  async ended(): Promise<void> {
    await Promise.all(this.#readers.map(({ ended }) => ended));
  }

  /** One acknowledged publish; the next follows its ack (spec/operations.md §14.1). */
  async #oneInFlight(): Promise<void> {
    await this.#stream.publishBatch(this.#stamped(), { ack: "perMessage" });
    this.#published += this.#cell.batch;
  }

  async #bulk(records: number): Promise<void> {
    const { batch } = this.#cell;
    const perWait = batch === 1 ? PUBLISHES_PER_WAIT : 1;
    for (let sent = 0; sent < records;) {
      let last: Promise<unknown> = Promise.resolve();
      for (let index = 0; index < perWait && sent < records; index++) {
        last = this.#stream.publishBatch(this.#stamped(), { ack: "none" });
        sent += batch;
        this.#published += batch;
      }
      await last;
    }
    await this.#allReceived();
  }

  #stamped(): Uint8Array[] {
    const payloads = this.#payloads[this.#turn++ % this.#payloads.length] ?? [];
    const now = performance.now();
    for (const payload of payloads) new DataView(payload.buffer).setFloat64(0, now);
    return payloads;
  }

  #received(): number {
    return this.#readers.reduce((sum, { received }) => sum + received, 0);
  }

  /** Waits for every delivery owed; standing still for long ends the wait, and shows as a loss. */
  async #allReceived(): Promise<void> {
    let seen = this.#received();
    let stalled = false;
    const watch = setInterval(() => {
      stalled = this.#received() === seen;
      seen = this.#received();
      if (stalled) this.#wake?.();
    }, STALL_MS);
    try {
      while (!stalled && this.#readers.some(({ received }) => received < this.#published)) {
        const failed = this.#readers.find(({ failure }) => failure !== null);
        if (failed !== undefined) throw failed.failure;
        const { promise, resolve } = Promise.withResolvers<void>();
        this.#wake = resolve;
        await promise;
      }
    } finally {
      clearInterval(watch);
      this.#wake = null;
    }
  }
}

/** Subscribes `cell.fanout` times with one client, publishes with the other, warms up. */
export async function prepareFelixFanout(
  publisher: FelixClient,
  subscriber: FelixClient,
  cell: FanoutCell,
): Promise<PreparedLoad> {
  const subscriptions: Subscription[] = [];
  for (let index = 0; index < cell.fanout; index++) {
    subscriptions.push(
      await subscriber.stream(NAMES.stream).subscribe({
        buffer: { maxEvents: 4096, maxBytes: 8 * 1024 * 1024, overflow: "block" },
      }),
    );
  }
  const fanout = new FelixFanout(cell, publisher.stream(NAMES.stream), subscriptions);
  await fanout.warmUp();
  return {
    run: () => fanout.run(),
    finish: async () => {
      await Promise.all(subscriptions.map((subscription) => subscription.close()));
      await subscriber.close();
      await publisher.close();
      await fanout.ended();
    },
  };
}
