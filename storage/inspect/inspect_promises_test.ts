// What a look at a log says, held against what opening it does: for a bit flipped in every byte of
// every segment and for every length that a segment can be cut to.

import { assert, assertEquals } from "@std/assert";
import { SimulatedDisk } from "../disk/simulated_disk.ts";
import { DEFAULT_LOG_SETTINGS } from "../log/settings.ts";
import { CorruptionError } from "../storage_error.ts";
import { LogDump } from "./dump_log.ts";
import { inspectLog } from "./inspect_log.ts";
import { contents, flipBit, lengthen, ROOT, segmentPath, writeTestLog } from "./log_fixture.ts";
import { recordJson } from "./record_text.ts";
import { repairLog } from "./repair_log.ts";

const SEGMENTS = [0, 1, 2, 3];

async function dump(disk: SimulatedDisk, directory: string) {
  const log = new LogDump(disk, directory);
  const lines: string[] = [];
  for await (const record of log) lines.push(recordJson(record));
  return { lines, damage: log.damage };
}

/** Spoils one file of a sound log, looks at it, repairs it, looks again. */
async function hold(spoil: (disk: SimulatedDisk, directory: string) => void, what: string) {
  const disk = new SimulatedDisk();
  const directory = await writeTestLog(disk);
  const written = (await dump(disk, directory)).lines;
  spoil(disk, directory);
  const before = contents(disk);
  const found = await inspectLog(disk, directory, DEFAULT_LOG_SETTINGS);
  const dumped = await dump(disk, directory);
  assertEquals(contents(disk), before, what);
  assertEquals(dumped.lines, written.slice(0, dumped.lines.length), what);
  if (dumped.lines.length < written.length) {
    assert(dumped.damage !== null || found.missing !== null, what);
  }
  const request = {
    disk,
    directory,
    settings: DEFAULT_LOG_SETTINGS,
    nowMicros: () => 1,
    owner: "test",
  };
  let refused: CorruptionError | null = null;
  const result = await repairLog(request).catch((error: unknown) => {
    if (!(error instanceof CorruptionError)) throw error;
    refused = error;
    return null;
  });
  const opens = !found.damage.some(({ refusesToOpen }) => refusesToOpen);
  assertEquals(refused === null, opens, what);
  if (result === null) {
    assertEquals([contents(disk), found.repairs, found.sound], [before, [], false], what);
    return;
  }
  assertEquals(result, { repaired: found.repairs, missing: found.missing }, what);
  const after = await inspectLog(disk, directory, DEFAULT_LOG_SETTINGS);
  assertEquals([after.damage, after.repairs, after.missing], [found.damage, [], null], what);
  if (found.damage.length > 0) return;
  assertEquals(await dump(disk, directory), { lines: dumped.lines, damage: null }, what);
}

for (const segment of SEGMENTS) {
  Deno.test(`a look at segment ${segment} with a flipped bit says what opening does`, async () => {
    const sound = new SimulatedDisk();
    const bytes = sound.fileSize(segmentPath(await writeTestLog(sound), segment))!;
    for (let position = 0; position < bytes; position++) {
      await hold(
        (disk, directory) => flipBit(disk, segmentPath(directory, segment), position),
        `byte ${position}`,
      );
    }
  });

  Deno.test(`a look at segment ${segment} with a lost end says what opening does`, async () => {
    const sound = new SimulatedDisk();
    const bytes = sound.fileSize(segmentPath(await writeTestLog(sound), segment))!;
    assert(bytes > 32);
    for (let lost = 1; lost <= bytes; lost++) {
      await hold(
        (disk, directory) => lengthen(disk, segmentPath(directory, segment), -lost),
        `${lost} bytes lost`,
      );
    }
  });
}

Deno.test("a look at a log whose mark is gone says what opening does", async () => {
  for (const segment of SEGMENTS) {
    for (const lost of [1, 30, 60, 100, 1000]) {
      await hold((disk, directory) => {
        disk.unlink(`${directory}/durable.mark`);
        const path = segmentPath(directory, segment);
        lengthen(disk, path, -Math.min(lost, disk.fileSize(path)!));
      }, `segment ${segment} of ${ROOT}, ${lost} bytes lost`);
    }
  }
});
