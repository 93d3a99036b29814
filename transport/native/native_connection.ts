// One connection of the built-in engine. It holds every stream that has not ended (T3) and knows
// how the connection ended, which is what a failing stream reports. Rule: `closed` never rejects,
// and no promise of the engine is left without a handler (T2).

import { formatAddress } from "../address.ts";
import { endedError, messageOf } from "../ended.ts";
import {
  type ByteStream,
  type CloseInfo,
  type Connection,
  type ReceiveStream,
  type SendStream,
  TransportError,
} from "../transport.ts";
import { NativeStream } from "./native_stream.ts";

const WAIT = { waitUntilAvailable: true } as const;

/** A connection of the built-in engine, either side. */
export class NativeConnection implements Connection {
  readonly remoteAddress: string;
  readonly peerCertificate = null;
  readonly closed: Promise<CloseInfo>;
  readonly #quic: Deno.QuicConn;
  readonly #live = new Set<NativeStream>();
  #bidirectional: ReadableStreamDefaultReader<Deno.QuicBidirectionalStream> | null = null;
  #unidirectional: ReadableStreamDefaultReader<Deno.QuicReceiveStream> | null = null;
  #info: CloseInfo | null = null;

  constructor(quic: Deno.QuicConn) {
    this.#quic = quic;
    const { hostname, port } = quic.remoteAddr;
    this.remoteAddress = formatAddress(hostname, port);
    // The pending operation behind `closed` is what keeps this object, and through it every live
    // stream, from the garbage collector.
    this.closed = quic.closed.then(
      ({ closeCode, reason }) => this.#onEnd({ by: "peer", applicationCode: closeCode, reason }),
      (error) => this.#onEnd({ by: "lost", applicationCode: 0, reason: messageOf(error) }),
    );
  }

  async openBidirectional(): Promise<ByteStream> {
    try {
      const { readable, writable } = await this.#quic.createBidirectionalStream(WAIT);
      return this.#hold(new NativeStream(this, readable, writable));
    } catch {
      throw endedError(this.#info ?? await this.closed);
    }
  }

  async openUnidirectional(): Promise<SendStream> {
    try {
      const writable = await this.#quic.createUnidirectionalStream(WAIT);
      return this.#hold(new NativeStream(this, null, writable));
    } catch {
      throw endedError(this.#info ?? await this.closed);
    }
  }

  async acceptBidirectional(): Promise<ByteStream | null> {
    if (this.#info !== null) return null;
    this.#bidirectional ??= this.#quic.incomingBidirectionalStreams.getReader();
    try {
      const { value } = await this.#bidirectional.read();
      if (value === undefined) return null;
      return this.#hold(new NativeStream(this, value.readable, value.writable));
    } catch {
      return null; // the connection ended; `closed` says how
    }
  }

  async acceptUnidirectional(): Promise<ReceiveStream | null> {
    if (this.#info !== null) return null;
    this.#unidirectional ??= this.#quic.incomingUnidirectionalStreams.getReader();
    try {
      const { value } = await this.#unidirectional.read();
      if (value === undefined) return null;
      return this.#hold(new NativeStream(this, value, null));
    } catch {
      return null;
    }
  }

  close(applicationCode = 0, reason = ""): void {
    if (this.#info !== null) return;
    this.#info = { by: "local", applicationCode, reason };
    this.#quic.close({ closeCode: applicationCode, reason });
  }

  /**
   * The failure to report for `error` of a stream that says nothing about the stream itself. The
   * engine tells a stream that the connection is lost before it says how.
   */
  async failureAfter(error: unknown): Promise<TransportError> {
    if (this.#info === null && !(error instanceof Deno.errors.NotConnected)) {
      return new TransportError("stream_closed", messageOf(error), 0, { cause: error });
    }
    return endedError(this.#info ?? await this.closed);
  }

  /** Lets go of a stream of which both halves have ended. */
  forget(stream: NativeStream): void {
    this.#live.delete(stream);
  }

  #hold(stream: NativeStream): NativeStream {
    this.#live.add(stream);
    return stream;
  }

  #onEnd(info: CloseInfo): CloseInfo {
    this.#info ??= info;
    this.#live.clear();
    return this.#info;
  }
}
