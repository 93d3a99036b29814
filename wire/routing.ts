// Key to shard, the same on client and broker (spec/wire.md §6): FNV-1a 64, a finalizer, then
// modulo or jump hash. 64-bit arithmetic is done in two 32-bit halves, because a key is hashed per
// request; only jump hash, which needs a few steps per key, uses BigInt.

/** How a hash picks a shard; fixed when a stream is created. */
export type RoutingMapping = "modulo" | "jump_hash";

const MASK = 0xffff_ffff_ffff_ffffn;
/** Widths below this keep the modulo within exact doubles. */
const EXACT_WIDTH = 1 << 20;

// The halves of the last hash: two numbers are returned without an allocation.
interface Halves {
  high: number;
  low: number;
}

function hash(key: Uint8Array, into: Halves): void {
  let high = 0xcbf2_9ce4;
  let low = 0x8422_2325;
  for (let at = 0; at < key.length; at++) {
    low = (low ^ key[at]!) >>> 0;
    // times 2^40 + 0x1b3
    const product = low * 0x1b3;
    high = (high * 0x1b3 + Math.floor(product / 0x1_0000_0000) + ((low << 8) >>> 0)) >>> 0;
    low = product >>> 0;
  }
  into.high = high;
  into.low = low;
}

/** `a * b` modulo 2^64, both in halves. */
function multiply(value: Halves, high: number, low: number): void {
  const aLow = value.low & 0xffff;
  const aHigh = value.low >>> 16;
  const bLow = low & 0xffff;
  const bHigh = low >>> 16;
  const middle = aHigh * bLow + ((aLow * bLow) >>> 16);
  const middle2 = aLow * bHigh + (middle & 0xffff);
  const carry = aHigh * bHigh + Math.floor(middle / 0x1_0000) + Math.floor(middle2 / 0x1_0000);
  value.high = (carry + Math.imul(value.high, low) + Math.imul(value.low, high)) >>> 0;
  value.low = Math.imul(value.low, low) >>> 0;
}

/** `value ^= value >> bits`, for 1 to 31 bits. */
function fold(value: Halves, bits: number): void {
  const low = ((value.low >>> bits) | (value.high << (32 - bits))) >>> 0;
  value.low = (value.low ^ low) >>> 0;
  value.high = (value.high ^ (value.high >>> bits)) >>> 0;
}

function mix(value: Halves): void {
  fold(value, 30);
  multiply(value, 0xbf58_476d, 0x1ce4_e5b9);
  fold(value, 27);
  multiply(value, 0x94d0_49bb, 0x1331_11eb);
  fold(value, 31);
}

function toBigInt({ high, low }: Halves): bigint {
  return (BigInt(high) << 32n) | BigInt(low);
}

/** FNV-1a, 64 bits. */
export function fnv1a64(key: Uint8Array): bigint {
  const value = { high: 0, low: 0 };
  hash(key, value);
  return toBigInt(value);
}

/** The finalizer that follows FNV-1a. */
export function finalize(value: bigint): bigint {
  const halves = { high: Number(value >> 32n), low: Number(value & 0xffff_ffffn) };
  mix(halves);
  return toBigInt(halves);
}

/** Jump consistent hash (Lamping and Veach), in doubles in exactly this order. */
function jump(value: bigint, shards: number): number {
  let key = value;
  let bucket = -1;
  let next = 0;
  while (next < shards) {
    bucket = next;
    key = (key * 2862933555777941757n + 1n) & MASK;
    next = Math.trunc((bucket + 1) * (2147483648 / (Number(key >> 33n) + 1)));
  }
  return bucket;
}

/**
 * The shard of a key; `null` = no key, which is shard 0. `shards` from 0 (taken as 1) to 2^32 - 1.
 *
 * @example
 * ```ts
 * import { shardForKey } from "@felix/wire";
 *
 * shardForKey(new TextEncoder().encode("customer-1"), 8); // 3
 * ```
 */
export function shardForKey(
  key: Uint8Array | null,
  shards: number,
  mapping: RoutingMapping = "modulo",
): number {
  if (key === null || shards <= 1) return 0;
  const value = { high: 0, low: 0 };
  hash(key, value);
  mix(value);
  if (mapping === "jump_hash") return jump(toBigInt(value), shards);
  if (shards > EXACT_WIDTH) return Number(toBigInt(value) % BigInt(shards));
  return ((value.high % shards) * (0x1_0000_0000 % shards) + (value.low % shards)) % shards;
}
