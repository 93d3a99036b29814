// The event stream of one subscription: takes what its queue holds and writes it, in as few frames
// and writes as the bounds allow. A lone event leaves in the turn that published it; while a write
// is under way the queue fills, and the next write takes what has gathered. No timer.

import {
  encodeMessage,
  EVENT_HEADROOM_BYTES,
  FLAG_BINARY_EVENT_BATCH_SHARED,
  FLAG_EVENT_BATCH_OFFSETS,
  writeEventHeader,
  writeFrameHeader,
} from "@felix/wire";
import type { ByteWriter, Message } from "@felix/wire";
import { StorageError } from "@felix/storage";
import type { SendStream } from "@felix/transport";
import type { Delivery, Envelope, FrameShape, Subscriber } from "../core/mod.ts";
import { LogGate } from "../log/log_gate.ts";
import type { TenantRow } from "../metrics/tenant_counters.ts";
import type { Feed } from "./connection.ts";
import type { BrokerContext } from "./context.ts";
import { errorMessage } from "./refusal.ts";
import type { Deliverer } from "./turn.ts";

/**
 * Shortest delay that a timer is used for. Anything less is one turn of the event loop, which the
 * write before took in any case.
 */
const MIN_DELAY_US = 1000;

/** The next page of history is fetched when less than this is queued. */
const HISTORY_AHEAD_BYTES = 512 * 1024;

/**
 * Encodes an envelope's frame, with or without the offset of its first record: in place in front of
 * its body, unless the other shape has that place. Once per envelope and shape.
 */
function encodeEnvelope(envelope: Envelope, shape: FrameShape): Uint8Array {
  const { base, count, storage } = envelope;
  const taken = envelope.hasFrame(shape === "plain" ? "offsets" : "plain");
  const own = taken ? storage.slice() : storage;
  const bodyBytes = own.length - EVENT_HEADROOM_BYTES;
  const offset = shape === "plain" ? undefined : base;
  return own.subarray(writeEventHeader(own, EVENT_HEADROOM_BYTES, bodyBytes, count, offset));
}

/** What the client of a subscription is told beside the events. */
export interface EventStreamOptions {
  /** Id of the subscription. */
  readonly id: bigint;
  /** Frames carry the offset of their first record. */
  readonly offsets: boolean;
  /** A drop ends the stream with `subscription_lagged`. */
  readonly lagged: boolean;
  /** An `error` may carry code and retry class. */
  readonly readsCodes: boolean;
}

/** Writes the events of one subscription until either side ends it. */
export class EventStream implements Deliverer, Feed {
  readonly #context: BrokerContext;
  readonly #stream: SendStream;
  readonly #subscriber: Subscriber;
  readonly #options: EventStreamOptions;
  readonly #tenant: TenantRow;
  readonly #onEnd: () => void;
  #scratch: ByteWriter | null = null;
  /** A write is under way, or delivery has not begun yet. */
  #busy = true;
  #ended = false;
  /** A page of history is on its way. */
  #fetching = false;
  #reportedDrops = 0;
  #dropLog: LogGate | null = null;
  /** The last write left something behind: the next may wait for more to gather. */
  #behind = false;
  #delay: ReturnType<typeof setTimeout> | undefined;
  #ending = false;
  #last: Message | null = null;

  /** `onEnd` is called once, when nothing more will be sent. */
  constructor(
    context: BrokerContext,
    stream: SendStream,
    subscriber: Subscriber,
    options: EventStreamOptions,
    onEnd: () => void,
  ) {
    this.#options = options;
    this.#context = context;
    this.#stream = stream;
    this.#subscriber = subscriber;
    this.#tenant = context.metrics.tenants.row(subscriber.shard.stream.definition.tenant);
    this.#onEnd = onEnd;
    subscriber.onReady = (): void => {
      if (!this.#busy) context.turn.deliverLater(this);
    };
  }

  /** Whether events are on their way or queued. */
  get busy(): boolean {
    return !this.#ended && (this.#busy || this.#subscriber.queuedEnvelopes > 0);
  }

  /** Writes the hello, which must come before anything else on the stream. Never rejects. */
  async hello(): Promise<void> {
    const out = this.#context.writers.borrow();
    encodeMessage({ type: "event_stream_hello", subscription_id: this.#options.id }, out);
    try {
      await this.#stream.write(out.written());
      this.#context.writers.give(out);
    } catch {
      this.#onStopped();
    }
  }

  /** Begins delivery; the answer to the subscribe has been written. */
  start(): void {
    this.#busy = false;
    this.deliver();
  }

  /** Ends cleanly after everything queued, `last` being the final frame (spec/wire.md §1.5). */
  endWith(last: Message | null): void {
    this.#ending = true;
    this.#last = last;
    if (!this.#busy) this.#context.turn.deliverLater(this);
  }

  /** Stops at once and gives the queue up. */
  abandon(): void {
    if (this.#ended) return;
    this.#ended = true;
    clearTimeout(this.#delay);
    this.#subscriber.onReady = null;
    this.#onEnd();
  }

  /** Says in the log that events were dropped, at most once in a while (spec/operations.md §10). */
  reportDrops(subscriptionId: bigint, remoteAddress: string): void {
    const { dropped, queuedEnvelopes } = this.#subscriber;
    if (dropped === this.#reportedDrops) return;
    if (!(this.#dropLog ??= new LogGate()).open(this.#context.nowMs())) return;
    this.#context.log.warn("events dropped for subscriber", {
      subscription_id: String(subscriptionId),
      remote_addr: remoteAddress,
      dropped: dropped - this.#reportedDrops,
      queue: queuedEnvelopes,
    });
    this.#reportedDrops = dropped;
  }

  /** Starts the next write, if there is something to write and none is under way. */
  deliver(): void {
    if (this.#busy || this.#ended) return;
    const bytes = this.#next();
    const { historyFrom, queuedBytes } = this.#subscriber;
    const wanting = historyFrom !== null && queuedBytes < HISTORY_AHEAD_BYTES;
    if (wanting && !this.#fetching && !this.#ending) this.#fetchHistory();
    if (bytes === null) return this.#idle();
    this.#busy = true;
    this.#stream.write(bytes).then(this.#onWritten, this.#onStopped);
  }

  /** Nothing is queued: history is on its way, or the stream has come to its end, or it waits. */
  #idle(): void {
    const { historyFrom, firstDroppedAt } = this.#subscriber;
    if (historyFrom !== null && !this.#ending) return;
    if (this.#options.lagged && firstDroppedAt >= 0) this.#last = this.#lagged(firstDroppedAt);
    else if (!this.#ending) return;
    this.#finish();
  }

  #lagged(resumeFrom: number): Message {
    const subscription_id = this.#options.id;
    return { type: "subscription_lagged", subscription_id, resume_from: BigInt(resumeFrom) };
  }

  /**
   * Fetches the next page of history while the one before is written; live events follow in the
   * turn in which history is complete.
   */
  #fetchHistory(): void {
    this.#fetching = true;
    const { shard } = this.#subscriber;
    shard.replay(this.#subscriber).then(() => {
      this.#fetching = false;
      this.deliver();
    }, (error) => this.#historyLost(error));
  }

  /** Never a bare end, which a client takes for the end of the stream (spec/semantics.md §4.7). */
  #historyLost(error: unknown): void {
    // A stream that was deleted says so: its log is closed, which is no news.
    if (this.#ended || this.#ending) return;
    const from = this.#subscriber.historyFrom!;
    const code = error instanceof StorageError ? error.code : "internal";
    this.#context.log.warn("history cannot be read on", { offset: from, code, error });
    const message = `history cannot be read on from offset ${from}: ${code}`;
    this.endWith(
      this.#options.lagged
        ? this.#lagged(from)
        : errorMessage({ code: "storage", message, retry: "retry" }, this.#options.readsCodes),
    );
  }

  readonly #onWritten = (): void => {
    if (this.#scratch !== null) {
      this.#context.writers.give(this.#scratch);
      this.#scratch = null;
    }
    this.#busy = false;
    if (this.#behind && this.#context.settings.eventBatchMaxDelayUs >= MIN_DELAY_US) this.#gather();
    else this.deliver();
  };

  /** Lets events gather for the configured time, unless a frame's bounds are reached already. */
  #gather(): void {
    const { eventBatchMaxEvents, eventBatchMaxBytes, eventBatchMaxDelayUs } =
      this.#context.settings;
    const { queuedRecords, queuedBytes } = this.#subscriber;
    const full = queuedRecords >= eventBatchMaxEvents || queuedBytes >= eventBatchMaxBytes;
    if (full || this.#ending) return this.deliver();
    this.#busy = true;
    this.#delay = setTimeout(() => {
      this.#busy = false;
      this.deliver();
    }, eventBatchMaxDelayUs / 1000);
  }

  readonly #onStopped = (): void => {
    this.#context.metrics.subscribe.disconnects++;
    this.abandon();
  };

  /** The bytes of the next write; `null` when the queue is empty. */
  #next(): Uint8Array | null {
    const { settings, writers } = this.#context;
    const subscriber = this.#subscriber;
    const maxBytes = settings.eventBatchMaxBytes;
    let batch = subscriber.take(settings.eventBatchMaxEvents, maxBytes);
    if (batch.length === 0) return null;
    this.#behind = batch.length > 1 || subscriber.queuedEnvelopes > 0;
    this.#count(batch);
    const frame = this.#sharedFrame(batch);
    if (frame !== null && (subscriber.queuedEnvelopes === 0 || frame.length >= maxBytes)) {
      return frame;
    }
    const out = this.#scratch = writers.borrow();
    const { offsets } = this.#options;
    if (frame === null) appendFrame(out, batch, offsets);
    else out.bytes(frame);
    for (let frames = 1; frames < settings.subFlushMaxItems; frames++) {
      if (out.length >= settings.subMaxBytesPerWrite) break;
      batch = subscriber.take(settings.eventBatchMaxEvents, maxBytes);
      if (batch.length === 0) break;
      this.#count(batch);
      const shared = this.#sharedFrame(batch);
      if (shared === null) appendFrame(out, batch, offsets);
      else out.bytes(shared);
    }
    return out.written();
  }

  #count(batch: readonly Delivery[]): void {
    const { subscribe } = this.#context.metrics;
    for (let index = 0; index < batch.length; index++) {
      const { count, payloadBytes } = batch[index]!;
      subscribe.bytes += payloadBytes;
      this.#tenant.deliveredMessages += count;
      this.#tenant.deliveredBytes += payloadBytes;
    }
  }

  /** The frame that all subscribers of an envelope share; `null` = one of its own is due. */
  #sharedFrame(batch: readonly Delivery[]): Uint8Array | null {
    const first = batch[0]!;
    if (batch.length > 1 || first.from > 0) return null;
    return first.envelope.frame(this.#options.offsets ? "offsets" : "plain", encodeEnvelope);
  }

  async #finish(): Promise<void> {
    this.#busy = true;
    const out = this.#context.writers.borrow();
    try {
      if (this.#last !== null) {
        encodeMessage(this.#last, out);
        await this.#stream.write(out.written());
      }
      await this.#stream.finish();
      this.#context.writers.give(out);
    } catch {
      // The client stopped reading first; it knows nothing less for it.
    }
    this.abandon();
  }
}

/** One frame with the records of several deliveries (spec/wire.md §5.6). */
function appendFrame(out: ByteWriter, batch: readonly Delivery[], offsets: boolean): void {
  let count = 0;
  let bodyBytes = 0;
  for (const { envelope, bodyStart, count: records } of batch) {
    count += records;
    bodyBytes += envelope.storage.length - bodyStart;
  }
  const flags = FLAG_BINARY_EVENT_BATCH_SHARED | (offsets ? FLAG_EVENT_BATCH_OFFSETS : 0);
  writeFrameHeader(out, flags, (offsets ? 12 : 4) + bodyBytes);
  if (offsets) out.u64(BigInt(batch[0]!.base));
  out.u32(count);
  for (const { envelope, bodyStart } of batch) {
    const { storage } = envelope;
    out.bytes(bodyStart === 0 ? storage : storage.subarray(bodyStart));
  }
}
