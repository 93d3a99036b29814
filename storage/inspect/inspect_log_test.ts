// What is found in a log's directory, on a simulated disk: segments, planned repairs, damage by
// place; that looking changes nothing.

import { assertEquals } from "@std/assert";
import { SimulatedDisk } from "../disk/simulated_disk.ts";
import { DEFAULT_LOG_SETTINGS } from "../log/settings.ts";
import { indexFileName } from "../recovery/directory_view.ts";
import { LogDump } from "./dump_log.ts";
import type { DumpRange } from "./dump_log.ts";
import { inspectLog } from "./inspect_log.ts";
import type { LogInspection } from "./inspect_log.ts";
import { contents, flipBit, lengthen, segmentPath, writeTestLog } from "./log_fixture.ts";

async function inspect(disk: SimulatedDisk, directory: string): Promise<LogInspection> {
  const before = contents(disk);
  const { operations } = disk;
  const inspection = await inspectLog(disk, directory, DEFAULT_LOG_SETTINGS);
  assertEquals(contents(disk), before);
  assertEquals(disk.operations, operations);
  return inspection;
}

async function dump(disk: SimulatedDisk, directory: string, range: DumpRange = {}) {
  const { operations } = disk;
  const log = new LogDump(disk, directory, range);
  const offsets: number[] = [];
  for await (const { offset } of log) offsets.push(offset);
  assertEquals(disk.operations, operations);
  return { offsets, damage: log.damage };
}

const states = ({ segments }: LogInspection) => segments.map(({ state }) => state);
const upTo = (from: number, until: number) =>
  Array.from({ length: until - from }, (_, at) => from + at);

Deno.test("a sound log: its segments meet, and nothing is to be done", async () => {
  const disk = new SimulatedDisk();
  const directory = await writeTestLog(disk);
  const found = await inspect(disk, directory);
  assertEquals(
    found.segments.map(({ segment, base, next, version, state }) => [
      segment,
      base,
      next,
      version,
      state,
    ]),
    [[0, 0, 3, 3, "sound"], [1, 3, 6, 3, "sound"], [2, 6, 9, 3, "sound"], [3, 9, 10, 3, "sound"]],
  );
  for (const { segment, bytes } of found.segments) {
    assertEquals(bytes, disk.fileSize(segmentPath(directory, segment)));
  }
  assertEquals([found.sound, found.repairs, found.damage], [true, [], []]);
});

Deno.test("a torn tail is named with the bytes that opening would cut", async () => {
  const disk = new SimulatedDisk();
  const directory = await writeTestLog(disk);
  const path = segmentPath(directory, 3);
  const position = disk.fileSize(path)!;
  lengthen(disk, path, 11);
  const found = await inspect(disk, directory);
  assertEquals(states(found), ["sound", "sound", "sound", "torn"]);
  assertEquals(found.sound, false);
  assertEquals(found.damage, []);
  assertEquals(found.repairs, [
    { action: "cut", segment: 3, position, discardedBytes: 11, cause: "Truncated" },
  ]);
});

Deno.test("records that the mark vouches for and that are gone are missed", async () => {
  const disk = new SimulatedDisk();
  const directory = await writeTestLog(disk);
  lengthen(disk, segmentPath(directory, 3), -31);
  let found = await inspect(disk, directory);
  assertEquals([found.sound, found.repairs, found.damage], [false, [], []]);
  assertEquals(found.missing, { segment: 3, position: 32, bytes: 31 });
  disk.unlink(segmentPath(directory, 3));
  found = await inspect(disk, directory);
  assertEquals(found.missing, { segment: 3, position: 0, bytes: 63 });
});

Deno.test("files of a lost roll would be removed; a log without an index is sound", async () => {
  const disk = new SimulatedDisk();
  const directory = await writeTestLog(disk);
  disk.setBytes(segmentPath(directory, 4), new Uint8Array(5));
  disk.unlink(`${directory}/${indexFileName(1)}`);
  let found = await inspect(disk, directory);
  assertEquals(states(found), ["sound", "sound", "sound", "sound", "abandoned"]);
  assertEquals(
    found.repairs.map(({ action, segment, discardedBytes }) => [action, segment, discardedBytes]),
    [["remove", 4, 5], ["index", 1, 0]],
  );
  assertEquals([found.sound, found.damage], [false, []]);
  disk.unlink(segmentPath(directory, 4));
  found = await inspect(disk, directory);
  assertEquals([found.sound, found.repairs.length], [true, 1]);
});

Deno.test("a flipped bit is named with segment, byte and kind", async () => {
  const disk = new SimulatedDisk();
  const directory = await writeTestLog(disk);
  flipBit(disk, segmentPath(directory, 1), 32 + 28);
  const found = await inspect(disk, directory);
  assertEquals(states(found), ["sound", "damaged", "sound", "sound"]);
  assertEquals(found.repairs, []);
  assertEquals(found.damage, [
    { segment: 1, position: 32, kind: "RecordChecksum", detail: "", refusesToOpen: true },
  ]);
});

Deno.test("damage before the last index entry is found, though opening passes it by", async () => {
  const disk = new SimulatedDisk();
  const directory = await writeTestLog(disk, "/dense", "streams", { indexSpacingBytes: 1 });
  flipBit(disk, segmentPath(directory, 0), 32 + 28);
  const found = await inspect(disk, directory);
  assertEquals(found.damage, [
    { segment: 0, position: 32, kind: "RecordChecksum", detail: "", refusesToOpen: false },
  ]);
  assertEquals([found.sound, found.repairs], [false, []]);
});

Deno.test("a missing segment and a lost header are damage", async () => {
  const disk = new SimulatedDisk();
  const directory = await writeTestLog(disk);
  flipBit(disk, segmentPath(directory, 0), 0);
  disk.unlink(segmentPath(directory, 2));
  const found = await inspect(disk, directory);
  assertEquals(found.segments.map(({ segment, base }) => [segment, base]), [
    [0, null],
    [1, 3],
    [3, 9],
  ]);
  assertEquals(
    found.damage.map(({ segment, position, kind, detail }) => [segment, position, kind, detail]),
    [
      [0, 0, "SegmentMagic", ""],
      [3, 0, "OffsetOutOfOrder", "begins at offset 9, expected 6"],
    ],
  );
  assertEquals(found.damage.map(({ refusesToOpen }) => refusesToOpen), [true, false]);
});

Deno.test("a dump is of the range that was asked for", async () => {
  const disk = new SimulatedDisk();
  const directory = await writeTestLog(disk);
  for (let from = 0; from <= 11; from++) {
    for (let until = from; until <= 11; until++) {
      const end = Math.min(10, until);
      const expected = { offsets: upTo(Math.min(from, end), end), damage: null };
      assertEquals(await dump(disk, directory, { from, until }), expected);
    }
  }
  assertEquals((await dump(disk, directory, { from: 2, limit: 5 })).offsets, upTo(2, 7));
  assertEquals((await dump(disk, directory, { limit: 0 })).offsets, []);
});

Deno.test("a dump goes up to the damage, says where it is, and can begin behind it", async () => {
  const disk = new SimulatedDisk();
  const directory = await writeTestLog(disk);
  flipBit(disk, segmentPath(directory, 1), 32 + 28);
  const damage = { segment: 1, position: 32, kind: "RecordChecksum" as const, detail: "" };
  assertEquals(await dump(disk, directory), { offsets: upTo(0, 3), damage });
  assertEquals(await dump(disk, directory, { until: 3 }), { offsets: upTo(0, 3), damage: null });
  assertEquals(await dump(disk, directory, { limit: 3 }), { offsets: upTo(0, 3), damage: null });
  assertEquals(await dump(disk, directory, { from: 6 }), { offsets: upTo(6, 10), damage: null });
});

Deno.test("a dump stops at a torn tail, a blank file and a gap", async () => {
  const disk = new SimulatedDisk();
  const directory = await writeTestLog(disk);
  lengthen(disk, segmentPath(directory, 3), -1);
  assertEquals((await dump(disk, directory)).damage, {
    segment: 3,
    position: 32,
    kind: "Truncated",
    detail: "",
  });
  disk.setBytes(segmentPath(directory, 2), new Uint8Array(0));
  const blank = { segment: 2, position: 0, kind: "Truncated" as const, detail: "" };
  assertEquals(await dump(disk, directory), { offsets: upTo(0, 6), damage: blank });
  disk.unlink(segmentPath(directory, 2));
  const { offsets, damage } = await dump(disk, directory);
  assertEquals([offsets, damage?.segment, damage?.kind], [upTo(0, 6), 3, "OffsetOutOfOrder"]);
});

Deno.test("a blank file that hides nothing does not end a dump", async () => {
  const disk = new SimulatedDisk();
  const directory = await writeTestLog(disk);
  disk.rename(segmentPath(directory, 3), segmentPath(directory, 5));
  disk.setBytes(segmentPath(directory, 4), new Uint8Array(3));
  assertEquals(await dump(disk, directory), { offsets: upTo(0, 10), damage: null });
});
