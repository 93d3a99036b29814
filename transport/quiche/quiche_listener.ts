// A listening socket of the quiche engine: sorts datagrams by connection id, answers unknown
// versions, and holds connections that nobody has answered yet. Rules: before the application
// accepts a connection it costs a few datagrams and no cryptography; how many may wait, and for how
// long, is bounded; nothing that a datagram says can throw out of here.

import { Buffer } from "node:buffer";
import { formatAddress } from "../address.ts";
import { connectionSettings, DEFAULT_HANDSHAKE_TIMEOUT_MS } from "../defaults.ts";
import {
  type Connection,
  type IncomingConnection,
  type Listener,
  type ListenOptions,
  TransportError,
} from "../transport.ts";
import type { Host, Quiche, QuicheConfig, QuicheNative } from "./binding.ts";
import {
  destinationKey,
  idKey,
  LOCAL_ID_BYTES,
  type LongHeader,
  longHeader,
  mayStart,
  MIN_INITIAL_BYTES,
} from "./packet.ts";
import { QuicheConnection } from "./quiche_connection.ts";
import type { BindUdp, UdpSocket } from "./udp_socket.ts";

/** Connections that may wait for an answer of the application, and their datagrams each. */
const MAX_WAITING = 256;
const MAX_WAITING_DATAGRAMS = 4;
/** Handshakes that may be under way at once. */
const MAX_HANDSHAKES = 1024;

const CONNECTION_REFUSED = 0x2; // RFC 9000 §20.1

/** A first contact that the application has not answered. */
interface Waiting {
  readonly key: string;
  readonly peer: Host;
  readonly datagrams: Buffer[];
  readonly sinceMs: number;
}

/** A listening socket of the quiche engine. */
export class QuicheListener implements Listener {
  readonly #quiche: Quiche;
  readonly #config: QuicheConfig;
  readonly #options: ListenOptions;
  readonly #routes = new Map<string, QuicheConnection>();
  readonly #connections = new Set<QuicheConnection>();
  readonly #waiting = new Map<string, Waiting>();
  /** Those of `#waiting` that the application holds. */
  readonly #offered = new WeakSet<Waiting>();
  readonly #accepting: ((incoming: IncomingConnection | null) => void)[] = [];
  #socket: UdpSocket | null = null;
  #handshakes = 0;
  #stopped = false;
  #closing: Promise<void> | null = null;

  private constructor(quiche: Quiche, config: QuicheConfig, options: ListenOptions) {
    this.#quiche = quiche;
    this.#config = config;
    this.#options = options;
  }

  /** Binds and listens. @throws {TransportError} `bind_failed` */
  static async open(
    quiche: Quiche,
    config: QuicheConfig,
    options: ListenOptions,
    bind: BindUdp,
  ): Promise<QuicheListener> {
    const listener = new QuicheListener(quiche, config, options);
    listener.#socket = await bind(options.hostname, options.port, (datagram, from) => {
      listener.#onDatagram(datagram, from);
    });
    return listener;
  }

  get address(): string {
    return formatAddress(this.#socket!.local.host, this.port);
  }

  get port(): number {
    return this.#socket!.local.port;
  }

  accept(): Promise<IncomingConnection | null> {
    if (this.#stopped) return Promise.resolve(null);
    const incoming = this.#nextWaiting();
    if (incoming !== null) return Promise.resolve(incoming);
    return new Promise((resolve) => this.#accepting.push(resolve));
  }

  stopAccepting(): void {
    if (this.#stopped) return;
    this.#stopped = true;
    for (const waiting of [...this.#waiting.values()]) {
      if (!this.#offered.has(waiting)) this.#refuse(waiting);
    }
    for (const resolve of this.#accepting) resolve(null);
    this.#accepting.length = 0;
  }

  close(applicationCode = 0, reason = ""): Promise<void> {
    this.#closing ??= this.#close(applicationCode, reason);
    return this.#closing;
  }

  async #close(applicationCode: number, reason: string): Promise<void> {
    this.stopAccepting();
    const open = [...this.#connections];
    for (const connection of open) connection.close(applicationCode, reason);
    await Promise.all(open.map((connection) => connection.closed));
    this.#socket!.close();
  }

  #onDatagram(bytes: Uint8Array, from: Host): void {
    const datagram = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const key = destinationKey(datagram);
    if (key === null) return;
    const connection = this.#routes.get(key);
    if (connection !== undefined) return connection.receive(bytes, from);
    if (this.#stopped || this.#socket === null) return;
    const header = longHeader(datagram);
    if (header === null) return;
    if (!this.#quiche.versionIsSupported(header.version)) {
      if (datagram.length >= MIN_INITIAL_BYTES) this.#negotiateVersion(header, from);
    } else if (mayStart(header, datagram.length)) {
      this.#onFirstContact(key, datagram, from);
    }
  }

  #negotiateVersion(header: LongHeader, from: Host): void {
    if (header.version === 0) return; // itself a version negotiation
    try {
      const space = this.#socket!.space();
      const length = this.#quiche.negotiateVersion(header.source, header.destination, space);
      this.#socket!.send(length, from);
    } catch {
      // an id that quiche does not take: not worth an answer
    }
  }

  #onFirstContact(key: string, datagram: Buffer, peer: Host): void {
    const known = this.#waiting.get(key);
    if (known !== undefined) {
      if (known.datagrams.length < MAX_WAITING_DATAGRAMS) known.datagrams.push(copy(datagram));
      return;
    }
    if (this.#waiting.size >= MAX_WAITING) this.#dropStale();
    if (this.#waiting.size >= MAX_WAITING) return; // the client tries again by itself
    this.#waiting.set(key, {
      key,
      peer,
      datagrams: [copy(datagram)],
      sinceMs: performance.now(),
    });
    const resolve = this.#accepting.shift();
    if (resolve !== undefined) resolve(this.#nextWaiting());
  }

  /** The longest waiting contact that its client has not given up, as an answerable one. */
  #nextWaiting(): IncomingConnection | null {
    this.#dropStale();
    for (const waiting of this.#waiting.values()) {
      if (this.#offered.has(waiting)) continue;
      this.#offered.add(waiting);
      return {
        accept: () => this.#complete(waiting),
        refuse: () => this.#refuse(waiting),
      };
    }
    return null;
  }

  #dropStale(): void {
    const oldest = performance.now() - DEFAULT_HANDSHAKE_TIMEOUT_MS;
    for (const waiting of this.#waiting.values()) {
      if (waiting.sinceMs > oldest) return; // in order of arrival
      this.#waiting.delete(waiting.key);
    }
  }

  async #complete(waiting: Waiting): Promise<Connection> {
    if (this.#handshakes >= MAX_HANDSHAKES) this.#refuse(waiting);
    const connection = this.#start(waiting);
    if (connection === null) {
      throw new TransportError("handshake_failed", "answered before, given up or refused");
    }
    this.#handshakes++;
    const timer = setTimeout(
      () => connection.closeTransport(CONNECTION_REFUSED, "handshake took too long"),
      DEFAULT_HANDSHAKE_TIMEOUT_MS,
    );
    try {
      await connection.established;
      return connection;
    } finally {
      clearTimeout(timer);
      this.#handshakes--;
    }
  }

  #refuse(waiting: Waiting): void {
    this.#start(waiting)?.closeTransport(CONNECTION_REFUSED, "");
  }

  /** Makes the connection and gives it what has arrived; `null` if it was answered before. */
  #start(waiting: Waiting): QuicheConnection | null {
    if (!this.#waiting.delete(waiting.key)) return null;
    const socket = this.#socket!;
    const id = crypto.getRandomValues(new Uint8Array(LOCAL_ID_BYTES));
    const idRoute = idKey(id);
    let quic: QuicheNative;
    try {
      quic = this.#quiche.Connection.accept(id, null, socket.local, waiting.peer, this.#config);
    } catch {
      return null; // an address or id that quiche does not take
    }
    const connection: QuicheConnection = new QuicheConnection({
      quic,
      socket,
      peer: waiting.peer,
      isServer: true,
      settings: connectionSettings(this.#options),
      onReleased: () => {
        this.#routes.delete(idRoute);
        this.#routes.delete(waiting.key);
        this.#connections.delete(connection);
      },
    });
    this.#connections.add(connection);
    this.#routes.set(idRoute, connection);
    // Until the client has heard our id it uses the one it made up.
    this.#routes.set(waiting.key, connection);
    for (const datagram of waiting.datagrams) connection.receive(datagram, waiting.peer);
    return connection;
  }
}

function copy(datagram: Buffer): Buffer {
  return Buffer.from(datagram);
}
