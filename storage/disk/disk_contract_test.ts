// What every disk does, held to by the real one and the simulated one alike.

import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { temporaryFolder } from "../../tests/support/temporary_folder.ts";
import { StorageError } from "../storage_error.ts";
import type { Disk } from "./disk.ts";
import { diskFailure, RealDisk } from "./real_disk.ts";
import { SimulatedDisk } from "./simulated_disk.ts";

const bytes = (text: string) => new TextEncoder().encode(text);
const failsWith = (code: string, call: () => unknown) =>
  assertEquals(assertThrows(call, StorageError).code, code);

const DISKS: Record<string, () => Disk> = {
  "the real disk": () => new RealDisk(),
  "the simulated disk": () => new SimulatedDisk(),
};

for (const [name, make] of Object.entries(DISKS)) {
  const contract = (what: string, body: (disk: Disk, directory: string) => Promise<void>) =>
    Deno.test(`${name}: ${what}`, async () => {
      await using folder = await temporaryFolder();
      const disk = make();
      const directory = `${folder.path}/some/where`;
      await disk.makeDirectory(directory);
      await body(disk, directory);
    });

  contract("writes and reads at any position", async (disk, directory) => {
    const file = disk.open(`${directory}/file`, "create");
    assertEquals(file.write(bytes("-abc-"), 1, 4, 2), 3);
    assertEquals(file.size(), 5);
    const buffer = new Uint8Array(10);
    assertEquals(await file.read(buffer, 1), 4);
    assertEquals(buffer.subarray(0, 4), new Uint8Array([0, 97, 98, 99]));
    assertEquals(file.readSync(buffer, 4), 1);
    assertEquals(await file.read(buffer, 5), 0);
    assertEquals(await file.read(buffer, 500), 0);
    file.truncate(3);
    assertEquals(file.size(), 3);
    await file.syncData();
    await file.sync();
    file.close();
    file.close();
    const again = disk.open(`${directory}/file`, "write");
    again.write(bytes("x"), 0, 1, 0);
    assertEquals(again.readSync(buffer, 0), 3);
    assertEquals(buffer[0], 120);
    again.close();
  });

  contract("names: list, size, rename, unlink", async (disk, directory) => {
    assertEquals(disk.list(`${directory}/none`), null);
    assertEquals(disk.list(directory), []);
    for (const file of ["b", "a"]) {
      const opened = disk.open(`${directory}/${file}`, "create");
      opened.write(bytes(file.repeat(3)), 0, 3, 0);
      opened.close();
    }
    await disk.makeDirectory(`${directory}/c`);
    assertEquals(disk.list(directory), ["a", "b", "c"]);
    assertEquals(disk.list(`${directory}/a`), null);
    assertEquals(disk.fileSize(`${directory}/a`), 3);
    assertEquals(disk.fileSize(`${directory}/c`), null);
    assertEquals(disk.fileSize(`${directory}/z`), null);
    disk.rename(`${directory}/a`, `${directory}/b`);
    await disk.syncDirectory(directory);
    const file = disk.open(`${directory}/b`, "read");
    const buffer = new Uint8Array(3);
    await file.read(buffer, 0);
    file.close();
    assertEquals(buffer, bytes("aaa"));
    disk.unlink(`${directory}/b`);
    disk.removeDirectory(`${directory}/c`);
    assertEquals(disk.list(directory), []);
  });

  contract("what is not there, and what is there already, is `io`", async (disk, directory) => {
    const path = `${directory}/file`;
    failsWith("io", () => disk.open(path, "read"));
    failsWith("io", () => disk.open(path, "write"));
    failsWith("io", () => disk.open(`${directory}/none/file`, "create"));
    failsWith("io", () => disk.unlink(path));
    failsWith("io", () => disk.rename(path, `${path}2`));
    const file = disk.open(path, "create");
    failsWith("io", () => disk.open(path, "create"));
    failsWith("io", () => disk.removeDirectory(directory));
    file.close();
    await assertRejects(async () => await file.read(new Uint8Array(1), 0), StorageError);
    failsWith("io", () => file.write(bytes("a"), 0, 1, 0));
  });

  contract("a lock has one holder at a time, who is named", (disk, directory) => {
    const path = `${directory}/LOCK`;
    const lock = disk.lock(path, "pid 1")!;
    assertEquals(disk.lock(path, "pid 2"), null);
    assertEquals(disk.holder(path), "pid 1");
    lock.release();
    const second = disk.lock(path, "p2")!;
    assertEquals(disk.holder(path), "p2");
    second.release();
    return Promise.resolve();
  });
}

Deno.test("the real disk tells no room from other failures", () => {
  const codeOf = (code: string) => {
    return diskFailure("writing", "/d/f", Object.assign(new Error("failed"), { code })).code;
  };
  assertEquals(["ENOSPC", "EDQUOT", "EIO", "EACCES"].map(codeOf), ["full", "full", "io", "io"]);
  assertEquals(diskFailure("writing", "/d/f", "text").message, "writing /d/f: text");
});

Deno.test("the simulated disk keeps what is synced apart from what is written", async () => {
  const disk = new SimulatedDisk();
  await disk.makeDirectory("/d");
  const file = disk.open("/d/f", "create");
  file.write(bytes("abcdefgh"), 0, 8, 0);
  assertEquals(disk.afterCrash({ names: "lost", data: "kept" }).paths(), []);
  await disk.syncDirectory("/d");
  const left = (data: "lost" | "kept" | "torn" | "zeroed" | "sized") =>
    new TextDecoder().decode(disk.afterCrash({ names: "lost", data }).bytes("/d/f"));
  assertEquals(["lost", "kept", "torn"].map((shape) => left(shape as "kept")), [
    "",
    "abcdefgh",
    "abcd",
  ]);
  assertEquals(left("sized"), "\0".repeat(8));
  await file.syncData();
  file.write(bytes("x".repeat(1000)), 0, 1000, 8);
  assertEquals(left("lost"), "abcdefgh");
  assertEquals(left("zeroed"), "abcdefgh" + "x".repeat(504) + "\0".repeat(496));
  file.truncate(2);
  assertEquals([left("lost"), left("kept")], ["abcdefgh", "ab"]);
});

Deno.test("the simulated disk: a sync covers what was written before it began", async () => {
  const disk = new SimulatedDisk();
  const file = disk.open("/f", "create");
  await disk.syncDirectory("/");
  let release = () => {};
  disk.beforeSync = () => new Promise((resolve) => release = resolve);
  file.write(bytes("before"), 0, 6, 0);
  const sync = file.sync();
  file.write(bytes("after"), 0, 5, 6);
  release();
  await sync;
  const left = disk.afterCrash({ names: "lost", data: "lost" }).bytes("/f");
  assertEquals(new TextDecoder().decode(left), "before");
});

Deno.test("the simulated disk stops for good where it was told to", async () => {
  const disk = new SimulatedDisk();
  disk.crashAfter(2);
  const file = disk.open("/f", "create");
  file.write(bytes("a"), 0, 1, 0);
  await assertRejects(() => file.sync(), Error, "before a sync");
  assertThrows(() => file.write(bytes("a"), 0, 1, 0), Error, "before a write");
  assert(disk.crashed);
});
