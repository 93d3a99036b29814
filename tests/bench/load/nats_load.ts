// The NATS load: the counts and payloads of ingest and fan-out cells through its own JavaScript
// client with TLS. NATS has no batches, so a batch is that many messages in a row, and no ack for a
// plain publish, so its latency profile waits for a flush, which is its round trip.

import { connect, type NatsConnection } from "@nats-io/transport-node";
import {
  type Cell,
  type FanoutCell,
  type IngestCell,
  type LoadResult,
  STAMP_BYTES,
  type Target,
} from "../cell.ts";
import { Samples } from "../statistics.ts";
import { type PreparedLoad, serveLoad } from "../worker.ts";

const SUBJECT = "bench";
/** Published and not yet delivered or flushed; NATS drops a reader that is 64 MiB behind. */
const WINDOW_BYTES = 4 * 1024 * 1024;

function connectTo(target: Target): Promise<NatsConnection> {
  return connect({
    servers: `${target.hostname}:${target.port}`,
    ...(target.caFile === undefined ? {} : { tls: { caFile: target.caFile } }),
  });
}

async function prepareIngest(cell: IngestCell, target: Target): Promise<PreparedLoad> {
  const connection = await connectTo(target);
  const payload = new Uint8Array(cell.payloadBytes);
  const perFlush = Math.max(cell.batch, Math.ceil(WINDOW_BYTES / 4 / (cell.payloadBytes + 16)));
  const publish = async (records: number): Promise<void> => {
    const flushes: Promise<void>[] = [];
    for (let sent = 0; sent < records;) {
      const until = Math.min(records, sent + perFlush);
      for (; sent < until; sent++) connection.publish(SUBJECT, payload);
      flushes.push(connection.flush());
      if (flushes.length === 4) await flushes.shift();
    }
    await Promise.all(flushes);
  };
  await publish(2000);
  return {
    run: async () => {
      const started = performance.now();
      await publish(cell.records);
      const elapsedMs = performance.now() - started;
      const completed = cell.records;
      return { completed, expected: completed, elapsedMs, p50Ms: null, p99Ms: null };
    },
    finish: () => connection.close(),
  };
}

/** One publisher connection and one connection that carries every subscription. */
class NatsFanout {
  readonly #publisher: NatsConnection;
  readonly #subscriber: NatsConnection;
  readonly #cell: FanoutCell;
  readonly #samples = new Samples();
  readonly #payload: Uint8Array;
  readonly #stamp: DataView;
  readonly #window: number;
  #delivered = 0;
  #published = 0;
  #wake: (() => void) | null = null;

  constructor(publisher: NatsConnection, subscriber: NatsConnection, cell: FanoutCell) {
    this.#publisher = publisher;
    this.#subscriber = subscriber;
    this.#cell = cell;
    this.#payload = new Uint8Array(STAMP_BYTES + cell.payloadBytes);
    this.#stamp = new DataView(this.#payload.buffer);
    this.#window = Math.ceil(WINDOW_BYTES / this.#payload.length / cell.fanout) + 64;
  }

  async open(): Promise<void> {
    for (let index = 0; index < this.#cell.fanout; index++) {
      this.#subscriber.subscribe(SUBJECT, {
        callback: (_error, message) => this.#take(message.data),
      });
    }
    await this.#subscriber.flush();
    await this.#bulk(2000);
    for (let index = 0; index < 100; index++) await this.#oneInFlight();
  }

  async run(): Promise<LoadResult> {
    const { records, fanout, latencyRecords } = this.#cell;
    this.#samples.clear();
    for (let index = 0; index < latencyRecords; index++) await this.#oneInFlight();
    const latency = latencyRecords > 0 ? this.#samples.summary() : null;
    this.#samples.clear();
    const before = this.#delivered;
    const started = performance.now();
    await this.#bulk(records);
    const elapsedMs = performance.now() - started;
    const completed = this.#delivered - before;
    const percentiles = latency ?? this.#samples.summary();
    return { completed, expected: records * fanout, elapsedMs, ...percentiles };
  }

  async close(): Promise<void> {
    await this.#publisher.close();
    await this.#subscriber.close();
  }

  async #oneInFlight(): Promise<void> {
    this.#publish();
    await this.#publisher.flush();
    await this.#allDelivered(0);
  }

  async #bulk(records: number): Promise<void> {
    for (let sent = 0; sent < records;) {
      const until = Math.min(records, sent + 64);
      for (; sent < until; sent++) this.#publish();
      await this.#allDelivered(this.#window);
    }
    await this.#allDelivered(0);
  }

  #publish(): void {
    this.#stamp.setFloat64(0, performance.now());
    this.#published++;
    this.#publisher.publish(SUBJECT, this.#payload);
  }

  #take(data: Uint8Array): void {
    this.#delivered++;
    if (this.#delivered % 16 === 0 || this.#cell.latencyRecords > 0) {
      const sentAt = new DataView(data.buffer, data.byteOffset).getFloat64(0);
      this.#samples.add(performance.now() - sentAt);
    }
    this.#wake?.();
  }

  async #allDelivered(slack: number): Promise<void> {
    while (this.#delivered < (this.#published - slack) * this.#cell.fanout) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#wake = resolve;
      await promise;
    }
    this.#wake = null;
  }
}

async function prepare(cell: Cell, target: Target): Promise<PreparedLoad> {
  if (cell.kind === "ingest") return await prepareIngest(cell, target);
  if (cell.kind !== "fanout") throw new TypeError(`no NATS load for ${cell.kind}`);
  const fanout = new NatsFanout(await connectTo(target), await connectTo(target), cell);
  await fanout.open();
  return { run: () => fanout.run(), finish: () => fanout.close() };
}

if (import.meta.main) await serveLoad(prepare);
