// Turns bytes as they arrive into frames. It owns the memory that reads go into: `space` offers
// room, `filled` says what came, `next` hands out views. Memory follows the bytes that arrived and
// never a length that was declared; between frames it holds a read-ahead buffer and nothing more.

import { DEFAULT_MAX_PAYLOAD_BYTES, HEADER_BYTES, MAGIC, VERSION } from "./frame.ts";
import type { Frame } from "./frame.ts";
import { WireError } from "./wire_error.ts";

/** Bounds of a reader. */
export interface FrameReaderOptions {
  /** Largest payload read; a larger one is refused on its header. Default 16 MiB. */
  readonly maxPayloadBytes?: number;
  /** Size of the buffer at rest; default 2048. */
  readonly initialBufferBytes?: number;
  /** Size that the buffer may grow to when reads fill it; default 65536. */
  readonly maxBufferBytes?: number;
}

/** Reads in a row that used little of a grown buffer before it shrinks. */
const SMALL_READS = 16;
/** What a frame that does not fit may take without bytes to show for it. */
const FREE_BYTES = 65536;

/** Cuts a stream of bytes into frames. */
export class FrameReader {
  /** Largest payload read. */
  maxPayloadBytes: number;
  readonly #initialBytes: number;
  readonly #maxBytes: number;
  #buffer: Uint8Array<ArrayBuffer>;
  /** Bytes of the buffer; the buffer itself has none while a read holds its memory. */
  #capacity: number;
  /** Unread bytes lie from `#start` to `#end`. */
  #start = 0;
  #end = 0;
  /** Size that the buffer has when it holds no unfinished frame. */
  #wantedBytes: number;
  #smallReads = 0;
  /** Bytes of the large frames that came in a row: what the next one may take at once. */
  #largeBytes = 0;

  /** An empty reader. */
  constructor(options: FrameReaderOptions = {}) {
    this.maxPayloadBytes = options.maxPayloadBytes ?? DEFAULT_MAX_PAYLOAD_BYTES;
    this.#initialBytes = Math.max(HEADER_BYTES, options.initialBufferBytes ?? 2048);
    this.#maxBytes = Math.max(this.#initialBytes, options.maxBufferBytes ?? 65536);
    this.#wantedBytes = this.#initialBytes;
    this.#capacity = this.#initialBytes;
    this.#buffer = new Uint8Array(this.#capacity);
  }

  /** Bytes of a frame that has not arrived whole; 0 = at a frame boundary. */
  get pendingBytes(): number {
    return this.#end - this.#start;
  }

  /** Whether what is pending is less than a header: an end of the stream here is clean (§2.3). */
  get inHeader(): boolean {
    return this.pendingBytes < HEADER_BYTES;
  }

  /** Bytes of memory held. */
  get bufferBytes(): number {
    return this.#capacity;
  }

  /** Room to read into, 1 byte or more. Ends the life of every payload view handed out. */
  space(): Uint8Array<ArrayBuffer> {
    const pending = this.pendingBytes;
    const needed = this.#capacityFor(pending);
    if (needed !== this.#capacity) this.#move(needed);
    else if (this.#start > 0) {
      if (pending > 0) this.#buffer.copyWithin(0, this.#start, this.#end);
      this.#start = 0;
      this.#end = pending;
    }
    return this.#buffer.subarray(this.#end);
  }

  /**
   * Says what a read brought: `view` lies where `space` pointed, perhaps in transferred memory.
   * @throws {RangeError} `view` lies anywhere else
   */
  filled(view: Uint8Array<ArrayBuffer>): void {
    const { buffer, byteOffset, length } = view;
    const room = this.#capacity - this.#end;
    if (byteOffset !== this.#end || length > room || buffer.byteLength !== this.#capacity) {
      throw new RangeError("a read answered with other memory than it was given");
    }
    if (buffer !== this.#buffer.buffer) this.#buffer = new Uint8Array(buffer);
    this.#end += length;
    this.#adapt(length, room);
  }

  /**
   * The next whole frame; `null` = more bytes are needed. Payloads are views that live until the
   * next `space` (or for good after `keep`).
   * @throws {WireError} `invalid_magic`, `unsupported_version`, `too_large`
   */
  next(): Frame | null {
    const start = this.#start;
    const available = this.#end - start;
    if (available < HEADER_BYTES) return null;
    const length = this.#checkHeader(start);
    if (available < HEADER_BYTES + length) return null;
    const from = start + HEADER_BYTES;
    this.#start = from + length;
    this.#largeBytes = HEADER_BYTES + length > this.#maxBytes
      ? this.#largeBytes + HEADER_BYTES + length
      : 0;
    const flags = (this.#buffer[start + 6]! << 8) | this.#buffer[start + 7]!;
    return { flags, payload: this.#buffer.subarray(from, this.#start) };
  }

  /** Leaves the buffer to the views handed out; what has not been read moves to a new one. */
  keep(): void {
    this.#move(this.#capacityFor(this.pendingBytes));
  }

  /** Copies `bytes` in, for callers that do not read into `space`. Handle frames in between. */
  push(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length;) {
      const space = this.space();
      const part = Math.min(space.length, bytes.length - at);
      space.set(bytes.subarray(at, at + part));
      this.filled(space.subarray(0, part));
      at += part;
    }
  }

  /** Size of the buffer for the next read with `pending` unread bytes in it. */
  #capacityFor(pending: number): number {
    if (pending < HEADER_BYTES) return this.#wantedBytes;
    const frame = HEADER_BYTES + this.#checkHeader(this.#start);
    // A whole frame may be pending when its reader pauses; there has to be room all the same.
    if (frame <= pending) return Math.max(this.#wantedBytes, pending * 2);
    if (frame <= this.#wantedBytes) return this.#wantedBytes;
    // Where large frames follow each other there is room to read ahead: then the next one is seen
    // in time and finds its buffer in place.
    const ahead = this.#largeBytes > 0 ? this.#maxBytes : 0;
    const bytes = Math.min(frame + ahead, Math.max(pending * 2, FREE_BYTES, this.#largeBytes));
    // A buffer is filled before it grows; otherwise every read of a slow sender would be a copy.
    const held = this.#capacity;
    return held > pending && held >= FREE_BYTES && held <= bytes * 4 ? held : bytes;
  }

  #move(bytes: number): void {
    const moved = new Uint8Array(bytes);
    const pending = this.pendingBytes;
    if (pending > 0) moved.set(this.#buffer.subarray(this.#start, this.#end));
    this.#buffer = moved;
    this.#capacity = bytes;
    this.#start = 0;
    this.#end = pending;
  }

  /** A read that filled its room asks for more room, a row of small ones for less. */
  #adapt(read: number, room: number): void {
    if (read === room) {
      this.#smallReads = 0;
      if (this.#wantedBytes < this.#maxBytes) {
        this.#wantedBytes = Math.min(this.#maxBytes, this.#wantedBytes * 4);
      }
    } else if (read * 4 <= this.#wantedBytes && this.#wantedBytes > this.#initialBytes) {
      if (++this.#smallReads < SMALL_READS) return;
      this.#smallReads = 0;
      this.#wantedBytes = Math.max(this.#initialBytes, this.#wantedBytes >> 2);
    } else this.#smallReads = 0;
  }

  #checkHeader(at: number): number {
    const buffer = this.#buffer;
    if (read32(buffer, at) !== MAGIC) throw new WireError("invalid_magic", "not a Felix frame");
    const version = (buffer[at + 4]! << 8) | buffer[at + 5]!;
    if (version !== VERSION) {
      throw new WireError("unsupported_version", `protocol version ${version}`);
    }
    const length = read32(buffer, at + 8);
    if (length > this.maxPayloadBytes) {
      const message = `a payload of ${length} bytes is above the cap of ${this.maxPayloadBytes}`;
      throw new WireError("too_large", message);
    }
    return length;
  }
}

function read32(bytes: Uint8Array, at: number): number {
  return ((bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!) >>>
    0;
}
