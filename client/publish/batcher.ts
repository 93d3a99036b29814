// Collects records into frames: per shard, in order, until a frame is full or its time is over.
// What is added is never reordered within a shard.

import { toBytes } from "../bytes.ts";
import { ClosedError, InvalidArgumentError } from "../failure/classes.ts";
import type { AckMode, BytesLike } from "../types.ts";
import { ACK_BYTE, checkPublishOptions } from "./publish_options.ts";
import type { PublishOptions, PublishResult } from "./publish_options.ts";
import type { Publisher } from "./publisher.ts";
import type { StreamScope } from "./stream_scope.ts";

/** Settings of a {@link Batcher}. */
export interface BatcherOptions {
  /** Default `perBatch`. */
  readonly ack?: AckMode;
  /** As for `publish`. */
  readonly delivery?: "report" | "atLeastOnce";
  /** Records in a frame at most; default 64. */
  readonly maxRecords?: number;
  /** Payload bytes in a frame at most (a larger record goes alone); default 64 KiB. */
  readonly maxBytes?: number;
  /** Milliseconds that a record waits for others at most; default 5. */
  readonly maxDelayMs?: number;
}

/** Collects records into frames. */
export interface Batcher extends AsyncDisposable {
  /** Adds a record; resolves with its own offset once its frame is acknowledged. */
  add(payload: BytesLike, key?: BytesLike): Promise<PublishResult>;
  /** Sends what is there and resolves once everything added is settled, well or badly. */
  flush(): Promise<void>;
  /** Payload bytes added and not settled. */
  readonly pendingBytes: number;
}

interface Group {
  readonly key: Uint8Array | null;
  readonly payloads: Uint8Array[];
  bytes: number;
  readonly result: Promise<PublishResult>;
  resolve(result: Promise<PublishResult>): void;
}

function positive(value: number | undefined, name: string, fallback: number): number {
  if (value === undefined) return fallback;
  if (Number.isFinite(value) && value > 0) return value;
  throw new InvalidArgumentError({ message: `${name} must be positive`, operation: "batcher" });
}

/** The batcher behind the interface. */
export class RecordBatcher implements Batcher {
  /** Payload bytes that make a frame full. */
  readonly maxBytes: number;
  readonly #publisher: Publisher;
  readonly #scope: StreamScope;
  readonly #ack: AckMode;
  readonly #options: PublishOptions;
  readonly #maxRecords: number;
  readonly #maxDelayMs: number;
  readonly #groups = new Map<string | number, Group>();
  readonly #unsettled = new Set<Promise<unknown>>();
  #width: number | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #pendingBytes = 0;
  #closed = false;

  /** A batcher for one stream. @throws {InvalidArgumentError} */
  constructor(publisher: Publisher, scope: StreamScope, options: BatcherOptions) {
    this.#publisher = publisher;
    this.#scope = scope;
    this.#ack = options.ack ?? "perBatch";
    this.#options = options.delivery === undefined ? {} : { delivery: options.delivery };
    checkPublishOptions(this.#options, this.#ack, "batcher");
    this.#maxRecords = positive(options.maxRecords, "maxRecords", 64);
    this.maxBytes = positive(options.maxBytes, "maxBytes", 64 * 1024);
    this.#maxDelayMs = positive(options.maxDelayMs, "maxDelayMs", 5);
  }

  get pendingBytes(): number {
    return this.#pendingBytes;
  }

  add(payload: BytesLike, key?: BytesLike): Promise<PublishResult> {
    if (this.#closed) {
      return Promise.reject(
        new ClosedError({ message: "the batcher is closed", operation: "publish" }),
      );
    }
    const bytes = toBytes(payload, "publish");
    const routingKey = key === undefined ? null : toBytes(key, "publish");
    const group = this.#groupFor(routingKey, bytes.length);
    const index = group.payloads.push(bytes) - 1;
    group.bytes += bytes.length;
    this.#pendingBytes += bytes.length;
    const own = group.result.then((result) => ({
      ...result,
      offset: result.offset === null ? null : result.offset + BigInt(index),
      count: 1,
    }));
    if (group.payloads.length >= this.#maxRecords || group.bytes >= this.maxBytes) this.#sendAll();
    else this.#timer ??= setTimeout(() => this.#sendAll(), this.#maxDelayMs);
    return own;
  }

  async flush(): Promise<void> {
    this.#sendAll();
    await Promise.allSettled([...this.#unsettled]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    await this.flush();
  }

  #groupFor(key: Uint8Array | null, bytes: number): Group {
    const { width } = this.#scope.route;
    // Groups by key and groups by shard must not be filled side by side: order would be lost.
    if (width !== this.#width) this.#sendAll();
    this.#width = width;
    const shard = this.#scope.route.shardOf(key);
    const place = shard ?? key!.toBase64();
    let group = this.#groups.get(place);
    if (group !== undefined && group.bytes + bytes > this.maxBytes) {
      this.#sendAll();
      group = undefined;
    }
    if (group === undefined) this.#groups.set(place, group = makeGroup(key));
    return group;
  }

  #sendAll(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#groups.size === 0) return;
    const groups = [...this.#groups.values()];
    this.#groups.clear();
    for (const group of groups) this.#send(group);
  }

  #send(group: Group): void {
    const request = {
      operation: "publishBatch",
      key: group.key,
      ack: ACK_BYTE[this.#ack],
    };
    const sent = this.#publisher.publish(this.#scope, group.payloads, request, this.#options);
    group.resolve(sent);
    const settled = sent.then(() => undefined, () => undefined).finally(() => {
      this.#pendingBytes -= group.bytes;
      this.#unsettled.delete(settled);
    });
    this.#unsettled.add(settled);
  }
}

function makeGroup(key: Uint8Array | null): Group {
  let resolve!: (result: Promise<PublishResult>) => void;
  const result = new Promise<PublishResult>((done) => resolve = done);
  return { key, payloads: [], bytes: 0, result, resolve };
}

/** Records for a {@link WritableStream}: bytes, or bytes with a key. */
export type WritableRecord = BytesLike | { readonly payload: BytesLike; readonly key?: BytesLike };

/** A web stream that publishes what is written to it; it fails with the first failed record. */
export function batcherWritable(batcher: RecordBatcher): WritableStream<WritableRecord> {
  let failure: { error: unknown } | null = null;
  const check = (): void => {
    if (failure !== null) throw failure.error;
  };
  return new WritableStream<WritableRecord>({
    async write(record) {
      check();
      const plain = typeof record === "string" || record instanceof Uint8Array ||
        record instanceof ArrayBuffer;
      const added = plain ? batcher.add(record) : batcher.add(record.payload, record.key);
      added.catch((error) => failure ??= { error });
      if (batcher.pendingBytes >= 4 * batcher.maxBytes) await batcher.flush();
    },
    async close() {
      await batcher[Symbol.asyncDispose]();
      check();
    },
    async abort() {
      await batcher[Symbol.asyncDispose]();
    },
  });
}
