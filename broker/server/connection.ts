// One client connection: accepts its streams, holds what they share (token verdicts, the byte
// budget of its publishes, its subscriptions), and closes it when nobody authenticates in time.

import type { AuthMessage } from "@felix/wire";
import type { ByteStream, CloseInfo, Connection, SendStream } from "@felix/transport";
import type { ConnectionBudget } from "../core/mod.ts";
import { AuthRefused } from "../auth/grants.ts";
import type { Grants } from "../auth/grants.ts";
import { AnswerBudget } from "./answer_budget.ts";
import type { BrokerContext } from "./context.ts";
import { peerOf } from "./negotiation.ts";
import type { Peer } from "./negotiation.ts";
import { PublishOnlySession } from "./publish_only_session.ts";
import { REFUSAL } from "./refusal.ts";
import type { Refusal } from "./refusal.ts";
import { Session } from "./session.ts";

/** Application close codes (spec/wire.md §1.6). */
export const CLOSE_SHUTDOWN = 0;
/** No stream authenticated in time. */
export const CLOSE_AUTH_TIMEOUT = 1;

/** How long a client may take to grant the credit for an event stream. */
const OPEN_STREAM_MS = 5_000;

/** Peers remembered per connection; more identities than this are verified anew. */
const MAX_PEERS = 64;

/** Lets at most `limit` streams be read before they authenticate; further ones wait. */
export class PreauthGate {
  #inside = 0;
  readonly #waiting: (() => void)[] = [];

  constructor(private readonly limit: number) {}

  /** Resolves when the stream may be read. */
  enter(): Promise<void> | undefined {
    if (this.#inside < this.limit) {
      this.#inside++;
      return undefined;
    }
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** The stream authenticated or ended. */
  leave(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#inside--;
    else next();
  }
}

/** An event stream that the connection feeds. */
export interface Feed {
  /** Whether events are on their way or queued. */
  readonly busy: boolean;
  /** Stops at once and gives the queue up. */
  abandon(): void;
  /** Says in the log that events were dropped, where they can be. */
  reportDrops?(subscriptionId: bigint, remoteAddress: string): void;
}

/** A client's connection. */
export class ClientConnection {
  readonly preauth: PreauthGate;
  readonly budget: ConnectionBudget;
  /** What its streams owe in answers. */
  readonly answers: AnswerBudget = new AnswerBudget();
  /** Event streams by subscription id. */
  readonly subscriptions = new Map<bigint, Feed>();
  readonly closed: Promise<CloseInfo>;
  readonly #context: BrokerContext;
  readonly #connection: Connection;
  readonly #sessions = new Set<Session>();
  readonly #claimed = new Set<bigint>();
  readonly #peers = new Map<string, Peer>();
  #authTimer: ReturnType<typeof setTimeout> | undefined;

  constructor(context: BrokerContext, connection: Connection) {
    const { settings, pipeline } = context;
    this.#context = context;
    this.#connection = connection;
    this.preauth = new PreauthGate(settings.preauthMaxStreamsPerConn);
    this.budget = pipeline.createBudget();
    this.closed = connection.closed;
    if (settings.authTimeoutMs > 0) {
      this.#authTimer = setTimeout(this.#authTimeout, settings.authTimeoutMs);
    }
  }

  /** Peer address, for logs. */
  get remoteAddress(): string {
    return this.#connection.remoteAddress;
  }

  /** Serves the connection until it ends. Never rejects. */
  async run(): Promise<void> {
    const accepting = [this.#acceptBidirectional(), this.#acceptUnidirectional()];
    const info = await this.#connection.closed;
    clearTimeout(this.#authTimer);
    for (const events of this.subscriptions.values()) events.abandon();
    this.#context.pipeline.closeBudget(this.budget);
    await Promise.all(accepting);
    this.#context.log.debug("connection closed", {
      remote_addr: this.remoteAddress,
      reason: info.reason,
      code: info.applicationCode,
      by: info.by,
    });
  }

  /** Verifies the token of one stream; `null` = refused (counted and logged here). */
  async authenticate(auth: AuthMessage): Promise<Peer | null> {
    const { client_flags = "", client_features = "", client_features_hi = "" } = auth;
    const offer = `${client_flags},${client_features},${client_features_hi}`;
    const key = `${offer}\n${auth.tenant_id}\n${auth.token}`;
    const known = this.#peers.get(key);
    if (known !== undefined && known.grants.expiresAtSeconds * 1000 > this.#context.wallMs()) {
      this.#context.metrics.auth.ok++;
      return known;
    }
    let grants: Grants;
    try {
      grants = await this.#context.tokens.verify(auth.tenant_id, auth.token);
    } catch (error) {
      if (!(error instanceof AuthRefused)) throw error;
      this.#context.metrics.auth.refused(error.reason);
      this.#context.log.warn("auth refused", {
        reason: error.reason,
        remote_addr: this.remoteAddress,
      });
      return null;
    }
    clearTimeout(this.#authTimer);
    this.#context.metrics.auth.ok++;
    const peer = peerOf(auth, grants, this.#context.settings);
    if (this.#peers.size >= MAX_PEERS) this.#peers.clear();
    this.#peers.set(key, peer);
    return peer;
  }

  /**
   * Opens an event stream; `null` when the client does not grant the credit for it in time. Nothing
   * may be answered without one: the client would wait for ever.
   */
  async openEventStream(): Promise<SendStream | null> {
    const opening = this.#connection.openUnidirectional().catch(() => null);
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<null>((resolve) => {
      timer = setTimeout(() => resolve(null), OPEN_STREAM_MS);
    });
    const stream = await Promise.race([opening, late]);
    clearTimeout(timer);
    if (stream === null) opening.then((tooLate) => tooLate?.finish().catch(() => {}));
    return stream;
  }

  /** Reserves a subscription id, or says why it cannot be had. */
  claimSubscription(id: bigint): Refusal | null {
    if (this.#claimed.size >= this.#context.settings.maxSubscriptionsPerConn) {
      this.#context.metrics.subscribe.connectionLimitRejected++;
      return REFUSAL.tooManySubscriptions;
    }
    if (this.#claimed.has(id)) {
      return { code: "invalid_request", message: `subscription ${id} exists on this connection` };
    }
    this.#claimed.add(id);
    return null;
  }

  /** Gives a subscription id back. */
  releaseSubscription(id: bigint): void {
    this.#claimed.delete(id);
    this.subscriptions.delete(id);
  }

  /** Logs which subscribers lost events since the last time, as far as they may log again. */
  reportDrops(): void {
    for (const [id, events] of this.subscriptions) events.reportDrops?.(id, this.remoteAddress);
  }

  /** Whether answers or events of this connection are still on their way. */
  get busy(): boolean {
    for (const session of this.#sessions) if (session.busy) return true;
    for (const events of this.subscriptions.values()) if (events.busy) return true;
    return false;
  }

  /** Reads no further requests; those read are answered. */
  stopReading(): void {
    for (const session of this.#sessions) session.stopReading();
  }

  /** Closes it at once. */
  close(code: number, reason: string): void {
    this.#connection.close(code, reason);
  }

  readonly #authTimeout = (): void => {
    this.#context.metrics.auth.timeouts++;
    this.#connection.close(CLOSE_AUTH_TIMEOUT, "authentication timeout");
  };

  async #acceptBidirectional(): Promise<void> {
    for (;;) {
      const stream = await this.#connection.acceptBidirectional();
      if (stream === null) return;
      this.#serve(stream);
    }
  }

  async #serve(stream: ByteStream): Promise<void> {
    const session = new Session(this.#context, this, stream);
    this.#sessions.add(session);
    await session.run();
    this.#sessions.delete(session);
  }

  async #acceptUnidirectional(): Promise<void> {
    for (;;) {
      const stream = await this.#connection.acceptUnidirectional();
      if (stream === null) return;
      new PublishOnlySession(this.#context, this, stream).run();
    }
  }
}
