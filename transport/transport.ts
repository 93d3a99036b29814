// The interface that both QUIC engines implement and everything above is written against.
// It knows bytes, connections and streams, never messages. One rule: nothing here buffers without
// a bound; a reader that does not read stops its peer, a writer that cannot write waits.

/** A half of a stream that this side reads. */
export interface ReceiveStream {
  /**
   * Reads the next bytes into `into` and resolves with a view of what arrived (1 byte or more), or
   * with `null` at the peer's clean end.
   *
   * `into` is given away: its buffer may be detached, and the view that comes back is backed by the
   * memory to use from now on (rebuild further views from `view.buffer`). At a clean end the memory
   * is gone as well. One read at a time.
   *
   * @throws {TransportError} `stream_reset` (with `applicationCode`), `connection_lost`,
   * `connection_closed`, `stream_closed` (after `cancel`)
   */
  read(into: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer> | null>;
  /** Asks the peer to stop sending (STOP_SENDING, code 0) and drops what has not been read. */
  cancel(): void;
}

/** A half of a stream that this side writes. */
export interface SendStream {
  /**
   * Hands `bytes` to the connection; resolves when the engine has taken them (flow control and
   * send buffer permitting), which is not yet delivery. The caller leaves `bytes` alone until then.
   * Writes are taken in call order.
   *
   * @throws {TransportError} `stream_stopped` (peer cancelled reading), `connection_lost`,
   * `connection_closed`, `stream_closed` (after `finish`)
   */
  write(bytes: Uint8Array): Promise<void>;
  /** Ends the stream cleanly (FIN) after everything written; resolves when the engine took it. */
  finish(): Promise<void>;
  /**
   * Ends the stream at once. The quiche engine sends RESET_STREAM with `applicationCode`; the
   * native engine can only send a clean end (`Transport.canReset` says which).
   */
  reset(applicationCode: number): void;
}

/** A stream in both directions. */
export interface ByteStream extends ReceiveStream, SendStream {}

/** Why and how a connection ended. */
export interface CloseInfo {
  /** `local`: we closed it. `peer`: the peer closed it. `lost`: it timed out or broke. */
  readonly by: "local" | "peer" | "lost";
  /** Application close code; 0 where there is none. */
  readonly applicationCode: number;
  /** Reason text; empty where there is none. */
  readonly reason: string;
}

/** One QUIC connection. */
export interface Connection {
  /** Peer address as `host:port`. */
  readonly remoteAddress: string;
  /** The verified certificate that the peer presented, in DER; `null` where there is none. */
  readonly peerCertificate: Uint8Array | null;
  /** Resolves once when the connection has ended, and never rejects. */
  readonly closed: Promise<CloseInfo>;
  /**
   * Opens a stream in both directions. Waits while the peer's stream limit is reached.
   * @throws {TransportError} `connection_lost`, `connection_closed`
   */
  openBidirectional(): Promise<ByteStream>;
  /** Opens a stream that only this side writes; as `openBidirectional`. */
  openUnidirectional(): Promise<SendStream>;
  /** The next stream in both directions that the peer opened; `null` once the connection ended. */
  acceptBidirectional(): Promise<ByteStream | null>;
  /** The next one-way stream that the peer opened; `null` once the connection ended. */
  acceptUnidirectional(): Promise<ReceiveStream | null>;
  /** Closes the connection and all its streams (CONNECTION_CLOSE, application). Idempotent. */
  close(applicationCode?: number, reason?: string): void;
}

/** A connection that is asking to come in; answer it with exactly one of the two calls. */
export interface IncomingConnection {
  /** Completes the handshake. @throws {TransportError} `handshake_failed` */
  accept(): Promise<Connection>;
  /** Refuses it before the handshake (CONNECTION_REFUSED). */
  refuse(): void;
}

/** A listening socket. */
export interface Listener {
  /** Bound address as `host:port`. */
  readonly address: string;
  /** Bound UDP port. */
  readonly port: number;
  /** The next incoming connection; `null` once the listener is closed. */
  accept(): Promise<IncomingConnection | null>;
  /** Stops accepting; connections already accepted go on. Idempotent. */
  stopAccepting(): void;
  /** Closes the socket; connections still open end with `applicationCode` and `reason`. */
  close(applicationCode?: number, reason?: string): Promise<void>;
}

/** Settings that both sides have. */
export interface CommonOptions {
  /** ALPN ids; empty (the default) offers or requires none. */
  readonly alpn?: readonly string[];
  /** Milliseconds between keep-alive packets; default 2000. */
  readonly keepAliveMs?: number;
  /** Milliseconds of silence after which the peer counts as dead; default 6000. */
  readonly idleTimeoutMs?: number;
  /** Streams in both directions that the peer may have open at once; default 1024. */
  readonly maxBidirectionalStreams?: number;
  /** One-way streams that the peer may have open at once; default 1024. */
  readonly maxUnidirectionalStreams?: number;
  /** Receive window of a connection in bytes; quiche engine only. */
  readonly connectionWindowBytes?: number;
  /** Receive window of a stream in bytes; quiche engine only. */
  readonly streamWindowBytes?: number;
}

/** Settings of `listen`. */
export interface ListenOptions extends CommonOptions {
  /** Address to bind, an IP literal. */
  readonly hostname: string;
  /** UDP port; 0 takes any free one. */
  readonly port: number;
  /** Certificate chain in PEM. */
  readonly cert: string;
  /** Private key in PEM (PKCS #8). */
  readonly key: string;
  /** CA in PEM: clients must present a certificate issued by it. quiche engine only. */
  readonly clientCa?: string;
}

/** Settings of `connect`. */
export interface ConnectOptions extends CommonOptions {
  /** Host name or IP literal to dial. */
  readonly hostname: string;
  /** UDP port to dial. */
  readonly port: number;
  /** Name checked against the server's certificate; default `hostname`. */
  readonly serverName?: string;
  /** Root certificates in PEM. */
  readonly caCerts?: readonly string[];
  /** Client certificate to present. */
  readonly clientCertificate?: { readonly cert: string; readonly key: string };
  /** Milliseconds for the handshake; default 5000. */
  readonly handshakeTimeoutMs?: number;
  /** Gives up the handshake. */
  readonly signal?: AbortSignal;
}

/** A QUIC engine. */
export interface Transport {
  /** Which engine this is. */
  readonly name: "native" | "quiche";
  /** Whether `SendStream.reset` reaches the peer as a reset. */
  readonly canReset: boolean;
  /** Whether `ListenOptions.clientCa` and window sizes are honoured. */
  readonly canVerifyClients: boolean;
  /**
   * Binds a socket and listens on it.
   * @throws {TransportError} `bind_failed`, `bad_certificate`, `unsupported`
   */
  listen(options: ListenOptions): Promise<Listener>;
  /**
   * Dials and completes the handshake. The server's certificate is always verified.
   * @throws {TransportError} `dial_failed` (no such host, given up by `signal`), `bad_certificate`
   * (our own client certificate), `handshake_failed`, `timeout`, `unsupported`
   */
  connect(options: ConnectOptions): Promise<Connection>;
}

/** Stable codes of `TransportError`. */
export type TransportErrorCode =
  | "bad_certificate"
  | "bind_failed"
  | "connection_closed"
  | "connection_lost"
  | "dial_failed"
  | "handshake_failed"
  | "stream_closed"
  | "stream_reset"
  | "stream_stopped"
  | "timeout"
  | "unsupported";

/** Every failure of this room. `message` is prose; `code` is the contract. */
export class TransportError extends Error {
  /** Always `TransportError`. */
  override readonly name = "TransportError";
  /** Made by the engines; `options.cause` is what they saw underneath. */
  constructor(
    /** What happened: the contract. */
    readonly code: TransportErrorCode,
    message: string,
    /** Code that the peer sent with a reset, stop or close; 0 where there is none. */
    readonly applicationCode = 0,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}
