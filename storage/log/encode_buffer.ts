// The buffer in which all logs of a store encode their appends: encoding and writing happen in one
// turn, so one buffer serves them all. Rule: what is larger than it keeps gets a buffer of its own.

const KEPT_BYTES = 1024 * 1024;

/** Bytes to encode into. */
export interface EncodeSpace {
  readonly bytes: Uint8Array;
  readonly view: DataView;
}

/** Hands out space; the space is valid until the next call. */
export class EncodeBuffer {
  #kept: EncodeSpace | null = null;

  /** Space of at least `size` bytes. */
  take(size: number): EncodeSpace {
    if (size > KEPT_BYTES) return space(size);
    return this.#kept ??= space(KEPT_BYTES);
  }
}

function space(size: number): EncodeSpace {
  const bytes = new Uint8Array(size);
  return { bytes, view: new DataView(bytes.buffer) };
}
