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

/** A batch of events on its way to the application. */
export interface QueuedBatch {
  readonly payloads: readonly Uint8Array[];
  /** Offset of the first payload; `null` on a stream without a log. */
  readonly base: bigint | null;
  readonly skippedBefore: bigint;
  readonly droppedBefore: bigint;
  readonly publisher: string | undefined;
  /** Payload that comes next. */
  next: number;
}

/** A record as it lies in its batch. */
export class ReceivedEvent implements FelixEvent {
  readonly payload: Uint8Array;
  readonly #origin: EventOrigin;
  readonly #batch: QueuedBatch;
  readonly #index: number;

  /** Payload `index` of `batch`. */
  constructor(origin: EventOrigin, batch: QueuedBatch, index: number) {
    this.#origin = origin;
    this.#batch = batch;
    this.#index = index;
    this.payload = batch.payloads[index]!;
    if (batch.publisher !== undefined) {
      (this as { publisher?: string }).publisher = batch.publisher;
    }
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
