// Memory for the envelopes of one shard: views of a buffer that is filled from front to back and
// then left to its views. A small first buffer keeps an idle shard cheap; traffic doubles the next
// one.

const FIRST_SLAB_BYTES = 4 * 1024;
const LARGEST_SLAB_BYTES = 256 * 1024;
/** From this size on an allocation gets a buffer of its own. */
const OWN_BUFFER_BYTES = 64 * 1024;

/** Hands out views that are never handed out again. */
export class Slab {
  #buffer = new Uint8Array(0);
  #used = 0;
  #nextBytes = FIRST_SLAB_BYTES;

  /** A zeroed view of exactly `bytes` bytes. */
  allocate(bytes: number): Uint8Array<ArrayBuffer> {
    if (bytes >= OWN_BUFFER_BYTES) return new Uint8Array(bytes);
    let end = this.#used + bytes;
    if (end > this.#buffer.length) {
      while (this.#nextBytes < bytes) this.#nextBytes *= 2;
      this.#buffer = new Uint8Array(this.#nextBytes);
      this.#nextBytes = Math.min(this.#nextBytes * 2, LARGEST_SLAB_BYTES);
      this.#used = 0;
      end = bytes;
    }
    const view = this.#buffer.subarray(this.#used, end);
    this.#used = end;
    return view;
  }
}
