// Small files read in one piece: indexes and marks. Rule: what is not there is `null`, never an
// error; what it holds is for the caller to judge.

import type { Disk } from "./disk.ts";

/** The bytes of a file; `null` when there is none. */
export async function readWhole(disk: Disk, path: string): Promise<Uint8Array | null> {
  const size = disk.fileSize(path);
  if (size === null) return null;
  const file = disk.open(path, "read");
  try {
    const bytes = new Uint8Array(size);
    return bytes.subarray(0, await file.read(bytes, 0));
  } finally {
    file.close();
  }
}
