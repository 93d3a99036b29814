// Publisher and subscribers of the raw fan-out: frames of one size go in on one stream and come
// back on every subscriber's. Rule: every subscriber counts every byte; a run ends when all have
// all.

import { ACK_BYTES } from "../frame_sizes.ts";
import type { FanoutCell, LoadResult } from "../cell.ts";
import { Samples } from "../statistics.ts";
import { encodePreamble, RawMode } from "./preamble.ts";
import { readAll } from "./quic.ts";

/** Read size of a subscriber. */
const READ_BYTES = 16 * 1024;
/** Bytes that one write of the bulk publisher carries, whole frames. */
const WRITE_BYTES = 64 * 1024;
/** Writes of the bulk publisher that may be unfinished at once. */
const WRITES_IN_FLIGHT = 4;
/** Where the send time of a frame's first record is: frame header, count, record length. */
const STAMP_AT = 20;
const STAMP_END = STAMP_AT + 8;

type Readable = ReadableStream<Uint8Array<ArrayBuffer>>;
type Writer = WritableStreamDefaultWriter<Uint8Array<ArrayBuffer>>;

/** One subscriber's stream: counts bytes and samples the send time of frames. */
class Subscriber {
  received = 0;
  readonly #frameBytes: number;
  readonly #samples: Samples;
  readonly #progress: () => void;

  constructor(stream: Readable, frameBytes: number, samples: Samples, progress: () => void) {
    this.#frameBytes = frameBytes;
    this.#samples = samples;
    this.#progress = progress;
    let opened = false;
    readAll(stream, READ_BYTES, (bytes) => {
      this.#take(opened ? bytes : bytes.subarray(1));
      opened = true;
      return bytes.byteLength;
    }).catch(() => {});
  }

  #take(bytes: Uint8Array): void {
    if (bytes.byteLength === 0) return;
    const into = this.received % this.#frameBytes;
    const start = into === 0 ? 0 : this.#frameBytes - into;
    if (start + STAMP_END <= bytes.byteLength) {
      const view = new DataView(bytes.buffer, bytes.byteOffset + start);
      this.#samples.add(performance.now() - view.getFloat64(STAMP_AT));
    }
    this.received += bytes.byteLength;
    this.#progress();
  }
}

/** A prepared fan-out. */
export class FanoutLoad {
  readonly #cell: FanoutCell;
  readonly #frameBytes: number;
  readonly #writer: Writer;
  readonly #samples = new Samples();
  readonly #subscribers: Subscriber[];
  #published = 0;
  #acked = 0;
  #wake: (() => void) | null = null;

  constructor(
    cell: FanoutCell,
    frameBytes: number,
    writer: Writer,
    acks: Readable,
    streams: Readable[],
  ) {
    this.#cell = cell;
    this.#frameBytes = frameBytes;
    this.#writer = writer;
    const progress = () => this.#progress();
    this.#subscribers = streams.map((stream) =>
      new Subscriber(stream, frameBytes, this.#samples, progress)
    );
    readAll(acks, 4096, (bytes) => {
      this.#acked += bytes.byteLength;
      this.#progress();
      return bytes.byteLength;
    }).catch(() => {});
  }

  /** Latency profile first, when the cell has one, then the bulk run. */
  async run(): Promise<LoadResult> {
    const { records, batch, fanout, latencyRecords } = this.#cell;
    this.#samples.clear();
    for (let index = 0; index < latencyRecords; index++) await this.oneInFlight();
    const latency = latencyRecords > 0 ? this.#samples.summary() : null;
    this.#samples.clear();
    const frames = Math.ceil(records / batch);
    const started = performance.now();
    await this.bulk(frames);
    const elapsedMs = performance.now() - started;
    const completed = frames * batch * fanout;
    const percentiles = latency ?? this.#samples.summary();
    return { completed, expected: completed, elapsedMs, ...percentiles };
  }

  /** Sends one frame and waits for its ack. */
  async oneInFlight(): Promise<void> {
    const frame = new Uint8Array(this.#frameBytes);
    const owed = this.#acked + ACK_BYTES;
    stamp(frame, this.#frameBytes);
    this.#published += frame.byteLength;
    await this.#writer.write(frame);
    await this.#until(() => this.#acked >= owed);
  }

  /** Sends `frames` frames as fast as they go and waits until every subscriber has them. */
  async bulk(frames: number): Promise<void> {
    const perWrite = Math.max(1, Math.floor(WRITE_BYTES / this.#frameBytes));
    const buffers = Array.from(
      { length: WRITES_IN_FLIGHT },
      () => new Uint8Array(perWrite * this.#frameBytes),
    );
    const writes: Promise<void>[] = [];
    for (let sent = 0, turn = 0; sent < frames; turn++) {
      if (writes.length === WRITES_IN_FLIGHT) await writes.shift();
      const count = Math.min(perWrite, frames - sent);
      const buffer = buffers[turn % WRITES_IN_FLIGHT] ?? new Uint8Array();
      const bytes = buffer.subarray(0, count * this.#frameBytes);
      stamp(bytes, this.#frameBytes);
      writes.push(this.#writer.write(bytes));
      sent += count;
      this.#published += bytes.byteLength;
    }
    await Promise.all(writes);
    const owed = this.#published;
    await this.#until(() => this.#subscribers.every(({ received }) => received >= owed));
  }

  #progress(): void {
    this.#wake?.();
  }

  async #until(done: () => boolean): Promise<void> {
    while (!done()) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#wake = resolve;
      await promise;
    }
    this.#wake = null;
  }
}

function stamp(bytes: Uint8Array, frameBytes: number): void {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const now = performance.now();
  for (let at = 0; at < bytes.byteLength; at += frameBytes) view.setFloat64(at + STAMP_AT, now);
}

/** Subscribes `cell.fanout` times on one connection, opens the publisher on the other, warms up. */
export async function prepareFanout(
  publisher: Deno.QuicConn,
  subscriber: Deno.QuicConn,
  cell: FanoutCell,
  frameBytes: number,
): Promise<FanoutLoad> {
  const control = await subscriber.createBidirectionalStream();
  const subscribe = control.writable.getWriter();
  const sizes = { requestBytes: frameBytes, answerBytes: ACK_BYTES, count: cell.fanout };
  await subscribe.write(encodePreamble({ mode: RawMode.subscribe, ...sizes }));
  const streams: Readable[] = [];
  for await (const stream of subscriber.incomingUnidirectionalStreams) {
    streams.push(stream);
    if (streams.length === cell.fanout) break;
  }
  await control.readable.getReader().read();
  const publish = await publisher.createBidirectionalStream();
  const writer = publish.writable.getWriter();
  await writer.write(encodePreamble({ mode: RawMode.publish, ...sizes }));
  const load = new FanoutLoad(cell, frameBytes, writer, publish.readable, streams);
  for (let index = 0; index < 20; index++) await load.oneInFlight();
  await load.bulk(Math.ceil(2000 / cell.batch));
  return load;
}
