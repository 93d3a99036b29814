// 64-bit integers as numbers. Rule: nothing above 2^53 - 1 is ever returned as if it were exact;
// storage positions, offsets and times stay far below (spec/storage.md §23).

const TWO_TO_32 = 0x1_0000_0000;

/** Writes a safe integer (0 to 2^53 - 1) as big-endian u64. */
export function setU64(view: DataView, at: number, value: number): void {
  view.setUint32(at, Math.floor(value / TWO_TO_32));
  view.setUint32(at + 4, value % TWO_TO_32);
}

/** Reads a big-endian u64; -1 when it is above 2^53 - 1. */
export function getU64(view: DataView, at: number): number {
  const high = view.getUint32(at);
  return high >= 0x20_0000 ? -1 : high * TWO_TO_32 + view.getUint32(at + 4);
}
