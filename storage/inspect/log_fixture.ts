// A small log on a simulated disk, for the tests of this folder. Rule: the same at every run, four
// segments of which the last is the newest.

import type { Disk } from "../disk/disk.ts";
import type { SimulatedDisk } from "../disk/simulated_disk.ts";
import { RecordKind } from "../format/record.ts";
import type { NewRecord } from "../format/record.ts";
import type { LogSettings } from "../log/settings.ts";
import { segmentFileName } from "../recovery/directory_view.ts";
import { LogStore } from "../store.ts";
import type { LogKind } from "../store.ts";

/** Root of the test logs on a simulated disk. */
export const ROOT = "/felix";

/** A record with a text. */
export function textRecord(text: string): NewRecord {
  return { payload: new TextEncoder().encode(text) };
}

/** Writes the log and resolves to its directory; the store is closed again. */
export async function writeTestLog(
  disk: Disk,
  root: string = ROOT,
  kind: LogKind = "streams",
  changed: Partial<LogSettings> = {},
): Promise<string> {
  let now = Date.UTC(2026, 2, 1, 9) * 1000;
  const settings = { segmentBytes: 180, ...changed };
  const store = await LogStore.open({ disk, root, settings, nowMicros: () => now, owner: "test" });
  const key = { tenant: "t", namespace: "n", name: "orders", shard: 0 };
  const log = await store.openLog(kind, key);
  for (let order = 0; order < 7; order++) {
    now += 1500;
    await log.append([textRecord(`placed order ${order}`)]);
  }
  await log.append([
    { ...textRecord("a"), tag: { producerId: 77n, sequence: 3n, length: 2 } },
    { ...textRecord("b"), kind: RecordKind.batchContinuation },
  ]);
  await log.append([{ payload: new Uint8Array([0, 1, 255]) }]);
  const directory = store.directoryOf(kind, key);
  await store.close();
  return directory;
}

/** Path of a segment's file. */
export function segmentPath(directory: string, segment: number): string {
  return `${directory}/${segmentFileName(segment)}`;
}

/** Flips one bit of a file. */
export function flipBit(disk: SimulatedDisk, path: string, position: number): void {
  const bytes = disk.bytes(path);
  bytes[position]! ^= 1;
  disk.setBytes(path, bytes);
}

/** Puts bytes behind a file's end, or cuts as many off when `count` is negative. */
export function lengthen(disk: SimulatedDisk, path: string, count: number): void {
  const bytes = disk.bytes(path);
  const changed = new Uint8Array(bytes.length + count).fill(7);
  changed.set(bytes.subarray(0, changed.length));
  disk.setBytes(path, changed);
}

/** Every file and its bytes. */
export function contents(disk: SimulatedDisk): [string, Uint8Array][] {
  return disk.paths().map((path) => [path, disk.bytes(path)]);
}
