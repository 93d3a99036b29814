// One connection of the quiche engine: feeds datagrams in, takes packets out, keeps the clock, and
// hands streams to whoever waits for them. Rules: packets go out from one place (`#pump`), which
// runs in `setImmediate` after whatever caused it, so that a batch of datagrams or writes costs one
// round; a timer that fires too early looks again instead of being re-armed on every packet.

import { clearImmediate, setImmediate } from "node:timers";
import { formatAddress } from "../address.ts";
import type { ConnectionSettings } from "../defaults.ts";
import { endedError, messageOf } from "../ended.ts";
import {
  type ByteStream,
  type CloseInfo,
  type Connection,
  type ReceiveStream,
  type SendStream,
  TransportError,
} from "../transport.ts";
import type { Host, QuicheError, QuicheNative } from "./binding.ts";
import type { QuicheStream, StreamOwner } from "./quiche_stream.ts";
import { StreamTable } from "./stream_table.ts";
import type { UdpSocket } from "./udp_socket.ts";

/** Milliseconds that a connection closed here stays to repeat its CONNECTION_CLOSE. */
const LINGER_MS = 100;
/** Milliseconds that a silent peer gets on top: datagrams may wait behind a busy event loop. */
const LATE_MS = 50;
/** Milliseconds for an acknowledgement to come, besides the round trips (25 ms delay and slack). */
const SETTLE_MS = 100;
/** A next deadline further away than this is the idle timeout and no probe. */
const QUIET_MS = 1000;
/** Packets sent before others get their turn. */
const PACKETS_PER_PUMP = 32;

type Timer = ReturnType<typeof setTimeout>;

/** What a connection is made of. */
export interface ConnectionParts {
  readonly quic: QuicheNative;
  readonly socket: UdpSocket;
  readonly peer: Host;
  readonly isServer: boolean;
  readonly settings: ConnectionSettings;
  /** Called once when nothing of the connection needs the socket any more. */
  onReleased(): void;
}

/** A connection of the quiche engine, either side. */
export class QuicheConnection implements Connection, StreamOwner {
  readonly quic: QuicheNative;
  readonly remoteAddress: string;
  readonly closed: Promise<CloseInfo>;
  /** Resolves once the handshake is complete on this side. @throws `handshake_failed` */
  readonly established: Promise<void>;
  failure: TransportError | null = null;
  flushes = 0;

  readonly #parts: ConnectionParts;
  readonly #streams: StreamTable;
  readonly #blocked = new Set<QuicheStream>();
  readonly #receiveInfo: { from: Host; readonly to: Host };
  #info: CloseInfo | null = null;
  #released = false;
  #handshake: { resolve(): void; reject(error: TransportError): void } | null = null;
  #resolveClosed: (info: CloseInfo) => void = () => {};
  #immediate: ReturnType<typeof setImmediate> | null = null;
  #timer: Timer | null = null;
  #timerDue = Infinity;
  #wakeMs = Infinity;
  #linger: Timer | null = null;
  readonly #keepAlive: Timer;
  #lastReceivedMs = performance.now();
  #sentSinceTick = false;
  #established = false;
  #confirmed: boolean;
  #lastError: unknown = null;

  constructor(parts: ConnectionParts) {
    this.#parts = parts;
    this.quic = parts.quic;
    this.remoteAddress = formatAddress(parts.peer.host, parts.peer.port);
    this.#receiveInfo = { from: parts.peer, to: parts.socket.local };
    this.#confirmed = parts.isServer;
    this.#streams = new StreamTable(this, parts.isServer);
    this.closed = new Promise((resolve) => this.#resolveClosed = resolve);
    this.established = new Promise((resolve, reject) => this.#handshake = { resolve, reject });
    this.established.catch(() => {}); // whoever waits handles it; nobody has to wait
    this.#keepAlive = setInterval(() => this.#tick(), parts.settings.keepAliveMs);
    this.schedule();
  }

  get peerCertificate(): Uint8Array | null {
    return this.quic.peerCertChain()?.[0] ?? null;
  }

  openBidirectional(): Promise<ByteStream> {
    return this.#open(true);
  }

  openUnidirectional(): Promise<SendStream> {
    return this.#open(false);
  }

  acceptBidirectional(): Promise<ByteStream | null> {
    if (this.failure !== null) return Promise.resolve(null);
    return this.#streams.accept(true);
  }

  acceptUnidirectional(): Promise<ReceiveStream | null> {
    if (this.failure !== null) return Promise.resolve(null);
    return this.#streams.accept(false);
  }

  close(applicationCode = 0, reason = ""): void {
    this.#close(true, applicationCode, reason);
  }

  /** Closes it with a code of QUIC's own, such as CONNECTION_REFUSED (RFC 9000 §20.1). */
  closeTransport(code: number, reason: string): void {
    this.#close(false, code, reason);
  }

  /** A datagram for this connection; it is decrypted in place. */
  receive(datagram: Uint8Array, from: Host): void {
    if (this.#released) return;
    const { peer } = this.#parts;
    const same = from.port === peer.port && from.host === peer.host;
    this.#receiveInfo.from = same ? peer : from;
    const wasEstablished = this.#established || this.quic.isEstablished();
    try {
      this.quic.recv(datagram, this.#receiveInfo);
      this.#lastReceivedMs = performance.now();
      // A client counts as admitted with the first packet after its own handshake ended: until
      // then the server may still refuse its certificate.
      if (wasEstablished) this.#confirmed = true;
    } catch (error) {
      this.#lastError = error; // quiche has closed the connection if it had to; others are noise
    }
    this.schedule();
  }

  schedule(): void {
    if (this.#immediate === null && !this.#released) this.#immediate = setImmediate(this.#pump);
  }

  blocked(stream: QuicheStream): void {
    this.#blocked.add(stream);
  }

  isQuiet(): boolean {
    // With anything unacknowledged quiche's next deadline is a probe, long before the idle timeout.
    const timeoutMs = this.quic.timeout();
    return timeoutMs !== null && timeoutMs > QUIET_MS;
  }

  settleMs(): number {
    const path = this.quic.pathStats().find((path) => path.active);
    return SETTLE_MS + 4 * (path?.rtt ?? 0);
  }

  wakeBy(dueMs: number): void {
    this.#wakeMs = Math.min(this.#wakeMs, dueMs);
    this.#arm();
  }

  forget(stream: QuicheStream): void {
    this.#blocked.delete(stream);
    this.#streams.forget(stream);
  }

  #open(bidirectional: boolean): Promise<QuicheStream> {
    if (this.failure !== null) return Promise.reject(this.failure);
    return this.#streams.open(bidirectional);
  }

  /** First half of a round: hands out what has arrived and room to write. */
  readonly #pump = (): void => {
    this.#immediate = null;
    if (this.#released) return;
    if (this.#info === null) {
      this.#established ||= this.quic.isEstablished();
      if (this.#established && this.#serve()) {
        // Those just woken write, and end their streams, before packets are made: an answer
        // leaves with the acknowledgement, and an end with the last bytes.
        this.#immediate = setImmediate(this.#emit);
        return;
      }
    }
    this.#emit();
  };

  /** Second half of a round: sends what is due. */
  readonly #emit = (): void => {
    this.#immediate = null;
    if (this.#released) return;
    this.#flush();
    if (this.#info === null) this.#detectEnd();
    else if (this.quic.isClosed()) return this.#release();
    this.#arm();
  };

  /** Returns whether anybody was woken. */
  #serve(): boolean {
    let woken = false;
    if (this.#handshake !== null && this.#confirmed && !this.quic.isDraining()) {
      this.#handshake.resolve();
      this.#handshake = null;
    }
    for (const id of this.quic.readable()) {
      if (this.#streams.get(id)?.onReadable()) woken = true;
    }
    // Whoever could not send everything goes to the end of the line.
    for (const stream of [...this.#blocked]) {
      this.#blocked.delete(stream);
      if (stream.onWritable()) woken = true;
      if (stream.isBlocked) this.#blocked.add(stream);
    }
    this.#streams.serve();
    return woken;
  }

  #flush(): void {
    const { socket } = this.#parts;
    this.flushes++;
    for (let packets = 0; packets < PACKETS_PER_PUMP; packets++) {
      let sent: ReturnType<QuicheNative["send"]>;
      try {
        sent = this.quic.send(socket.space());
      } catch (error) {
        this.#lastError ??= error;
        return;
      }
      if (sent === null) return;
      socket.send(sent[0], sent[1].to);
      this.#sentSinceTick = true;
    }
    this.schedule();
  }

  #detectEnd(): void {
    const { quic } = this;
    if (!quic.isDraining() && !quic.isClosed()) return;
    const peer = quic.peerError();
    if (peer?.isApp) {
      const reason = new TextDecoder().decode(peer.reason);
      return this.#end({ by: "peer", applicationCode: peer.errorCode, reason });
    }
    this.#end({ by: "lost", applicationCode: 0, reason: this.#lossReason(peer) });
  }

  #lossReason(peer: QuicheError | null): string {
    if (peer !== null) return describe("the peer reports", peer);
    if (this.quic.isTimedOut()) return "timed out";
    const local = this.quic.localError();
    if (local !== null) return describe("protocol failure", local);
    return this.#lastError === null ? "timed out" : messageOf(this.#lastError);
  }

  #close(application: boolean, code: number, reason: string): void {
    if (this.#info !== null) return;
    this.#flush(); // what was written before goes first
    try {
      this.quic.close(application, code, new TextEncoder().encode(reason));
    } catch {
      // closed already by quiche itself; the end is reported as ours all the same
    }
    this.#flush();
    this.#end({ by: "local", applicationCode: code, reason });
    this.#arm();
  }

  #end(info: CloseInfo): void {
    if (this.#info !== null) return;
    this.#info = info;
    this.failure = endedError(info);
    clearInterval(this.#keepAlive);
    this.#handshake?.reject(new TransportError("handshake_failed", this.failure.message));
    this.#handshake = null;
    this.#streams.end(this.failure);
    this.#blocked.clear();
    if (info.by !== "local") return this.#release();
    this.#linger = setTimeout(() => this.#release(), LINGER_MS);
  }

  #release(): void {
    if (this.#released) return;
    this.#released = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    if (this.#linger !== null) clearTimeout(this.#linger);
    if (this.#immediate !== null) clearImmediate(this.#immediate);
    this.#parts.onReleased();
    this.#resolveClosed(this.#info!);
  }

  /** Sets the timer for quiche's next deadline or the peer's silence, unless it is due earlier. */
  #arm(): void {
    if (this.#released) return;
    const now = performance.now();
    const timeoutMs = this.quic.timeout();
    const silenceDue = this.#lastReceivedMs + this.#parts.settings.idleTimeoutMs + LATE_MS;
    const quicDue = timeoutMs === null ? Infinity : now + timeoutMs + 1;
    const due = Math.min(quicDue, silenceDue, this.#wakeMs);
    if (this.#timer !== null) {
      if (this.#timerDue <= due) return;
      clearTimeout(this.#timer);
    }
    this.#timerDue = due;
    this.#timer = setTimeout(this.#onTimer, Math.max(1, due - now));
  }

  readonly #onTimer = (): void => {
    this.#timer = null;
    this.#wakeMs = Infinity;
    if (this.#released) return;
    this.quic.onTimeout(); // looks at the clock itself
    const silentMs = performance.now() - this.#lastReceivedMs;
    if (this.#info === null && silentMs > this.#parts.settings.idleTimeoutMs + LATE_MS) {
      this.#end({ by: "lost", applicationCode: 0, reason: "timed out" });
    }
    this.#pump();
  };

  #tick(): void {
    if (this.#info !== null || !this.#established) return;
    if (!this.#sentSinceTick) this.quic.sendAckEliciting();
    this.#sentSinceTick = false;
    // Unread events would pile up in quiche.
    while (this.quic.pathEventNext() !== null);
    while (this.quic.retiredScidNext() !== null);
    this.schedule();
  }
}

function describe(prefix: string, error: QuicheError): string {
  const code = error.errorCode >= 0x100 && error.errorCode <= 0x1ff
    ? `TLS alert ${error.errorCode - 0x100}`
    : `code ${error.errorCode}`;
  const reason = new TextDecoder().decode(error.reason);
  return `${prefix} ${code}${reason === "" ? "" : `: ${reason}`}`;
}
