// CRC-64/XZ, and the digest of a producer batch made of it (spec/storage.md §5.4). Rule: the sum is
// carried as two 32-bit halves; a bigint is made only for the caller who asks for one.

/** Reflected polynomial of CRC-64/XZ. */
const POLYNOMIAL_HIGH = 0xC96C_5795 | 0;
const POLYNOMIAL_LOW = 0xD787_0F42 | 0;

/** Eight tables of 256 low and high halves: byte `b` followed by 0 to 7 zero bytes. */
const TABLE = new Int32Array(8 * 256 * 2);
for (let byte = 0; byte < 256; byte++) {
  let high = 0;
  let low = byte;
  for (let bit = 0; bit < 8; bit++) {
    const carry = low & 1;
    low = (low >>> 1) | (high << 31);
    high >>>= 1;
    if (carry) {
      low ^= POLYNOMIAL_LOW;
      high ^= POLYNOMIAL_HIGH;
    }
  }
  TABLE[2 * byte] = low;
  TABLE[2 * byte + 1] = high;
}
for (let at = 512; at < TABLE.length; at += 2) {
  const low = TABLE[at - 512]!;
  const high = TABLE[at - 511]!;
  const index = 2 * (low & 0xFF);
  TABLE[at] = ((low >>> 8) | (high << 24)) ^ TABLE[index]!;
  TABLE[at + 1] = (high >>> 8) ^ TABLE[index + 1]!;
}

/** A running CRC-64/XZ. */
class Crc64 {
  /** Halves of the sum so far, before the final inversion. */
  high = -1;
  low = -1;

  /** Begins a new sum. */
  reset(): void {
    this.high = -1;
    this.low = -1;
  }

  add(bytes: Uint8Array): void {
    const words = bytes.length >>> 3;
    if (words > 0) {
      const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
      for (let word = 0; word < words; word++) {
        this.#step(view.getInt32(word * 8, true), view.getInt32(word * 8 + 4, true));
      }
    }
    let { high, low } = this;
    for (let at = words << 3; at < bytes.length; at++) {
      const index = ((low ^ bytes[at]!) & 0xFF) << 1;
      low = ((low >>> 8) | (high << 24)) ^ TABLE[index]!;
      high = (high >>> 8) ^ TABLE[index + 1]!;
    }
    this.high = high;
    this.low = low;
  }

  /** Adds a number as big-endian u64. */
  addU64(high: number, low: number): void {
    this.#step(swapped(high), swapped(low));
  }

  /** Adds eight bytes, given as two little-endian words. */
  #step(first: number, second: number): void {
    const low = this.low ^ first;
    const high = this.high ^ second;
    const a = 3584 + ((low & 0xFF) << 1), b = 3072 + ((low >>> 7) & 0x1FE);
    const c = 2560 + ((low >>> 15) & 0x1FE), d = 2048 + ((low >>> 23) & 0x1FE);
    const e = 1536 + ((high & 0xFF) << 1), f = 1024 + ((high >>> 7) & 0x1FE);
    const g = 512 + ((high >>> 15) & 0x1FE), h = (high >>> 23) & 0x1FE;
    this.low = TABLE[a]! ^ TABLE[b]! ^ TABLE[c]! ^ TABLE[d]! ^
      TABLE[e]! ^ TABLE[f]! ^ TABLE[g]! ^ TABLE[h]!;
    this.high = TABLE[a + 1]! ^ TABLE[b + 1]! ^ TABLE[c + 1]! ^ TABLE[d + 1]! ^
      TABLE[e + 1]! ^ TABLE[f + 1]! ^ TABLE[g + 1]! ^ TABLE[h + 1]!;
  }
}

/** CRC-64/XZ of `bytes`, as u64. The check value of `123456789` is 0x995DC9BBDF1939FA. */
export function crc64(bytes: Uint8Array): bigint {
  const sum = new Crc64();
  sum.add(bytes);
  return joined(~sum.high, ~sum.low);
}

/**
 * The digest of a producer batch, record after record: for each payload
 * `digest = crc64(digest, crc64(length, payload))`, all numbers as big-endian u64, from 0
 * (spec/storage.md §5.4).
 */
export class BatchDigest {
  readonly #sum = new Crc64();
  #high: number;
  #low: number;

  /** Goes on from the digest of the records before; 0 for none. */
  constructor(before = 0n) {
    this.#high = Number(before >> 32n);
    this.#low = Number(before & 0xFFFF_FFFFn);
  }

  /** Adds the next record's payload. */
  add(payload: Uint8Array): void {
    const sum = this.#sum;
    sum.reset();
    sum.addU64(0, payload.length);
    sum.add(payload);
    const high = ~sum.high;
    const low = ~sum.low;
    sum.reset();
    sum.addU64(this.#high, this.#low);
    sum.addU64(high, low);
    this.#high = ~sum.high;
    this.#low = ~sum.low;
  }

  /** Digest of the records so far, as u64. */
  get value(): bigint {
    return joined(this.#high, this.#low);
  }
}

/** Digest of a whole batch: of the payloads of its records, in order (spec/storage.md §5.4). */
export function batchDigest(payloads: Iterable<Uint8Array>): bigint {
  const digest = new BatchDigest();
  for (const payload of payloads) digest.add(payload);
  return digest.value;
}

/** A word with its four bytes in the other order. */
function swapped(word: number): number {
  return (word << 24) | ((word & 0xFF00) << 8) | ((word >>> 8) & 0xFF00) | (word >>> 24);
}

function joined(high: number, low: number): bigint {
  return (BigInt(high >>> 0) << 32n) | BigInt(low >>> 0);
}
