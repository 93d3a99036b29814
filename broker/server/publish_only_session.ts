// A stream that only the client writes: `auth`, then publishes that nobody answers. Anything else
// ends it (spec/wire.md §10, last column).

import {
  decodeMessage,
  FLAG_BINARY_PUBLISH_BATCH,
  FLAG_BINARY_PUBLISH_KEYED,
  FrameReader,
  WireError,
} from "@felix/wire";
import type { Frame } from "@felix/wire";
import { TransportError } from "@felix/transport";
import type { ReceiveStream } from "@felix/transport";
import type { ClientConnection } from "./connection.ts";
import type { BrokerContext } from "./context.ts";
import { Publisher } from "./publisher.ts";

/** Flags of a publish that needs no answer. */
const SERVED_FLAGS = FLAG_BINARY_PUBLISH_BATCH | FLAG_BINARY_PUBLISH_KEYED;

/** Serves one stream that a client opened in one direction. */
export class PublishOnlySession {
  readonly #context: BrokerContext;
  readonly #connection: ClientConnection;
  readonly #stream: ReceiveStream;
  readonly #reader: FrameReader;
  #publisher: Publisher | null = null;
  #ended = false;

  constructor(context: BrokerContext, connection: ClientConnection, stream: ReceiveStream) {
    this.#context = context;
    this.#connection = connection;
    this.#stream = stream;
    this.#reader = new FrameReader({ maxPayloadBytes: context.settings.preauthMaxFrameBytes });
  }

  /** Reads until the stream ends. Never rejects. */
  async run(): Promise<void> {
    await this.#connection.preauth.enter();
    try {
      while (!this.#ended) {
        const view = await this.#stream.read(this.#reader.space());
        if (view === null) break;
        this.#reader.filled(view);
        this.#context.metrics.wire.reads++;
        let pause = this.#turn();
        while (pause !== null) {
          await pause;
          pause = this.#turn();
        }
      }
    } catch (error) {
      if (error instanceof WireError) this.#context.metrics.wire.malformedFrames++;
      else if (!(error instanceof TransportError)) {
        this.#context.log.error("stream failed", { error: String(error), code: "internal" });
      }
    }
    if (this.#publisher === null) this.#connection.preauth.leave();
    this.#stream.cancel();
  }

  #turn(): Promise<void> | null {
    let pause: Promise<void> | null = null;
    while (!this.#ended && pause === null) {
      const frame = this.#reader.next();
      if (frame === null) break;
      pause = this.#publisher === null ? this.#authenticate(frame) : this.#frame(frame);
    }
    if (this.#publisher !== null) {
      this.#context.pump();
      this.#context.pipeline.ownPending();
    }
    return pause;
  }

  #frame({ flags, payload }: Frame): Promise<void> | null {
    const publisher = this.#publisher!;
    if (flags === 0) this.#message(publisher, payload);
    else if ((flags & ~SERVED_FLAGS) !== 0) this.#ended = true;
    else if (publisher.frame(flags, payload) === "end") this.#ended = true;
    return publisher.full ? publisher.room() : null;
  }

  #message(publisher: Publisher, payload: Uint8Array): void {
    const message = decodeMessage(payload);
    if (message.type === "publish_width") return;
    const served = message.type === "publish" || message.type === "publish_batch";
    if (!served || publisher.message(message) === "end") this.#ended = true;
  }

  async #authenticate({ flags, payload }: Frame): Promise<void> {
    const message = flags === 0 ? decodeMessage(payload) : null;
    const peer = message?.type === "auth" ? await this.#connection.authenticate(message) : null;
    if (peer === null || this.#context.draining()) {
      this.#ended = true;
      return;
    }
    const { budget, preauth } = this.#connection;
    this.#publisher = new Publisher(this.#context, peer, budget, null);
    preauth.leave();
    this.#reader.maxPayloadBytes = this.#context.settings.maxFrameBytes;
  }
}
