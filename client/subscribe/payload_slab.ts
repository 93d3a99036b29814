// Where payloads lie that the application was given. A slab is filled once and never written
// again; it goes away with the last view of it.

const SLAB_BYTES = 256 * 1024;

/** Copies byte ranges into slabs. */
export class PayloadSlab {
  #slab = new Uint8Array(0);
  #used = 0;
  #slabBytes = 2048;

  /** A copy of `bytes` that nobody writes to again. */
  copy(bytes: Uint8Array): Uint8Array {
    const { length } = bytes;
    if (length * 4 > SLAB_BYTES) return bytes.slice();
    if (this.#used + length > this.#slab.length) {
      // The first slabs are small: a quiet subscription should not hold much.
      this.#slab = new Uint8Array(Math.max(this.#slabBytes, length));
      this.#slabBytes = Math.min(SLAB_BYTES, this.#slabBytes * 2);
      this.#used = 0;
    }
    const view = this.#slab.subarray(this.#used, this.#used + length);
    view.set(bytes);
    this.#used += length;
    return view;
  }
}
