// One QUIC connection to one broker. The rule: it is opened together with one authenticated stream
// (a broker drops connections that stay silent), and once retired it takes nothing new and closes
// itself when the last thing it carries has ended.

import type { CloseInfo, Connection } from "@felix/transport";
import { isIpLiteral } from "../address.ts";
import type { BrokerAddress } from "../address.ts";
import { CallGuard } from "../call_guard.ts";
import { ClosedError, ConnectionError, TimeoutError } from "../failure/classes.ts";
import { FelixError } from "../failure/felix_error.ts";
import { servedFeatures } from "../features.ts";
import type { Negotiated } from "../features.ts";
import type { ConnectionInfo, ConnectionRole } from "../types.ts";
import { authenticate } from "./authenticate.ts";
import { Channel } from "./channel.ts";
import type { ClientCore } from "./client_core.ts";
import { EventRouter } from "./event_router.ts";

/** Streams that a broker may open towards us at once: one per subscription (trap 1). */
const MAX_EVENT_STREAMS = 4096;

/** Who is told about a connection. */
export interface LinkObserver {
  /** It has ended. */
  onClosed(link: Link, info: CloseInfo): void;
  /** It gave no proper answer: other brokers come first from now on. */
  onDistrusted(): void;
}

/** An open connection. */
export class Link {
  /** Address of the broker, canonical. */
  readonly broker: string;
  /** What it is used for. */
  readonly role: ConnectionRole;
  /** Matches subscriptions and event streams. */
  readonly router: EventRouter;
  /** Subscriptions it carries. */
  subscriptions = 0;
  readonly #core: ClientCore;
  readonly #connection: Connection;
  readonly #openedAt = new Date();
  readonly #channels = new Set<Channel>();
  readonly #observer: LinkObserver;
  #spare: Channel | null = null;
  #negotiated: Negotiated | null = null;
  #state: ConnectionInfo["state"] = "open";
  #opening = 0;

  /** Use `dial`. */
  constructor(options: {
    core: ClientCore;
    broker: string;
    role: ConnectionRole;
    connection: Connection;
    observer: LinkObserver;
  }) {
    this.broker = options.broker;
    this.role = options.role;
    this.#core = options.core;
    this.#connection = options.connection;
    this.#observer = options.observer;
    const { maxFrameBytes, eventRouterMaxPending } = options.core.settings;
    this.router = new EventRouter({
      broker: options.broker,
      maxFrameBytes,
      maxPending: eventRouterMaxPending,
      dropped: (reason) => this.#core.hooks.log("warn", reason, { broker: this.broker }),
    });
    options.connection.closed.then((info) => this.#ended(info));
    void this.#acceptEvents();
  }

  /** Whether new streams may be opened. */
  get open(): boolean {
    return this.#state === "open";
  }

  /** What the broker serves, as the first stream was told. */
  get negotiated(): Negotiated | null {
    return this.#negotiated;
  }

  /** Streams and subscriptions it carries. */
  get load(): number {
    return this.#channels.size + this.subscriptions + this.#opening;
  }

  /** What a user of the client sees. */
  info(): ConnectionInfo {
    return {
      broker: this.broker,
      role: this.role,
      streams: this.#channels.size + this.subscriptions - (this.#spare === null ? 0 : 1),
      state: this.#state,
      openedAt: this.#openedAt,
    };
  }

  /** An authenticated stream: the one opened while dialling, or a new one. */
  async openChannel(): Promise<Channel> {
    const spare = this.#spare;
    this.#spare = null;
    if (spare !== null && !spare.ended) return spare;
    this.#opening++;
    try {
      return await authenticate(this.#core, () => this.#openStream());
    } catch (error) {
      if (error instanceof FelixError && error.brokerCode === "draining") this.distrust();
      throw error;
    } finally {
      this.#opening--;
      this.#closeIfIdle();
    }
  }

  /** Authenticates the first stream and keeps it for the first user. */
  async begin(): Promise<Negotiated> {
    const channel = await authenticate(this.#core, () => this.#openStream());
    this.#spare = channel;
    channel.user = {
      onFrame: () => undefined,
      onEnd: () => {
        if (this.#spare === channel) this.#spare = null;
      },
    };
    return this.#negotiated = channel.negotiated!;
  }

  /** Takes nothing new from now on; closes when what it carries has ended. */
  retire(): void {
    if (this.#state !== "open") return;
    this.#state = "draining";
    this.#closeIfIdle();
  }

  /** It gave no proper answer (or said that it drains): nothing new goes this way. */
  distrust(): void {
    this.#observer.onDistrusted();
    this.retire();
  }

  /** A subscription on it has ended. */
  subscriptionEnded(): void {
    this.subscriptions--;
    this.#closeIfIdle();
  }

  /** Closes it at once. */
  close(applicationCode = 0, reason = "client closed"): void {
    this.#connection.close(applicationCode, reason);
  }

  /** Resolves once it has ended. */
  get ended(): Promise<CloseInfo> {
    return this.#connection.closed;
  }

  async #openStream(): Promise<Channel> {
    const { maxFrameBytes } = this.#core.settings;
    try {
      const stream = await this.#connection.openBidirectional();
      const channel = new Channel(stream, {
        broker: this.broker,
        maxFrameBytes,
        distrust: () => this.distrust(),
        closed: (ended) => {
          this.#channels.delete(ended);
          this.#closeIfIdle();
        },
      });
      this.#channels.add(channel);
      return channel;
    } catch (cause) {
      throw new ConnectionError("request", {
        message: "no stream could be opened",
        operation: "connect",
        broker: this.broker,
        cause,
      });
    }
  }

  async #acceptEvents(): Promise<void> {
    for (;;) {
      const stream = await this.#connection.acceptUnidirectional().catch(() => null);
      if (stream === null) return;
      void this.router.accept(stream);
    }
  }

  #closeIfIdle(): void {
    if (this.#state !== "draining") return;
    if (this.#spare !== null) this.#spare.abandon(null);
    if (this.#channels.size + this.subscriptions + this.#opening === 0) this.close(0, "retired");
  }

  #ended(info: CloseInfo): void {
    this.#state = "closed";
    this.router.close();
    const cause = new ConnectionError("request", {
      message: `connection ${info.by === "lost" ? "lost" : `closed by ${info.by}`}` +
        (info.reason === "" ? "" : `: ${info.reason}`),
      operation: "connect",
      broker: this.broker,
    });
    for (const channel of [...this.#channels]) channel.abandon(cause);
    this.#observer.onClosed(this, info);
  }
}

/** The failure of a connection or stream that was gone before it could be used. */
export function endedAtOnce(operation: string, broker: string): ConnectionError {
  const message = "the broker ended it at once";
  return new ConnectionError("request", { message, operation, broker });
}

function serverNameFor(core: ClientCore, address: BrokerAddress): string {
  return core.settings.serverName ?? (isIpLiteral(address.host) ? "localhost" : address.host);
}

function dialFailure(error: unknown, broker: string): FelixError {
  if (error instanceof FelixError) return error;
  const code = (error as { code?: unknown } | null)?.code;
  const text = error instanceof Error ? error.message : String(error);
  return new ConnectionError(code === "handshake_failed" ? "handshake" : "dial", {
    message: `cannot connect to ${broker}: ${text}`,
    operation: "connect",
    broker,
    cause: error,
  });
}

async function connectTransport(
  core: ClientCore,
  address: BrokerAddress,
  port: number,
  signal: AbortSignal,
): Promise<Connection> {
  const { settings } = core;
  return await settings.transport.connect({
    hostname: address.host,
    port,
    serverName: serverNameFor(core, address),
    alpn: settings.alpn,
    keepAliveMs: settings.keepAliveMs,
    idleTimeoutMs: settings.idleTimeoutMs,
    maxUnidirectionalStreams: MAX_EVENT_STREAMS,
    handshakeTimeoutMs: settings.dialTimeoutMs,
    caCerts: settings.caCerts,
    ...(settings.clientCert === undefined ? {} : { clientCertificate: settings.clientCert }),
    signal,
  });
}

/**
 * Opens a connection and its first authenticated stream.
 * @throws {ConnectionError} `detail.phase` `dial`, `handshake` or `auth`
 * @throws {AuthError} the token was refused
 */
export async function dial(
  core: ClientCore,
  target: { address: BrokerAddress; port: number; role: ConnectionRole; signal: AbortSignal },
  observer: LinkObserver,
): Promise<Link> {
  const { address, role, port, signal } = target;
  const guard = new CallGuard("connect", { signal }, core.settings.dialTimeoutMs);
  core.counters.connections.dialed++;
  let connection: Connection | null = null;
  let dialling: Promise<Connection> | null = null;
  try {
    dialling = connectTransport(core, address, port, guard.signal);
    // A handshake that completes after its time must not leave a connection behind.
    dialling.then((late) => guard.signal.aborted && late.close(0, "too late"), () => undefined);
    connection = await guard.wait(dialling);
    if (core.closed) throw new ClosedError({ message: "client closed", operation: "connect" });
    let opened = false;
    const link = new Link({
      core,
      broker: address.text,
      role,
      connection,
      observer: {
        onClosed: (link, info) => opened && observer.onClosed(link, info),
        onDistrusted: () => observer.onDistrusted(),
      },
    });
    const negotiated = await guard.wait(link.begin());
    if (!link.open) throw endedAtOnce("connect", address.text);
    opened = true;
    core.counters.connections.open++;
    const ms = guard.elapsedMs;
    const features = servedFeatures(negotiated);
    core.hooks.call("onConnect", { broker: address.text, role, features, ms });
    core.hooks.log("debug", "connected", { broker: address.text, role, elapsed_ms: ms });
    return link;
  } catch (error) {
    core.counters.connections.failed++;
    connection?.close(0, "auth failed");
    await dialling?.catch(() => undefined);
    await connection?.closed;
    if (error instanceof TimeoutError) {
      throw new ConnectionError(connection === null ? "dial" : "auth", {
        message: `${address.text} did not answer within ${core.settings.dialTimeoutMs} ms`,
        operation: "connect",
        broker: address.text,
        cause: error,
      });
    }
    throw dialFailure(error, address.text);
  } finally {
    guard.dispose();
  }
}
