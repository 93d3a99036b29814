// Memory for small cache values: views of shared buffers, because a buffer of its own costs a
// value more than its bytes do. The application may keep a value; it keeps at most one buffer.

const SLAB_BYTES = 8 * 1024;
/** From this size on a value gets a buffer of its own. */
const OWN_BYTES = 1024;

/** Hands out memory that is never handed out again. */
export class ValueSlab {
  #buffer: Uint8Array<ArrayBuffer> = new Uint8Array(0);
  #used = 0;

  /** Exactly `bytes` bytes. */
  take(bytes: number): Uint8Array<ArrayBuffer> {
    if (bytes >= OWN_BYTES) return new Uint8Array(bytes);
    if (this.#used + bytes > this.#buffer.length) {
      this.#buffer = new Uint8Array(SLAB_BYTES);
      this.#used = 0;
    }
    const view = this.#buffer.subarray(this.#used, this.#used + bytes);
    this.#used += bytes;
    return view;
  }
}
