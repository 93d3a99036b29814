// CRC-32 (IEEE 802.3, reflected) of pieces of a buffer: the runtime's own for anything long, tables
// for a record's 20-byte header, where the call would cost more than the sum (spec/storage.md §3).

import { crc32 as nativeCrc32 } from "node:zlib";

/** Eight tables of 256: byte `b` followed by 0 to 7 zero bytes. */
const TABLE = new Int32Array(8 * 256);
for (let byte = 0; byte < 256; byte++) {
  let remainder = byte;
  for (let bit = 0; bit < 8; bit++) {
    remainder = remainder & 1 ? (remainder >>> 1) ^ 0xEDB8_8320 : remainder >>> 1;
  }
  TABLE[byte] = remainder;
}
for (let at = 256; at < TABLE.length; at++) {
  const shorter = TABLE[at - 256]!;
  TABLE[at] = (shorter >>> 8) ^ TABLE[shorter & 0xFF]!;
}

/** Below this many bytes the tables are faster than a call. */
const TABLE_BYTES = 64;

/** CRC-32 of `bytes[start, end)`, continued from `before` (0 for none). */
export function crc32(bytes: Uint8Array, start: number, end: number, before = 0): number {
  if (end - start > TABLE_BYTES) return nativeCrc32(bytes.subarray(start, end), before);
  let sum = ~before;
  let at = start;
  for (const last = end - 7; at < last; at += 8) {
    const low = sum ^ (bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) |
      (bytes[at + 3]! << 24));
    sum = TABLE[1792 + (low & 0xFF)]! ^ TABLE[1536 + ((low >>> 8) & 0xFF)]! ^
      TABLE[1280 + ((low >>> 16) & 0xFF)]! ^ TABLE[1024 + (low >>> 24)]! ^
      TABLE[768 + bytes[at + 4]!]! ^ TABLE[512 + bytes[at + 5]!]! ^
      TABLE[256 + bytes[at + 6]!]! ^ TABLE[bytes[at + 7]!]!;
  }
  for (; at < end; at++) sum = (sum >>> 8) ^ TABLE[(sum ^ bytes[at]!) & 0xFF]!;
  return ~sum >>> 0;
}
