// The command `felix log`, run in this process: what it prints, its exit codes, and that only a
// repair that was asked for changes a byte. Damage is made on a simulated disk; locks are real.

import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { temporaryFolder } from "../../tests/support/temporary_folder.ts";
import type { Disk } from "../disk/disk.ts";
import { RealDisk } from "../disk/real_disk.ts";
import { SimulatedDisk } from "../disk/simulated_disk.ts";
import { LogStore } from "../store.ts";
import {
  contents,
  flipBit,
  lengthen,
  ROOT,
  segmentPath,
  textRecord,
  writeTestLog,
} from "./log_fixture.ts";
import { runCommand } from "./run_command.ts";

async function run(disk: Disk, ...args: string[]) {
  let out = "";
  let err = "";
  const code = await runCommand({
    disk,
    nowMicros: () => 1,
    here: "/",
    owner: "test",
    out: (text) => out += text,
    err: (text) => err += text,
  }, ["log", ...args]);
  return { code, out, err, lines: out.trimEnd().split("\n") };
}

async function tornLog() {
  const disk = new SimulatedDisk();
  const directory = await writeTestLog(disk);
  const bytes = disk.fileSize(segmentPath(directory, 3))!;
  lengthen(disk, segmentPath(directory, 3), 11);
  return { disk, directory, bytes };
}

Deno.test("dump prints a line for each record", async () => {
  const disk = new SimulatedDisk();
  const directory = await writeTestLog(disk);
  const { code, lines, err } = await run(disk, "dump", directory, "--from", "5");
  assertEquals([code, err], [0, ""]);
  assertEquals(lines, [
    "5  2026-03-01T09:00:00.009000Z  plain  14 B  placed order 5",
    "6  2026-03-01T09:00:00.010500Z  plain  14 B  placed order 6",
    "7  2026-03-01T09:00:00.010500Z  batch-start producer=77 sequence=3 length=2  1 B  a",
    "8  2026-03-01T09:00:00.010500Z  batch-continuation  1 B  b",
    "9  2026-03-01T09:00:00.010500Z  plain  3 B  0001ff",
  ]);
  const relative = await run(disk, "dump", directory.slice(1), "--until=2", "--limit=1");
  assertEquals(relative.lines.map((line) => line.split(" ")[0]), ["0"]);
});

Deno.test("dump --json prints an object for each record, and the damage last", async () => {
  const disk = new SimulatedDisk();
  const directory = await writeTestLog(disk);
  const sound = await run(disk, "dump", directory, "--json", "--from=6");
  const time = "2026-03-01T09:00:00.010500Z";
  const timestampMicros = Date.UTC(2026, 2, 1, 9) * 1000 + 10_500;
  const common = { time, timestampMicros };
  assertEquals(sound.lines.map((line) => JSON.parse(line)), [
    { offset: 6, ...common, kind: "plain", bytes: 14, text: "placed order 6" },
    {
      offset: 7,
      ...common,
      kind: "batch-start",
      producerId: "77",
      sequence: "3",
      batchLength: 2,
      bytes: 1,
      text: "a",
    },
    { offset: 8, ...common, kind: "batch-continuation", bytes: 1, text: "b" },
    { offset: 9, ...common, kind: "plain", bytes: 3, hex: "0001ff" },
  ]);
  flipBit(disk, segmentPath(directory, 1), 70);
  const damaged = await run(disk, "dump", directory, "--json");
  assertEquals([damaged.code, damaged.lines.length], [1, 4]);
  const damage = { segment: 1, position: 32, kind: "RecordChecksum", detail: "" };
  assertEquals(JSON.parse(damaged.lines.at(-1)!), { damage });
  const text = await run(disk, "dump", directory);
  assertEquals([text.code, text.lines.length], [1, 3]);
  assertStringIncludes(text.err, "segment 1, byte 32: RecordChecksum");
});

Deno.test("verify prints a table and what opening would cut, and changes nothing", async () => {
  const { disk, directory, bytes } = await tornLog();
  const before = contents(disk);
  const { code, lines } = await run(disk, "verify", directory);
  assertEquals(code, 1);
  assertEquals(lines, [
    directory,
    "  segment  base  next  bytes  version  state",
    "        0     0     3    158        3  sound",
    "        1     3     6    158        3  sound",
    "        2     6     9    152        3  sound",
    `        3     9    10     ${bytes + 11}        3  torn`,
    `  repair: segment 3, byte ${bytes}: Truncated; 11 bytes would be cut`,
    "  whole after the repairs above, which opening the log makes",
  ]);
  const dryRun = await run(disk, "repair", directory, "--dry-run");
  assertEquals([dryRun.code, dryRun.lines], [1, lines]);
  assertEquals(contents(disk), before);
});

Deno.test("repair --yes does what opening does, and then the log is sound", async () => {
  const { disk, directory, bytes } = await tornLog();
  const { code, out } = await run(disk, "repair", directory, "--yes");
  assertEquals(code, 0);
  assertStringIncludes(out, `repaired: segment 3, byte ${bytes}: Truncated; 11 bytes were cut`);
  assertEquals(disk.fileSize(segmentPath(directory, 3)), bytes);
  const before = contents(disk);
  const again = await run(disk, "verify", directory, "--json");
  assertEquals(again.code, 0);
  const { sound, repairs, damage } = JSON.parse(again.out);
  assertEquals([sound, repairs, damage], [true, [], []]);
  const twice = await run(disk, "repair", directory, "--yes", "--json");
  assertEquals([twice.code, JSON.parse(twice.out).repaired], [0, []]);
  assertEquals(contents(disk), before);
});

Deno.test("repair of a log that does not open names the damage and changes nothing", async () => {
  const disk = new SimulatedDisk();
  const directory = await writeTestLog(disk);
  flipBit(disk, segmentPath(directory, 3), 40);
  await run(disk, "verify", directory);
  disk.lock(`${ROOT}/LOCK`, "")?.release();
  const before = contents(disk);
  const { code, out, err } = await run(disk, "repair", directory, "--yes");
  assertEquals(code, 1);
  assertStringIncludes(err, "nothing was changed");
  const damage = "damage: segment 3, byte 32: RecordHeaderChecksum; the log does not open";
  assertStringIncludes(out, damage);
  assertEquals(contents(disk), before);
});

Deno.test("a repair never runs beside the process that has the root", async () => {
  await using folder = await temporaryFolder();
  const disk = new RealDisk();
  for (const kind of ["streams", "caches"] as const) {
    const root = `${folder.path}/${kind}-root`;
    const directory = await writeTestLog(disk, root, kind);
    const path = segmentPath(directory, 3);
    await Deno.writeFile(path, new Uint8Array(9).fill(7), { append: true });
    const bytes = await Deno.readFile(path);
    const store = await LogStore.open({ disk, root, nowMicros: () => 1, owner: "broker 41" });
    const { code, err } = await run(disk, "repair", directory, "--yes");
    assertEquals(code, 1);
    assertEquals(
      err,
      `felix: ${root}/LOCK is held by another process (broker 41); stop it first\n`,
    );
    assertEquals(await Deno.readFile(path), bytes);
    assertEquals((await run(disk, "repair", directory, "--dry-run")).code, 1);
    await store.close();
    assertEquals((await run(disk, "repair", directory, "--yes")).code, 0);
    assertEquals((await run(disk, "verify", directory)).code, 0);
    assertEquals((await Deno.readFile(path)).length, bytes.length - 9);
  }
});

Deno.test("verify of a root looks at every log below it", async () => {
  await using folder = await temporaryFolder();
  const disk = new RealDisk();
  const kinds = ["streams", "caches", "counters", "groups", "dead-letters"] as const;
  const directories: string[] = [];
  for (const kind of kinds) directories.push(await writeTestLog(disk, folder.path, kind));
  const sound = await run(disk, "verify", folder.path);
  assertEquals([sound.code, sound.lines.at(-1)], [0, "logs: 5, not sound: 0"]);
  assertEquals(sound.lines.filter((line) => line.startsWith("/")), directories);
  await Deno.writeFile(segmentPath(directories[3]!, 3), new Uint8Array(9), { append: true });
  const { code, out } = await run(disk, "verify", folder.path, "--json");
  const { root, sound: allSound, logs } = JSON.parse(out);
  assertEquals([code, root, allSound], [1, folder.path, false]);
  assertEquals(
    logs.map((log: { directory: string; sound: boolean }) => [log.directory, log.sound]),
    directories.map((directory, at) => [directory, at !== 3]),
  );
});

Deno.test("a directory that is no log is refused, and not made", async () => {
  const disk = new SimulatedDisk();
  for (const verb of [["dump"], ["verify"], ["repair", "--yes"], ["repair", "--dry-run"]]) {
    const { code, out, err } = await run(disk, ...verb, "/nowhere");
    assertEquals([code, out], [1, ""]);
    assertStringIncludes(err, "/nowhere");
    const json = await run(disk, ...verb, "/nowhere", "--json");
    assertEquals([json.code, JSON.parse(json.out).error.code], [1, "io"]);
  }
  assertEquals(disk.operations, 0);
  await writeTestLog(disk);
  const { code, err } = await run(disk, "dump", ROOT);
  assertEquals(code, 1);
  assertStringIncludes(err, "name one of the logs below it");
});

Deno.test("what is not understood is refused with the usage", async () => {
  const disk = new SimulatedDisk();
  const directory = await writeTestLog(disk);
  const { operations } = disk;
  const wrong = [
    [],
    ["list", directory],
    ["dump"],
    ["dump", directory, "other"],
    ["dump", directory, "--from", "-1"],
    ["dump", directory, "--from=1.5"],
    ["dump", directory, "--limit", "many"],
    ["dump", directory, "--yes"],
    ["verify", directory, "--from", "1"],
    ["verify", directory, "--loud"],
    ["repair", directory],
    ["repair", directory, "--yes", "--dry-run"],
  ];
  for (const args of wrong) {
    const { code, out, err } = await run(disk, ...args);
    assertEquals([code, out], [2, ""], args.join(" "));
    assertMatch(err, /^felix: [^\n]+\n(?:[^\n]*\n)*?usage: felix log dump DIR/, args.join(" "));
  }
  assertEquals(disk.operations, operations);
  const help = await run(disk, "--help");
  assertEquals([help.code, help.err], [0, ""]);
});

Deno.test("payloads of every sort take one line each, cut at 80 characters", async () => {
  const disk = new SimulatedDisk();
  const store = await LogStore.open({ disk, root: ROOT, nowMicros: () => 1, owner: "test" });
  const key = { tenant: "t", namespace: "n", name: "s", shard: 0 };
  const log = await store.openLog("streams", key);
  const bytes = new Uint8Array(60).fill(0xAB);
  await log.append([
    textRecord("é".repeat(80)),
    textRecord("é".repeat(81)),
    textRecord("\u{1F600}".repeat(1000)),
    textRecord("two\nlines"),
    textRecord("\u001b[31m"),
    { payload: bytes },
    textRecord(""),
  ]);
  await store.close();
  const { lines } = await run(disk, "dump", store.directoryOf("streams", key));
  assertEquals(lines.map((line) => line.split("  ").slice(3).join("  ")), [
    `160 B  ${"é".repeat(80)}`,
    `162 B  ${"é".repeat(79)}…`,
    `4000 B  ${"\u{1F600}".repeat(79)}…`,
    "9 B  74776f0a6c696e6573",
    "5 B  1b5b33316d",
    `60 B  ${"ab".repeat(39)}a…`,
    "0 B",
  ]);
  const json = await run(disk, "dump", store.directoryOf("streams", key), "--json");
  const payloads = json.lines.map((line) => JSON.parse(line));
  assertEquals(payloads[3].text, "two\nlines");
  assertEquals(payloads[4].hex, "1b5b33316d");
  assertEquals(payloads[5].hex, "ab".repeat(60));
  assert(!("hex" in payloads[6]) && payloads[6].text === "");
});
