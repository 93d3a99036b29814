// One stream of a scripted broker: what the client sent on it, and means to answer anything. Every
// answer is one write, in the order given; failed writes are nobody's business.

import { ByteWriter, encodeMessage, encodePublishAck, FrameReader } from "@felix/wire";
import type { AuthMessage, ErrorCode, Message, PublishAck, RetryClass } from "@felix/wire";
import type { ByteStream, Connection, SendStream } from "@felix/transport";
import { encodeEventBatch } from "@felix/wire";
import type { EventBatchInput } from "@felix/wire";

/** Appends frames and sends them, each call one write, in order. */
export class FrameSender {
  readonly #stream: SendStream;

  /** Sends on `stream`. */
  constructor(stream: SendStream) {
    this.#stream = stream;
  }

  /** Sends a message. */
  send(message: Message): void {
    const out = new ByteWriter();
    encodeMessage(message, out);
    this.raw(out.take());
  }

  /** Sends bytes as they are. */
  raw(bytes: Uint8Array): void {
    this.#stream.write(bytes).catch(() => undefined);
  }

  /** Ends our side. */
  finish(): void {
    this.#stream.finish().catch(() => undefined);
  }
}

function cacheEvent(
  key: string,
  value: string | null,
  offset: number,
  expiresMs: number,
): Message {
  return {
    type: "cache_event",
    key,
    ...(value === null ? {} : { value: new TextEncoder().encode(value) }),
    offset: BigInt(offset),
    expires_at_millis: BigInt(expiresMs),
  };
}

/** An event stream towards the client. */
export class EventSender {
  readonly #sender: FrameSender;
  readonly #stream: SendStream;

  /** Sends on `stream`. */
  constructor(stream: SendStream) {
    this.#stream = stream;
    this.#sender = new FrameSender(stream);
  }

  /** Sends a batch. */
  batch(batch: EventBatchInput): void {
    const out = new ByteWriter();
    encodeEventBatch(out, batch);
    this.#sender.raw(out.take());
  }

  /** Sends texts from offset `base` on. */
  texts(texts: readonly string[], base?: number): void {
    const encoder = new TextEncoder();
    const payloads = texts.map((text) => encoder.encode(text));
    this.batch({ payloads, ...(base === undefined ? {} : { baseOffset: BigInt(base) }) });
  }

  /** Sends a change of a cache; `null` = removed. */
  change(key: string, value: string | null, offset: number, expiresMs = 0): void {
    this.#sender.send(cacheEvent(key, value, offset, expiresMs));
  }

  /** Sends a change of a cache and waits until the transport took it. */
  async changed(key: string, value: string | null, offset: number): Promise<void> {
    const out = new ByteWriter();
    encodeMessage(cacheEvent(key, value, offset, 0), out);
    await this.#stream.write(out.take());
  }

  /** Sends a batch and waits until the transport took it. */
  async pushed(batch: EventBatchInput): Promise<void> {
    const out = new ByteWriter();
    encodeEventBatch(out, batch);
    await this.#stream.write(out.take());
  }

  /** Sends a message. */
  send(message: Message): void {
    this.#sender.send(message);
  }

  /** Sends bytes as they are. */
  raw(bytes: Uint8Array): void {
    this.#sender.raw(bytes);
  }

  /** Ends it. */
  finish(): void {
    this.#sender.finish();
  }
}

/** One stream that the client opened. */
export class BrokerStream {
  /** What it authenticated with; `null` before. */
  auth: AuthMessage | null = null;
  /** Whether the client has ended its side. */
  finished = false;
  readonly connection: BrokerConnection;
  readonly reader: FrameReader = new FrameReader();
  readonly #stream: ByteStream;
  readonly #sender: FrameSender;

  /** A stream on `connection`. */
  constructor(connection: BrokerConnection, stream: ByteStream) {
    this.connection = connection;
    this.#stream = stream;
    this.#sender = new FrameSender(stream);
  }

  /** The next bytes; false at the end. */
  async fill(): Promise<boolean> {
    const view = await this.#stream.read(this.reader.space()).catch(() => null);
    if (view === null) return false;
    this.reader.filled(view);
    return true;
  }

  /** Answers with a message. */
  send(message: Message): void {
    this.#sender.send(message);
  }

  /** Answers with bytes as they are. */
  raw(bytes: Uint8Array): void {
    this.#sender.raw(bytes);
  }

  /** Answers a publish. */
  ack(ack: PublishAck): void {
    const out = new ByteWriter();
    encodePublishAck(out, ack);
    this.#sender.raw(out.take());
  }

  /** Refuses a publish. */
  refusePublish(
    requestId: bigint,
    code: ErrorCode | undefined,
    retry?: RetryClass,
    detail: { reason?: string; retryAfterMs?: bigint } = {},
  ): void {
    const message = code ?? "no code";
    const error = {
      message,
      ...(code === undefined ? {} : { code, ...(retry === undefined ? {} : { retry }) }),
      ...detail,
    };
    this.ack({ requestId, error });
  }

  /** Sends an `error`. */
  refuse(code: string | undefined, retry?: string, message: string = code ?? "refused"): void {
    this.send({
      type: "error",
      message,
      ...(code === undefined ? {} : { code }),
      ...(retry === undefined ? {} : { retry }),
    });
  }

  /** Ends our side. */
  finish(): void {
    this.#sender.finish();
  }

  /** Gives up both sides. */
  abandon(): void {
    this.#stream.cancel();
    this.#stream.finish().catch(() => undefined);
  }
}

/** One connection of a client. */
export class BrokerConnection {
  /** Streams in the order they came. */
  readonly streams: BrokerStream[] = [];
  /** Set once it has ended. */
  ended = false;
  readonly connection: Connection;

  /** Wraps an accepted connection. */
  constructor(connection: Connection) {
    this.connection = connection;
    void connection.closed.then(() => this.ended = true);
  }

  /** Opens an event stream and greets. */
  async events(subscriptionId: bigint): Promise<EventSender> {
    const events = new EventSender(await this.connection.openUnidirectional());
    events.send({ type: "event_stream_hello", subscription_id: subscriptionId });
    return events;
  }

  /** Closes it. */
  close(code = 0, reason = "broker shutting down"): void {
    this.connection.close(code, reason);
  }
}
