// One stream of the quiche engine. Rules: nothing is buffered here but what a caller is waiting to
// have written; what arrives stays in quiche's receive window until it is read; the connection
// drives a stream through `onReadable` and `onWritable` and is told when both halves have ended.

import { finishedError, messageOf } from "../ended.ts";
import { type ByteStream, TransportError } from "../transport.ts";
import { type QuicheNative, SHUTDOWN_READ, SHUTDOWN_WRITE } from "./binding.ts";

/** What a stream needs of its connection. */
export interface StreamOwner {
  readonly quic: QuicheNative;
  /** The failure of every call once the connection has ended, before that `null`. */
  readonly failure: TransportError | null;
  /** Something was written, read or shut down: packets are due. */
  schedule(): void;
  /** How often packets were made so far. */
  readonly flushes: number;
  /** Whether everything sent on the connection has been acknowledged. */
  isQuiet(): boolean;
  /** Milliseconds after which what was sent has been acknowledged, if nothing was lost. */
  settleMs(): number;
  /** `stream` has bytes that quiche did not take yet. */
  blocked(stream: QuicheStream): void;
  /** Calls `onWritable` of blocked streams again at `dueMs` (`performance.now()`) at the latest. */
  wakeBy(dueMs: number): void;
  /** Both halves of `stream` have ended. */
  forget(stream: QuicheStream): void;
}

interface PendingRead {
  readonly into: Uint8Array<ArrayBuffer>;
  resolve(view: Uint8Array<ArrayBuffer> | null): void;
  reject(error: TransportError): void;
}

interface PendingWrite {
  bytes: Uint8Array;
  readonly fin: boolean;
  resolve(): void;
  reject(error: TransportError): void;
}

/** How a half stands: open, ended well, ended by this side, or failed. */
type Half = "open" | "ended" | "dropped" | TransportError;

const NOTHING = new Uint8Array(0);
/** Where unwanted bytes go; written by all, read by nobody. */
const DISCARD = new Uint8Array(64 * 1024);
const STOPPED = /^StreamStopped\((\d+)\)/;
const GONE = /^InvalidStreamState/;
const RESET = /^StreamReset\((\d+)\)/;

/** A stream of the quiche engine, any kind; a one-way stream starts with the other half ended. */
export class QuicheStream implements ByteStream {
  readonly id: number;
  readonly #owner: StreamOwner;
  #readHalf: Half;
  #writeHalf: Half;
  #finSeen = false;
  /** Nothing more will be received: ended, reset, stopped, or never readable. */
  #receiveDone: boolean;
  #pendingRead: PendingRead | null = null;
  #pendingWrites: PendingWrite[] | null = null;
  #sentAtFlush = -1;
  #sentAtMs = -Infinity;
  /** The peer reset it: quiche keeps such a stream until it is asked once more. */
  wasReset = false;

  constructor(owner: StreamOwner, id: number, reads: boolean, writes: boolean) {
    this.id = id;
    this.#owner = owner;
    this.#readHalf = reads ? "open" : "ended";
    this.#receiveDone = !reads;
    this.#writeHalf = writes ? "open" : "ended";
  }

  read(into: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer> | null> {
    if (this.#pendingRead !== null) return Promise.reject(new TypeError("one read at a time"));
    if (into.byteLength === 0) return Promise.reject(new TypeError("no room to read into"));
    if (this.#readHalf === "open" && this.#owner.failure !== null) {
      this.#readHalf = this.#owner.failure;
    }
    try {
      const view = this.#receive(into);
      if (view !== undefined) return Promise.resolve(view);
    } catch (error) {
      return Promise.reject(error);
    }
    return new Promise((resolve, reject) => {
      this.#pendingRead = { into, resolve, reject };
    });
  }

  cancel(): void {
    if (this.#readHalf !== "open") return;
    this.#readHalf = "dropped";
    this.#pendingRead?.reject(finishedError());
    this.#pendingRead = null;
    if (!this.#receiveDone && this.#owner.failure === null) this.#discard(false);
    this.#settle();
  }

  write(bytes: Uint8Array): Promise<void> {
    const refusal = this.#writeRefusal();
    if (refusal !== null) return Promise.reject(refusal);
    if (this.#pendingWrites !== null) return this.#queue(bytes, false);
    try {
      const taken = this.#send(bytes, false);
      this.#owner.schedule();
      if (taken === bytes.byteLength) return Promise.resolve();
      return this.#queue(bytes.subarray(taken), false);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  finish(): Promise<void> {
    if (this.#writeHalf === "ended" || this.#writeHalf === "dropped") return Promise.resolve();
    const refusal = this.#writeRefusal();
    if (refusal !== null) return Promise.reject(refusal);
    if (this.#pendingWrites !== null || !this.#mayEnd()) {
      const done = this.#queue(NOTHING, true);
      this.#writeHalf = "ended";
      return done;
    }
    try {
      this.#send(NOTHING, true);
    } catch (error) {
      return Promise.reject(error);
    }
    this.#writeHalf = "ended";
    this.#owner.schedule();
    this.#settle();
    return Promise.resolve();
  }

  reset(applicationCode: number): void {
    if (this.#writeHalf instanceof TransportError) return;
    if (this.#writeHalf !== "open" && this.#pendingWrites === null) return;
    this.#writeHalf = "dropped";
    this.#failWrites(finishedError());
    this.#shutdown(SHUTDOWN_WRITE, applicationCode);
    this.#settle();
  }

  /** Bytes, an end or a reset have arrived; returns whether a reader was woken. */
  onReadable(): boolean {
    if (this.#readHalf !== "open") {
      this.#discard(true);
      this.#settle();
      return false;
    }
    const pending = this.#pendingRead;
    if (pending === null) return false;
    try {
      const view = this.#receive(pending.into);
      if (view === undefined) return false;
      this.#pendingRead = null;
      pending.resolve(view);
    } catch (error) {
      this.#pendingRead = null;
      pending.reject(error as TransportError);
    }
    return true;
  }

  /** Whether writes are waiting. */
  get isBlocked(): boolean {
    return this.#pendingWrites !== null;
  }

  /** quiche may take more; returns whether a writer was woken. */
  onWritable(): boolean {
    const writes = this.#pendingWrites;
    if (writes === null) return false;
    let done = 0;
    try {
      for (const write of writes) {
        const room = write.fin ? this.#mayEnd() : this.#owner.quic.streamCapacity(this.id) > 0;
        if (!room) break;
        const taken = this.#send(write.bytes, write.fin);
        if (taken < write.bytes.byteLength) {
          write.bytes = write.bytes.subarray(taken);
          break;
        }
        write.resolve();
        done++;
      }
      if (done < writes.length) writes.splice(0, done);
      else this.#pendingWrites = null;
    } catch (error) {
      writes.splice(0, done);
      this.#failWrites(this.#streamError(error));
      done++;
    }
    this.#settle();
    return done > 0;
  }

  /** The connection has ended: everybody waiting learns it. */
  onConnectionEnd(failure: TransportError): void {
    if (this.#readHalf === "open") this.#readHalf = failure;
    if (this.#writeHalf === "open") this.#writeHalf = failure;
    this.#pendingRead?.reject(failure);
    this.#pendingRead = null;
    this.#failWrites(failure);
  }

  /** A view of what arrived, `null` at the end, `undefined` where nothing has arrived yet. */
  #receive(into: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> | null | undefined {
    if (this.#readHalf === "ended") return null;
    if (this.#readHalf === "dropped") throw finishedError();
    if (this.#readHalf !== "open") throw this.#readHalf;
    if (this.#finSeen) {
      this.#readHalf = "ended";
      this.#settle();
      return null;
    }
    let result: [number, boolean] | null;
    try {
      result = this.#owner.quic.streamRecv(this.id, into);
    } catch (error) {
      const failure = this.#streamError(error);
      this.#readHalf = failure;
      this.#settle();
      throw failure;
    }
    if (result === null) return undefined;
    this.#owner.schedule(); // the window may be due for an update
    if (result[1]) this.#finSeen = this.#receiveDone = true;
    if (result[0] > 0) return into.subarray(0, result[0]);
    return this.#finSeen ? this.#receive(into) : undefined;
  }

  /**
   * Drops what has arrived after `cancel`. Only a peer that goes on sending is told to stop: quiche
   * 0.18 never gives back the stream credit of a stream that was stopped (T9), so one that its peer
   * was about to end anyway is better read to its end.
   */
  #discard(tellPeer: boolean): void {
    let discarded = 0;
    try {
      for (;;) {
        const result = this.#owner.quic.streamRecv(this.id, DISCARD);
        if (result === null) break;
        discarded += result[0];
        if (result[1]) this.#receiveDone = true;
      }
    } catch (error) {
      this.#streamError(error);
      this.#receiveDone = true; // reset by the peer, or gone: nothing more will come
    }
    if (tellPeer && discarded > 0 && !this.#receiveDone) {
      this.#receiveDone = true;
      this.#shutdown(SHUTDOWN_READ, 0);
    }
    this.#owner.schedule();
  }

  #writeRefusal(): TransportError | null {
    if (this.#writeHalf === "ended" || this.#writeHalf === "dropped") return finishedError();
    if (this.#writeHalf !== "open") return this.#writeHalf;
    return this.#owner.failure;
  }

  #queue(bytes: Uint8Array, fin: boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#pendingWrites ??= [];
      this.#pendingWrites.push({ bytes, fin, resolve, reject });
      this.#owner.blocked(this);
    });
  }

  #send(bytes: Uint8Array, fin: boolean): number {
    if (bytes.byteLength === 0 && !fin) return 0;
    try {
      const taken = this.#owner.quic.streamSend(this.id, bytes, fin) ?? 0;
      if (taken > 0) {
        this.#sentAtFlush = this.#owner.flushes;
        this.#sentAtMs = performance.now();
      }
      return taken;
    } catch (error) {
      const failure = this.#streamError(error);
      this.#writeHalf = failure;
      this.#settle();
      throw failure;
    }
  }

  /**
   * Whether an end may be given to quiche now. quiche 0.18 forgets a stream as soon as its bytes
   * are acknowledged and an end was asked for, whether or not that end has left (T10). So an end
   * goes with bytes that have not left either, or after the acknowledgement of all that have.
   */
  #mayEnd(): boolean {
    if (this.#sentAtFlush === this.#owner.flushes || this.#sentAtMs === -Infinity) return true;
    if (this.#owner.isQuiet()) return true;
    const dueMs = this.#sentAtMs + this.#owner.settleMs();
    if (performance.now() >= dueMs) return true;
    this.#owner.wakeBy(dueMs);
    return false;
  }

  #failWrites(failure: TransportError): void {
    const writes = this.#pendingWrites;
    this.#pendingWrites = null;
    if (this.#writeHalf === "open") this.#writeHalf = failure;
    if (writes !== null) { for (const write of writes) write.reject(failure); }
  }

  #shutdown(direction: number, code: number): void {
    try {
      this.#owner.quic.streamShutdown(this.id, direction, code);
    } catch {
      // ended already, as far as quiche is concerned
    }
    this.#owner.schedule();
  }

  #streamError(error: unknown): TransportError {
    if (error instanceof TransportError) return error;
    const message = messageOf(error);
    const stopped = STOPPED.exec(message);
    if (stopped !== null) {
      return new TransportError("stream_stopped", "peer stopped reading", Number(stopped[1]));
    }
    const reset = RESET.exec(message);
    if (reset !== null) {
      this.wasReset = this.#receiveDone = true;
      return new TransportError("stream_reset", "peer reset the stream", Number(reset[1]));
    }
    // A stream that is gone though this side has not ended it was stopped: quiche answers the
    // peer's STOP_SENDING by itself and forgets the stream once that is acknowledged.
    if (GONE.test(message) && this.#writeHalf === "open" && this.#owner.failure === null) {
      return new TransportError("stream_stopped", "peer stopped reading");
    }
    return this.#owner.failure ?? new TransportError("stream_closed", `stream gone: ${message}`);
  }

  #settle(): void {
    if (this.#readHalf === "open" || this.#writeHalf === "open" || !this.#receiveDone) return;
    if (this.#pendingWrites === null) this.#owner.forget(this);
  }
}
