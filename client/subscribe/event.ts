// One received record. It is a view: offset, text and JSON are worked out when asked for. A batch
// is kept as it came and shared by the events in it.

import { fromUtf8 } from "../bytes.ts";
import type { Offset } from "../types.ts";

/** A record of a stream. */
export interface FelixEvent {
  /** Tenant of the stream. */
  readonly tenant: string;
  /** Namespace of the stream. */
  readonly namespace: string;
  /** Name of the stream. */
  readonly stream: string;
  /** Shard that the record is in. */
  readonly shard: number;
  /** The bytes: a view that the receiver may keep; the client never writes to it again. */
  readonly payload: Uint8Array;
  /** Position in the shard; `null` on a stream without a log. */
  readonly offset: Offset | null;
  /** Offsets just before this one that carry no event. */
  readonly skippedBefore: bigint;
  /** Records lost before this one; normally 0. */
  readonly droppedBefore: bigint;
  /** Who published it, if the client asked to be told. */
  readonly publisher?: string;
  /** The bytes as UTF-8 text. */
  text(): string;
  /** The bytes as JSON. @throws {SyntaxError} they are none */
  json<T = unknown>(): T;
}

/** Where events come from. */
export interface EventOrigin {
  readonly tenant: string;
  readonly namespace: string;
  readonly stream: string;
  readonly shard: number;
}

/** The events of a batch, back to back, each behind `prefixBytes` bytes that end in its length. */
export interface EventRun {
  readonly records: Uint8Array;
  readonly prefixBytes: number;
  readonly count: number;
  /** Bytes of the events alone. */
  readonly payloadBytes: number;
}

/** A batch of events on its way to the application. */
export interface QueuedBatch {
  readonly run: EventRun;
  /** Offset of the first payload; `null` on a stream without a log. */
  readonly base: bigint | null;
  readonly skippedBefore: bigint;
  readonly droppedBefore: bigint;
  readonly publisher: string | undefined;
  /** Event that comes next. */
  next: number;
  /** Where in the run it begins. */
  at: number;
}

/** Length of the event whose prefix begins at `at`. */
export function eventBytes({ records, prefixBytes }: EventRun, at: number): number {
  const end = at + prefixBytes;
  return ((records[end - 4]! << 24) | (records[end - 3]! << 16) | (records[end - 2]! << 8) |
    records[end - 1]!) >>> 0;
}

/** Where event `index` begins in its run. */
export function placeOf(run: EventRun, index: number): number {
  let at = 0;
  for (let passed = 0; passed < index; passed++) at += run.prefixBytes + eventBytes(run, at);
  return at;
}

/** A record as it lies in its batch. */
export class ReceivedEvent implements FelixEvent {
  readonly #origin: EventOrigin;
  readonly #batch: QueuedBatch;
  readonly #index: number;
  /** Its prefix begins here in the batch's run. */
  readonly #at: number;
  #payload: Uint8Array | null = null;

  /** Event `index` of `batch`, at `at` in its run. */
  constructor(origin: EventOrigin, batch: QueuedBatch, index: number, at: number) {
    this.#origin = origin;
    this.#batch = batch;
    this.#index = index;
    this.#at = at;
    if (batch.publisher !== undefined) {
      (this as { publisher?: string }).publisher = batch.publisher;
    }
  }

  get payload(): Uint8Array {
    if (this.#payload !== null) return this.#payload;
    const { run } = this.#batch;
    const start = this.#at + run.prefixBytes;
    return this.#payload = run.records.subarray(start, start + eventBytes(run, this.#at));
  }

  get tenant(): string {
    return this.#origin.tenant;
  }

  get namespace(): string {
    return this.#origin.namespace;
  }

  get stream(): string {
    return this.#origin.stream;
  }

  get shard(): number {
    return this.#origin.shard;
  }

  get offset(): Offset | null {
    const { base } = this.#batch;
    return base === null ? null : base + BigInt(this.#index);
  }

  get skippedBefore(): bigint {
    return this.#index === 0 ? this.#batch.skippedBefore : 0n;
  }

  get droppedBefore(): bigint {
    return this.#index === 0 ? this.#batch.droppedBefore : 0n;
  }

  text(): string {
    return fromUtf8(this.payload);
  }

  json<T = unknown>(): T {
    return JSON.parse(fromUtf8(this.payload)) as T;
  }
}
