// A client that sends exactly the bytes a test wants and reads exactly the frames that come back:
// QUIC from the transport room, frames from `frames.ts`, nothing in between. Every wait has a
// deadline, so a broker that hangs fails a test instead of hanging it.

import {
  type ByteStream,
  type CloseInfo,
  type Connection,
  nativeTransport,
  type ReceiveStream,
  type SendStream,
} from "@felix/transport";
import { assertEquals } from "@std/assert";
import { within } from "../support/poll.ts";
import type { DevBroker } from "../support/servers.ts";
import { FrameCutter, json, jsonText, type RawFrame, readEvents, readJson } from "./frames.ts";

/** What a client offers in `auth` (spec/wire.md §3.1). */
export interface Offer {
  readonly client_flags?: number;
  readonly client_features?: number;
  readonly client_features_hi?: number;
}

/** What the published client 0.6.2 offers (spec/wire.md §3.6). */
export const FULL_OFFER: Offer = {
  client_flags: 0x1fff,
  client_features: 0xfb77_ffff,
  client_features_hi: 0x0f,
};

/** A client from before negotiation. */
export const NO_OFFER: Offer = {};

/** Deadline of one wait in milliseconds. */
const WAIT_MS = 20_000;

/** Reads frames from one stream. */
export class FrameStream {
  readonly #stream: ReceiveStream;
  readonly #cutter = new FrameCutter();
  #memory = new Uint8Array(16 * 1024);
  #ended = false;

  constructor(stream: ReceiveStream) {
    this.#stream = stream;
  }

  /** The next frame; `null` at a clean end. @throws {PollTimeout} */
  next(what = "a frame", deadlineMs = WAIT_MS): Promise<RawFrame | null> {
    return within(this.#next(), what, deadlineMs);
  }

  async #next(): Promise<RawFrame | null> {
    for (;;) {
      const frame = this.#cutter.next();
      if (frame !== null) return frame;
      if (this.#ended) return null;
      const view = await this.#stream.read(this.#memory);
      if (view === null) {
        this.#ended = true;
        assertEquals(this.#cutter.pending, 0, "the stream ended inside a frame");
        return null;
      }
      this.#cutter.push(view);
      this.#memory = new Uint8Array(view.buffer);
    }
  }

  /** The next frame, which must be JSON. */
  async message(): Promise<Record<string, unknown>> {
    return readJson(await this.frame());
  }

  /** The text of the next frame, which must be JSON. */
  async text(): Promise<string> {
    return jsonText(await this.frame());
  }

  /** The next frame, which must be there. */
  async frame(): Promise<RawFrame> {
    const frame = await this.next();
    if (frame === null) throw new RangeError("the stream ended instead of a frame");
    return frame;
  }

  /** The next `count` payloads of event frames. */
  async events(count: number): Promise<Uint8Array[]> {
    const payloads: Uint8Array[] = [];
    while (payloads.length < count) {
      for (const payload of readEvents(await this.frame()).payloads) payloads.push(payload);
    }
    return payloads;
  }

  /** Every frame up to the clean end. */
  async rest(): Promise<RawFrame[]> {
    const frames: RawFrame[] = [];
    for (let frame = await this.next(); frame !== null; frame = await this.next()) {
      frames.push(frame);
    }
    return frames;
  }

  /** Asks the peer to stop sending. */
  cancel(): void {
    this.#ended = true;
    this.#stream.cancel();
  }
}

/** A stream in both directions. */
export class RawStream extends FrameStream {
  readonly #send: SendStream;

  constructor(stream: ByteStream) {
    super(stream);
    this.#send = stream;
  }

  /** Sends bytes as they stand. */
  send(bytes: Uint8Array): Promise<void> {
    return within(this.#send.write(bytes), "a write", WAIT_MS);
  }

  /** Sends bytes; a peer that stopped reading is no failure. */
  async offer(bytes: Uint8Array): Promise<void> {
    await this.send(bytes).catch(() => {});
  }

  /** Sends a message and answers the next message. */
  async ask(message: Record<string, unknown>): Promise<Record<string, unknown>> {
    await this.send(json(message));
    return await this.message();
  }

  /** Ends this side cleanly. */
  async finish(): Promise<void> {
    await this.#send.finish().catch(() => {});
  }
}

/** One connection to a development broker. */
export class RawConnection implements AsyncDisposable {
  private constructor(readonly broker: DevBroker, readonly connection: Connection) {}

  /** Connects to `broker`. */
  static async connect(broker: DevBroker): Promise<RawConnection> {
    const connection = await nativeTransport.connect({
      hostname: "127.0.0.1",
      port: broker.port,
      serverName: "localhost",
      caCerts: [broker.ca],
    });
    return new RawConnection(broker, connection);
  }

  /** How the connection ended. @throws {PollTimeout} */
  closed(deadlineMs = WAIT_MS): Promise<CloseInfo> {
    return within(this.connection.closed, "the end of the connection", deadlineMs);
  }

  /** The `auth` of the development tenant. */
  auth(offer: Offer = FULL_OFFER, token: string = this.broker.token): Record<string, unknown> {
    return { type: "auth", tenant_id: this.broker.tenant, token, ...offer };
  }

  /** A new stream, not authenticated. */
  async open(): Promise<RawStream> {
    const opening = this.connection.openBidirectional();
    return new RawStream(await within(opening, "a stream", WAIT_MS));
  }

  /** A new authenticated stream and the answer to its `auth`. */
  async authenticated(
    offer: Offer = FULL_OFFER,
    token: string = this.broker.token,
  ): Promise<{ stream: RawStream; answer: Record<string, unknown> }> {
    const stream = await this.open();
    const answer = await stream.ask(this.auth(offer, token));
    assertEquals(
      answer["type"],
      offer.client_flags === undefined ? "ok" : "auth_ok",
      JSON.stringify(answer),
    );
    return { stream, answer };
  }

  /** A new authenticated stream. */
  async stream(offer?: Offer, token?: string): Promise<RawStream> {
    return (await this.authenticated(offer, token)).stream;
  }

  /** A new one-way stream of this side. */
  oneWay(): Promise<SendStream> {
    return within(this.connection.openUnidirectional(), "a one-way stream", WAIT_MS);
  }

  /** The next event stream that the broker opens. */
  async acceptEvents(): Promise<FrameStream> {
    const stream = await within(
      this.connection.acceptUnidirectional(),
      "an event stream",
      WAIT_MS,
    );
    if (stream === null) throw new RangeError("the connection ended instead of an event stream");
    return new FrameStream(stream);
  }

  /** Subscribes as the published client does; the event stream comes back after its hello. */
  async subscribe(
    request: Record<string, unknown> = {},
    offer: Offer = FULL_OFFER,
  ): Promise<{ subscribed: Record<string, unknown>; events: FrameStream }> {
    const stream = await this.stream(offer);
    await stream.send(json({
      type: "subscribe",
      tenant_id: this.broker.tenant,
      namespace: this.broker.namespace,
      stream: "events",
      ...request,
    }));
    await stream.finish();
    const events = await this.acceptEvents();
    const hello = await events.message();
    const subscribed = await stream.message();
    assertEquals(subscribed["type"], "subscribed", JSON.stringify(subscribed));
    assertEquals(hello["subscription_id"], subscribed["subscription_id"]);
    return { subscribed, events };
  }

  /** Fails unless the connection still takes and answers a new stream. */
  async assertServes(): Promise<void> {
    const stream = await this.stream();
    const answer = await stream.ask({ type: "topology" });
    assertEquals(answer["type"], "topology_view");
    await stream.finish();
  }

  /** Closes the connection. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.connection.close();
    await this.connection.closed;
  }
}
