// One stream in both directions: reads frames one at a time, checks them in the order of
// spec/wire.md §10, and answers through one outbox. Everything that one read brought is handled in
// one turn, and its answers leave in one write. An error ends the stream, never the connection.

import {
  decodeMessage,
  encodeMessage,
  FEATURE_ERROR_CODES,
  FEATURE_UNSUPPORTED,
  FLAG_BINARY_PUBLISH_BATCH,
  FrameReader,
  KNOWN_FLAGS,
  WireError,
} from "@felix/wire";
import type { AuthMessage, Frame, Message } from "@felix/wire";
import { TransportError } from "@felix/transport";
import type { ByteStream } from "@felix/transport";
import { watchCache } from "./cache_watch.ts";
import { CacheRequests } from "./cache_requests.ts";
import type { CacheRequest } from "./cache_requests.ts";
import type { ClientConnection } from "./connection.ts";
import type { BrokerContext } from "./context.ts";
import { authOk, offers } from "./negotiation.ts";
import type { Peer } from "./negotiation.ts";
import { Outbox } from "./outbox.ts";
import { answerProducerInit } from "./producer_init.ts";
import { Publisher } from "./publisher.ts";
import { answerQuery } from "./queries.ts";
import type { Query } from "./queries.ts";
import { encodeError, REFUSAL } from "./refusal.ts";
import type { Refusal } from "./refusal.ts";
import { subscribe } from "./subscribe.ts";

/** Answers queued on one stream beyond which its requests are left unread. */
const MAX_ANSWER_BYTES = 1024 * 1024;
/** How long a client may leave its answers unread before the stream ends. */
const SLOW_READER_MS = 30_000;

/** Requests of the protocol that this broker does not serve and does not advertise. */
const UNSERVED_REQUESTS: ReadonlySet<string> = new Set([
  "publish_if",
  "commit",
  "state_get",
  "stream_read",
  "offset_for_time",
  "trim_before",
  "group_poll",
  "group_ack",
  "group_nack",
  "group_extend",
  "group_dead_letter",
  "group_dead_letters",
  "group_discard",
  "group_redrive",
  "group_seek",
  "group_describe",
  "group_delete",
  "shard_inspect",
  "subscriptions_list",
]);

/** Requests that only a broker with durable storage serves and advertises. */
const NEEDS_STORAGE: ReadonlySet<string> = new Set([
  "cache_put_if",
  "cache_delete_if",
  "cache_watch",
  "counter_add",
  "counter_get",
]);

/** Serves one stream that a client opened in both directions. */
export class Session {
  readonly #context: BrokerContext;
  readonly #connection: ClientConnection;
  readonly #stream: ByteStream;
  readonly #reader: FrameReader;
  readonly #outbox: Outbox;
  readonly #openedWhileDraining: boolean;
  #peer: Peer | null = null;
  #publisher: Publisher | null = null;
  #caches: CacheRequests | null = null;
  #ended = false;

  constructor(context: BrokerContext, connection: ClientConnection, stream: ByteStream) {
    this.#context = context;
    this.#connection = connection;
    this.#stream = stream;
    this.#outbox = new Outbox(stream, context.writers, connection.answers);
    this.#reader = new FrameReader({ maxPayloadBytes: context.settings.preauthMaxFrameBytes });
    this.#openedWhileDraining = context.draining();
  }

  /** Whether answers are still owed or on their way. */
  get busy(): boolean {
    return this.#outbox.queuedBytes > 0 || (this.#publisher?.unanswered ?? 0) > 0 ||
      (this.#caches?.answers.owed ?? 0) > 0;
  }

  /** Reads nothing more; what is owed is still answered. */
  stopReading(): void {
    this.#ended = true;
  }

  /** Reads and answers until the stream ends. Never rejects. */
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
      this.#failed(error);
    }
    if (this.#peer === null) this.#connection.preauth.leave();
    await this.#finish();
  }

  /** Handles the frames at hand; a promise says that the rest must wait for it. */
  #turn(): Promise<void> | null {
    let pause: Promise<void> | null = null;
    if (this.#publisher !== null) this.#publisher.inTurn = true;
    const { answers } = this.#connection;
    while (!this.#ended && pause === null) {
      if (answers.full && this.#reader.pendingBytes > 0) {
        pause = this.#unlessSlow(answers.room());
        break;
      }
      const frame = this.#reader.next();
      if (frame === null) break;
      pause = this.#frame(frame) ?? this.#pressure();
    }
    if (this.#publisher !== null) {
      this.#context.pump();
      this.#context.pipeline.ownPending();
      this.#publisher.inTurn = false;
    }
    this.#outbox.flush();
    return pause;
  }

  /** A reason to leave further requests unread for now. */
  #pressure(): Promise<void> | null {
    if (this.#publisher?.full) return this.#publisher.room();
    if (this.#caches?.answers.full) return this.#caches.answers.room();
    const tooMuch = this.#outbox.queuedBytes > MAX_ANSWER_BYTES;
    return tooMuch ? this.#unlessSlow(this.#outbox.drained()) : null;
  }

  /** Waits for `room`; a client that leaves its answers unread for long loses the stream. */
  async #unlessSlow(room: Promise<void>): Promise<void> {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<boolean>((resolve) => {
      timer = setTimeout(() => resolve(true), SLOW_READER_MS);
    });
    const isLate = await Promise.race([room.then(() => false), late]);
    clearTimeout(timer);
    if (isLate) this.#ended = true;
  }

  #frame(frame: Frame): Promise<void> | null {
    const { flags, payload } = frame;
    const peer = this.#peer;
    if ((flags & ~KNOWN_FLAGS) !== 0) {
      this.#context.metrics.wire.unknownFlags++;
      this.#error(REFUSAL.unknownFlags);
      return null;
    }
    if (flags === 0) return this.#message(payload);
    if (peer === null) return this.#end(REFUSAL.authRequired);
    if ((flags & FLAG_BINARY_PUBLISH_BATCH) === 0) {
      return this.#end({ code: "invalid_request", message: "unexpected frame flags" });
    }
    if (this.#publish(peer).frame(flags, payload) === "end") this.#ended = true;
    return null;
  }

  #message(payload: Uint8Array): Promise<void> | null {
    if (this.#caches?.serveQuick(payload)) return null;
    let message: Message;
    try {
      message = decodeMessage(payload);
    } catch (error) {
      return this.#undecodable(error);
    }
    const peer = this.#peer;
    if (peer === null) {
      return message.type === "auth"
        ? this.#authenticate(message)
        : this.#end(REFUSAL.authRequired);
    }
    switch (message.type) {
      case "cache_get":
      case "cache_put":
      case "cache_delete":
        return this.#cache(peer, message);
      case "cache_put_if":
      case "cache_delete_if":
      case "counter_add":
      case "counter_get":
        return this.#keepsCaches ? this.#cache(peer, message) : this.#unserved(peer, message);
      case "cache_watch":
        if (!this.#keepsCaches) return this.#unserved(peer, message);
        this.#ended = true;
        return watchCache(this.#context, this.#connection, peer, message, this.#outbox);
      case "publish":
      case "publish_batch":
      case "publish_idempotent":
        if (this.#publish(peer).message(message) === "end") this.#ended = true;
        return null;
      case "subscribe":
        this.#ended = true;
        return subscribe(this.#context, this.#connection, peer, message, this.#outbox);
      case "topology":
      case "stream_shards":
      case "cache_shards":
      case "shard_owners":
        return this.#query(peer, message);
      case "publish_width":
        return null;
      case "producer_init":
        answerProducerInit(message, this.#outbox);
        return null;
      case "auth":
        return this.#end(REFUSAL.authTwice);
      case "extension":
        return this.#unsupported(peer, message.type, message.request_id, message.name);
      case "error":
        this.#ended = true;
        return null;
      default:
        return this.#unserved(peer, message);
    }
  }

  /** Whether caches are on logs, which conditions, counters and watches need. */
  get #keepsCaches(): boolean {
    return this.#context.settings.durableStorageDir !== null;
  }

  #cache(peer: Peer, request: CacheRequest): null {
    const { answers } = this.#connection;
    this.#caches ??= new CacheRequests(this.#context, peer, this.#outbox, answers);
    if (!this.#caches.serve(request)) this.#ended = true;
    return null;
  }

  #query(peer: Peer, query: Query): null {
    if (query.type !== "topology" && query.tenant_id !== peer.tenant) {
      return this.#end(REFUSAL.tenantMismatch);
    }
    answerQuery(this.#context, query, this.#outbox);
    return null;
  }

  /** Messages only a broker sends end the stream; requests not served here are refused, go on. */
  #unserved(peer: Peer, message: Message): null {
    if (!UNSERVED_REQUESTS.has(message.type) && !NEEDS_STORAGE.has(message.type)) {
      return this.#end(REFUSAL.unexpectedType);
    }
    const id = "request_id" in message ? message.request_id : undefined;
    if (offers(peer, FEATURE_UNSUPPORTED)) return this.#unsupported(peer, message.type, id);
    const text = `${message.type} is not served by this broker`;
    this.#error({ code: "invalid_request", message: text });
    return null;
  }

  #unsupported(peer: Peer, requestType: string, requestId?: bigint, extension?: string): null {
    if (!offers(peer, FEATURE_UNSUPPORTED)) {
      this.#ended = true;
      return null;
    }
    encodeMessage({
      type: "unsupported",
      request_type: requestType,
      ...(extension === undefined ? {} : { extension }),
      ...(requestId === undefined ? {} : { request_id: requestId }),
    }, this.#outbox.writer);
    return null;
  }

  #undecodable(error: unknown): null {
    if (!(error instanceof WireError)) throw error;
    const peer = this.#peer;
    const unknown = error.unknownType;
    if (peer === null) return this.#end(REFUSAL.authRequired);
    if (unknown !== undefined) {
      return this.#unsupported(peer, unknown.requestType, unknown.requestId);
    }
    this.#context.metrics.wire.malformedFrames++;
    return this.#end({ code: "invalid_request", message: `malformed request: ${error.message}` });
  }

  #publish(peer: Peer): Publisher {
    if (this.#publisher === null) {
      const { budget } = this.#connection;
      this.#publisher = new Publisher(this.#context, peer, budget, this.#outbox);
      this.#publisher.inTurn = true;
    }
    return this.#publisher;
  }

  async #authenticate(auth: AuthMessage): Promise<void> {
    if (this.#openedWhileDraining) return this.#refuseWhileDraining(auth);
    const peer = await this.#connection.authenticate(auth);
    if (peer === null) {
      // The codes an answer may carry are those that the refused `auth` itself offered.
      encodeError(REFUSAL.authFailed, offersCodes(auth), this.#outbox.writer);
      this.#ended = true;
      return;
    }
    this.#peer = peer;
    this.#connection.preauth.leave();
    this.#reader.maxPayloadBytes = this.#context.settings.maxFrameBytes;
    const answer: Message = auth.client_flags === undefined
      ? { type: "ok" }
      : authOk(peer, this.#context.settings);
    encodeMessage(answer, this.#outbox.writer);
  }

  /** Only a client that reads codes is told; any other hears nothing until the close (§1.6). */
  async #refuseWhileDraining(auth: AuthMessage): Promise<void> {
    if (!offersCodes(auth)) await this.#connection.closed;
    else encodeError(REFUSAL.draining, true, this.#outbox.writer);
    this.#ended = true;
  }

  #error(refusal: Refusal): void {
    encodeError(refusal, this.#peer?.readsCodes ?? false, this.#outbox.writer);
  }

  #end(refusal: Refusal): null {
    this.#error(refusal);
    this.#ended = true;
    return null;
  }

  #failed(error: unknown): void {
    if (error instanceof TransportError) return;
    if (error instanceof WireError) {
      this.#context.metrics.wire.badHeaders++;
      return;
    }
    this.#context.log.error("stream failed", { error: String(error), code: "internal" });
  }

  /** Answers what is owed, then ends the stream; unread requests are refused at the transport. */
  async #finish(): Promise<void> {
    this.#ended = true;
    if (this.#publisher !== null) await this.#publisher.allAnswered();
    if (this.#caches !== null) await this.#caches.answers.allAnswered();
    await this.#outbox.finish();
    this.#stream.cancel();
  }
}

function offersCodes(auth: AuthMessage): boolean {
  return ((auth.client_features ?? 0) & FEATURE_ERROR_CODES) !== 0;
}
