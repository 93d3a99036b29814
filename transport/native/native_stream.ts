// One stream of the built-in engine, any kind; a one-way stream lacks a half and is typed as such
// by the connection. Rules: a read goes through a BYOB reader into the caller's memory; nothing is
// allocated before a half is used; the connection holds the stream until both halves have ended,
// because a stream that is garbage-collected reaches the peer as a clean end (T3).

import { type ByteStream, TransportError } from "../transport.ts";
import { finishedError } from "../ended.ts";
import { streamError } from "./native_errors.ts";
import type { NativeConnection } from "./native_connection.ts";

type Readable = ReadableStream<Uint8Array<ArrayBuffer>>;
type Writable = WritableStream<Uint8Array>;

/** Bits of `#ended`. */
const READ_ENDED = 1;
const WRITE_ENDED = 2;
const CANCELLED = 4;
const BOTH_ENDED = READ_ENDED | WRITE_ENDED;

const ignore = (): void => {};

/** A stream of the built-in engine. */
export class NativeStream implements ByteStream {
  readonly #connection: NativeConnection;
  readonly #readable: Readable | null;
  readonly #writable: Writable | null;
  #reader: ReadableStreamBYOBReader | null = null;
  #writer: WritableStreamDefaultWriter<Uint8Array> | null = null;
  #ended: number;
  /** What broke the writing half; later writes get the same answer. */
  #writeFailure: TransportError | null = null;

  constructor(connection: NativeConnection, readable: Readable | null, writable: Writable | null) {
    this.#connection = connection;
    this.#readable = readable;
    this.#writable = writable;
    this.#ended = (readable === null ? READ_ENDED : 0) | (writable === null ? WRITE_ENDED : 0);
  }

  read(into: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer> | null> {
    if ((this.#ended & CANCELLED) !== 0) return Promise.reject(finishedError());
    this.#reader ??= this.#readable!.getReader({ mode: "byob" });
    return this.#reader.read(into).then(this.#onRead, this.#onReadError);
  }

  cancel(): void {
    if ((this.#ended & READ_ENDED) !== 0) return;
    this.#end(READ_ENDED | CANCELLED);
    this.#reader ??= this.#readable!.getReader({ mode: "byob" });
    this.#reader.cancel().catch(ignore);
  }

  write(bytes: Uint8Array): Promise<void> {
    if ((this.#ended & WRITE_ENDED) !== 0) {
      return Promise.reject(this.#writeFailure ?? finishedError());
    }
    this.#writer ??= this.#writable!.getWriter();
    return this.#writer.write(bytes).then(undefined, this.#onWriteError);
  }

  finish(): Promise<void> {
    if (this.#writeFailure !== null) return Promise.reject(this.#writeFailure);
    if ((this.#ended & WRITE_ENDED) !== 0) return Promise.resolve();
    this.#writer ??= this.#writable!.getWriter();
    const closing = this.#writer.close().then(undefined, this.#onWriteError);
    this.#end(WRITE_ENDED);
    return closing;
  }

  reset(applicationCode: number): void {
    if ((this.#ended & WRITE_ENDED) !== 0) return;
    this.#end(WRITE_ENDED);
    this.#writer ??= this.#writable!.getWriter();
    const reason = new TransportError("stream_closed", "stream reset here", applicationCode);
    this.#writer.abort(reason).catch(ignore);
  }

  // One closure per stream and kind instead of one per call.
  readonly #onRead = (
    result: ReadableStreamReadResult<Uint8Array<ArrayBuffer>>,
  ): Uint8Array<ArrayBuffer> | null => {
    if (!result.done) return result.value;
    if ((this.#ended & CANCELLED) !== 0) throw finishedError();
    this.#end(READ_ENDED);
    return null;
  };

  readonly #onReadError = async (error: unknown): Promise<never> => {
    if (error instanceof TypeError) throw error; // a misuse: an empty or detached buffer
    this.#end(READ_ENDED);
    throw streamError(error) ?? await this.#connection.failureAfter(error);
  };

  readonly #onWriteError = async (error: unknown): Promise<never> => {
    const failure = streamError(error) ?? await this.#connection.failureAfter(error);
    this.#writeFailure ??= failure;
    this.#end(WRITE_ENDED);
    throw failure;
  };

  #end(bits: number): void {
    this.#ended |= bits;
    if ((this.#ended & BOTH_ENDED) === BOTH_ENDED) this.#connection.forget(this);
  }
}
