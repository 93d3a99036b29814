// Brings together the two halves of a subscription on one connection: the answer on the request
// stream and the event stream that the broker opens, in either order. The rule: what waits for its
// other half is bounded in number and in time (spec/client.md §7.1).

import { decodeMessage, FrameReader } from "@felix/wire";
import type { ReceiveStream } from "@felix/transport";
import { ConnectionError, ProtocolError } from "../failure/classes.ts";
import { monotonicMs } from "../runtime/deno.ts";

/** An event stream after its hello. */
export interface EventStream {
  readonly stream: ReceiveStream;
  /** Holds what was read behind the hello. */
  readonly reader: FrameReader;
}

interface Unmatched extends EventStream {
  readonly sinceMs: number;
}

interface Waiting {
  resolve(stream: EventStream): void;
  reject(error: unknown): void;
}

/** How long half a subscription is kept, in milliseconds. */
const UNMATCHED_MS = 30_000;

/** The router of one connection. */
export class EventRouter {
  readonly #broker: string;
  readonly #maxFrameBytes: number;
  readonly #maxPending: number;
  readonly #dropped: (reason: string) => void;
  readonly #unmatched = new Map<bigint, Unmatched>();
  readonly #waiting = new Map<bigint, Waiting>();
  readonly #greeting = new Map<ReceiveStream, number>();
  #closed = false;

  /** `dropped` is told why a stream was given up. */
  constructor(options: {
    broker: string;
    maxFrameBytes: number;
    maxPending: number;
    dropped: (reason: string) => void;
  }) {
    this.#broker = options.broker;
    this.#maxFrameBytes = options.maxFrameBytes;
    this.#maxPending = options.maxPending;
    this.#dropped = options.dropped;
  }

  /** Entries that wait for their other half. */
  get pending(): number {
    return this.#unmatched.size + this.#waiting.size + this.#greeting.size;
  }

  /** Takes in a stream that the broker opened and reads its hello. */
  async accept(stream: ReceiveStream): Promise<void> {
    if (this.#closed || this.pending >= this.#maxPending) {
      stream.cancel();
      return this.#dropped("too many event streams wait for their subscription");
    }
    this.#greeting.set(stream, monotonicMs());
    try {
      await this.#greet(stream);
    } catch (error) {
      stream.cancel();
      if (!this.#closed) this.#dropped(`event stream without a hello: ${String(error)}`);
    } finally {
      this.#greeting.delete(stream);
    }
  }

  /** The event stream of subscription `id`. @throws {ConnectionError} when the connection ends */
  wait(id: bigint): Promise<EventStream> {
    const ready = this.#unmatched.get(id);
    if (ready !== undefined) {
      this.#unmatched.delete(id);
      return Promise.resolve(ready);
    }
    if (this.#closed) return Promise.reject(this.#lost());
    return new Promise((resolve, reject) => this.#waiting.set(id, { resolve, reject }));
  }

  /** Nobody waits for subscription `id` any more. */
  forget(id: bigint): void {
    this.#waiting.delete(id);
    const ready = this.#unmatched.get(id);
    if (ready === undefined) return;
    this.#unmatched.delete(id);
    ready.stream.cancel();
  }

  /** Drops what has waited for too long. */
  sweep(nowMs: number): void {
    for (const [id, entry] of this.#unmatched) {
      if (nowMs - entry.sinceMs < UNMATCHED_MS) continue;
      this.#unmatched.delete(id);
      entry.stream.cancel();
      this.#dropped(`nobody asked for subscription ${id}`);
    }
    for (const [stream, sinceMs] of this.#greeting) {
      if (nowMs - sinceMs >= UNMATCHED_MS) stream.cancel();
    }
  }

  /** The connection has ended. */
  close(): void {
    this.#closed = true;
    for (const entry of this.#unmatched.values()) entry.stream.cancel();
    this.#unmatched.clear();
    for (const waiting of this.#waiting.values()) waiting.reject(this.#lost());
    this.#waiting.clear();
    for (const stream of this.#greeting.keys()) stream.cancel();
  }

  async #greet(stream: ReceiveStream): Promise<void> {
    const reader = new FrameReader({ maxPayloadBytes: this.#maxFrameBytes });
    let frame = reader.next();
    while (frame === null) {
      const view = await stream.read(reader.space());
      if (view === null) throw this.#protocol("it ended");
      reader.filled(view);
      frame = reader.next();
    }
    const message = frame.flags === 0 ? decodeMessage(frame.payload) : null;
    if (message?.type !== "event_stream_hello") throw this.#protocol(`got ${message?.type}`);
    const id = message.subscription_id;
    const waiting = this.#waiting.get(id);
    if (waiting !== undefined) {
      this.#waiting.delete(id);
      waiting.resolve({ stream, reader });
    } else if (this.#closed || this.#unmatched.has(id)) {
      throw this.#protocol(`subscription ${id} was greeted twice`);
    } else {
      this.#unmatched.set(id, { stream, reader, sinceMs: monotonicMs() });
    }
  }

  #protocol(message: string): ProtocolError {
    return new ProtocolError({ message, operation: "subscribe", broker: this.#broker });
  }

  #lost(): ConnectionError {
    return new ConnectionError("request", {
      message: "the connection ended before the event stream was there",
      operation: "subscribe",
      broker: this.#broker,
    });
  }
}
