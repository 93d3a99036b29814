// 64-bit little-endian integers as numbers, for the records of projections (spec/storage.md §13).
// Rule: nothing above 2^53 - 1 is ever returned as if it were exact.

const TWO_TO_32 = 0x1_0000_0000;

/** Writes a safe integer (0 to 2^53 - 1) as little-endian u64. */
export function setU64Le(view: DataView, at: number, value: number): void {
  view.setUint32(at, value % TWO_TO_32, true);
  view.setUint32(at + 4, Math.floor(value / TWO_TO_32), true);
}

/** Reads a little-endian u64; -1 when it is above 2^53 - 1. */
export function getU64Le(view: DataView, at: number): number {
  const high = view.getUint32(at + 4, true);
  return high >= 0x20_0000 ? -1 : high * TWO_TO_32 + view.getUint32(at, true);
}
