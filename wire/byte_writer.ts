// Where encoders write: one buffer that grows by doubling and is handed out as views. Its owner
// reuses it (`clear`) or gives it away (`take`); nothing is encoded into a buffer of its own, and
// an encoder that refuses what it was given leaves nothing behind.

const utf8 = new TextEncoder();

/** An append-only buffer of big-endian fields. */
export class ByteWriter {
  /** The memory; bytes 0 to `length` are written. */
  buffer: Uint8Array<ArrayBuffer>;
  /** Bytes written. */
  length = 0;
  readonly #initialBytes: number;
  #view: DataView<ArrayBuffer>;

  /** `initialBytes`: first size of the buffer, 1 or more. */
  constructor(initialBytes = 256) {
    this.#initialBytes = initialBytes;
    this.buffer = new Uint8Array(initialBytes);
    this.#view = new DataView(this.buffer.buffer);
  }

  /** Makes room for `bytes` more bytes. */
  ensure(bytes: number): void {
    const needed = this.length + bytes;
    if (needed <= this.buffer.length) return;
    const grown = new Uint8Array(Math.max(needed, this.buffer.length * 2));
    grown.set(this.buffer.subarray(0, this.length));
    this.buffer = grown;
    this.#view = new DataView(grown.buffer);
  }

  /** Appends one byte. */
  u8(value: number): void {
    this.ensure(1);
    this.buffer[this.length++] = value;
  }

  /** Appends 16 bits. */
  u16(value: number): void {
    this.ensure(2);
    this.#view.setUint16(this.length, value);
    this.length += 2;
  }

  /** Appends 32 bits. */
  u32(value: number): void {
    this.ensure(4);
    this.#view.setUint32(this.length, value);
    this.length += 4;
  }

  /** Overwrites 32 bits at `at`: a length that is known only at the end. */
  u32At(at: number, value: number): void {
    this.#view.setUint32(at, value);
  }

  /** Appends 64 bits. */
  u64(value: bigint): void {
    this.ensure(8);
    this.#view.setBigUint64(this.length, value);
    this.length += 8;
  }

  /** Appends 64 bits from a safe integer; cheaper than `u64`. */
  u64n(value: number): void {
    this.ensure(8);
    this.#view.setUint32(this.length, Math.floor(value / 0x1_0000_0000));
    this.#view.setUint32(this.length + 4, value >>> 0);
    this.length += 8;
  }

  /** Appends bytes. */
  bytes(value: Uint8Array): void {
    this.ensure(value.length);
    this.buffer.set(value, this.length);
    this.length += value.length;
  }

  /** Appends text of code points below 128; cheaper than `utf8` for short text. */
  ascii(text: string): void {
    const { length } = text;
    this.ensure(length);
    const { buffer } = this;
    let at = this.length;
    for (let index = 0; index < length; index++) buffer[at++] = text.charCodeAt(index);
    this.length = at;
  }

  /** Appends text as UTF-8; lone surrogates become U+FFFD. Answers how many bytes it took. */
  utf8(text: string): number {
    this.ensure(text.length * 3);
    const { written } = utf8.encodeInto(text, this.buffer.subarray(this.length));
    this.length += written;
    return written;
  }

  /** A view of everything written; stays valid until the next append or `clear`. */
  written(): Uint8Array<ArrayBuffer> {
    return this.buffer.subarray(0, this.length);
  }

  /**
   * Gives everything written away; the writer goes on with a new buffer, no larger than the last
   * and sized by what was just taken.
   */
  take(): Uint8Array<ArrayBuffer> {
    const taken = this.written();
    const bytes = Math.min(this.buffer.length, Math.max(this.#initialBytes, taken.length * 2));
    this.buffer = new Uint8Array(bytes);
    this.#view = new DataView(this.buffer.buffer);
    this.length = 0;
    return taken;
  }

  /** Forgets everything written and keeps the buffer. */
  clear(): void {
    this.length = 0;
  }
}
