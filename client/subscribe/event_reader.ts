// Reads one event stream to its end: frames become batches, and the last frame (or its absence)
// says why it ended (spec/wire.md §4.5). A frame is copied once, into memory that the application
// may keep: cheaper than leaving it the read buffer, which would have to be made anew every time.

import {
  assertKnownFlags,
  ByteWriter,
  decodeEventRecords,
  decodeMessage,
  FLAG_BINARY_EVENT_BATCH,
  FLAG_BINARY_EVENT_BATCH_SHARED,
} from "@felix/wire";
import type { ShardMovedMessage } from "@felix/wire";
import { errorFromRefusal } from "../failure/broker_failure.ts";
import { ProtocolError } from "../failure/classes.ts";
import type { FelixError } from "../failure/felix_error.ts";
import type { EventStream } from "../link/event_router.ts";
import { refusalOf } from "../link/refusal.ts";
import type { EventRun } from "./event.ts";
import { PayloadSlab } from "./payload_slab.ts";

/** A batch as it came in. */
export interface IncomingBatch {
  readonly run: EventRun;
  readonly base: bigint | null;
  readonly skippedBefore: bigint;
  readonly publisher: string | undefined;
}

/** Why an event stream ended. */
export type StreamEnd =
  | { readonly kind: "finished" }
  | { readonly kind: "deleted" }
  | { readonly kind: "moved"; readonly message: ShardMovedMessage }
  | { readonly kind: "lagged"; readonly resumeFrom: bigint }
  /** The broker gave a reason that is final. */
  | { readonly kind: "refused"; readonly error: FelixError }
  /** Reset, lost, or unreadable. */
  | { readonly kind: "lost"; readonly cause: unknown }
  /** The sink had enough. */
  | { readonly kind: "stopped" };

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
  readonly #broker: string;
  readonly #slab = new PayloadSlab();

  /** Reads `source`, the stream of subscription `id`. */
  constructor(source: EventStream, id: bigint, broker: string) {
    this.#source = source;
    this.#id = id;
    this.#broker = broker;
  }

  /** Reads to the end. Never rejects. */
  async run(sink: EventSink): Promise<StreamEnd> {
    const { stream, reader } = this.#source;
    try {
      for (;;) {
        for (let frame = reader.next(); frame !== null; frame = reader.next()) {
          assertKnownFlags(frame.flags);
          const end = this.#frame(frame.flags, frame.payload, sink);
          if (end !== null) return this.#stop(end);
          const room = sink.room();
          if (room !== null) await room;
        }
        const view = await stream.read(reader.space());
        if (view === null) {
          return reader.inHeader
            ? { kind: "finished" }
            : { kind: "lost", cause: this.#protocol("the stream ended inside a frame") };
        }
        reader.filled(view);
      }
    } catch (error) {
      const known = error instanceof Error && error.name === "TransportError";
      const cause = known || error instanceof ProtocolError
        ? error
        : this.#protocol(`unreadable event stream: ${String(error)}`, error);
      return this.#stop({ kind: "lost", cause });
    }
  }

  /** Gives the stream up. */
  cancel(): void {
    this.#source.stream.cancel();
  }

  #stop(end: StreamEnd): StreamEnd {
    this.#source.stream.cancel();
    return end;
  }

  #frame(flags: number, payload: Uint8Array, sink: EventSink): StreamEnd | null {
    if ((flags & (FLAG_BINARY_EVENT_BATCH | FLAG_BINARY_EVENT_BATCH_SHARED)) === 0) {
      if (flags !== 0) throw this.#protocol(`frame flags ${flags} on an event stream`);
      return this.#message(payload, sink);
    }
    const batch = decodeEventRecords(flags, this.#slab.copy(payload));
    if (batch.subscriptionId !== undefined && batch.subscriptionId !== this.#id) {
      throw this.#protocol(`a batch of subscription ${batch.subscriptionId}, not ${this.#id}`);
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
      case "shard_moved":
        return { kind: "moved", message };
      case "subscription_lagged":
        return { kind: "lagged", resumeFrom: message.resume_from };
      case "stream_deleted":
        return { kind: "deleted" };
      case "error":
        return {
          kind: "refused",
          error: errorFromRefusal(refusalOf(message), {
            operation: "subscribe",
            broker: this.#broker,
          }),
        };
      default:
        throw this.#protocol(`${message.type} on an event stream`);
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

  #protocol(message: string, cause?: unknown): ProtocolError {
    return new ProtocolError({ message, operation: "subscribe", broker: this.#broker, cause });
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
