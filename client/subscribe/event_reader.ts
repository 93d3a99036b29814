// Reads one event stream of a subscription to its end: frames become batches. A frame is copied
// once, into memory that the application may keep: cheaper than leaving it the read buffer, which
// would have to be made anew every time.

import {
  ByteWriter,
  decodeEventRecords,
  decodeMessage,
  FLAG_BINARY_EVENT_BATCH,
  FLAG_BINARY_EVENT_BATCH_SHARED,
} from "@felix/wire";
import type { EventStream } from "../link/event_router.ts";
import type { EventRun } from "./event.ts";
import { PayloadSlab } from "./payload_slab.ts";
import { breach, endOf, readEventStream } from "./read_event_stream.ts";
import type { StreamContext, StreamEnd } from "./read_event_stream.ts";

/** A batch as it came in. */
export interface IncomingBatch {
  readonly run: EventRun;
  readonly base: bigint | null;
  readonly skippedBefore: bigint;
  readonly publisher: string | undefined;
}

/** Who takes batches. */
export interface EventSink {
  /** Takes a batch; false = read no further. */
  take(batch: IncomingBatch): boolean;
  /** A promise to wait for before more is read; `null` = go on. */
  room(): Promise<void> | null;
}

/** Reads one event stream. */
export class EventReader {
  readonly #source: EventStream;
  readonly #id: bigint;
  readonly #context: StreamContext;
  readonly #slab = new PayloadSlab();

  /** Reads `source`, the stream of subscription `id`. */
  constructor(source: EventStream, id: bigint, broker: string) {
    this.#source = source;
    this.#id = id;
    this.#context = { operation: "subscribe", broker };
  }

  /** Reads to the end. Never rejects. */
  run(sink: EventSink): Promise<StreamEnd> {
    return readEventStream(this.#source, this.#context, {
      frame: (flags, payload) => this.#frame(flags, payload, sink),
      room: () => sink.room(),
    });
  }

  /** Gives the stream up. */
  cancel(): void {
    this.#source.stream.cancel();
  }

  #frame(flags: number, payload: Uint8Array, sink: EventSink): StreamEnd | null {
    if ((flags & (FLAG_BINARY_EVENT_BATCH | FLAG_BINARY_EVENT_BATCH_SHARED)) === 0) {
      if (flags !== 0) throw breach(this.#context, `frame flags ${flags} on an event stream`);
      return this.#message(payload, sink);
    }
    const batch = decodeEventRecords(flags, this.#slab.copy(payload));
    if (batch.subscriptionId !== undefined && batch.subscriptionId !== this.#id) {
      throw breach(
        this.#context,
        `a batch of subscription ${batch.subscriptionId}, not ${this.#id}`,
      );
    }
    if (batch.count === 0) return null;
    const taken = sink.take({
      run: batch,
      base: batch.baseOffset ?? null,
      skippedBefore: batch.skippedBefore,
      publisher: batch.publisher,
    });
    return taken ? null : { kind: "stopped" };
  }

  #message(payload: Uint8Array, sink: EventSink): StreamEnd | null {
    const message = decodeMessage(payload);
    switch (message.type) {
      case "event":
        return this.#json([message.payload], message.offset, sink);
      case "event_batch":
        return this.#json(message.payloads, message.base_offset, sink);
      default:
        return endOf(message, this.#context);
    }
  }

  #json(
    payloads: readonly Uint8Array[],
    base: bigint | undefined,
    sink: EventSink,
  ): StreamEnd | null {
    if (payloads.length === 0) return null;
    const batch = { base: base ?? null, skippedBefore: 0n, publisher: undefined };
    return sink.take({ ...batch, run: runOf(payloads) }) ? null : { kind: "stopped" };
  }
}

/** Events that came one by one, laid out as those of a batch are. */
function runOf(payloads: readonly Uint8Array[]): EventRun {
  const out = new ByteWriter();
  for (const payload of payloads) {
    out.u32(payload.length);
    out.bytes(payload);
  }
  const records = out.written();
  const payloadBytes = records.length - 4 * payloads.length;
  return { records, prefixBytes: 4, count: payloads.length, payloadBytes };
}
