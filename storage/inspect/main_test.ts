// The command as a process of its own: arguments, exit codes, where relative paths begin, and which
// output goes where.

import { assertEquals, assertStringIncludes } from "@std/assert";
import { temporaryFolder } from "../../tests/support/temporary_folder.ts";
import { RealDisk } from "../disk/real_disk.ts";
import { writeTestLog } from "./log_fixture.ts";

async function felix(here: string, ...args: string[]) {
  const main = new URL("./main.ts", import.meta.url).href;
  const permissions = ["--allow-read", "--allow-write", "--allow-env"];
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "--quiet", ...permissions, main, ...args],
    env: { INIT_CWD: here, NO_COLOR: "1" },
  }).output();
  const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
  return { code, out: text(stdout), err: text(stderr) };
}

Deno.test("felix log, as a process", async () => {
  await using folder = await temporaryFolder();
  const directory = await writeTestLog(new RealDisk(), `${folder.path}/root`);
  const dumped = await felix(`${folder.path}/root`, "log", "dump", directory, "--json");
  assertEquals([dumped.code, dumped.err], [0, ""]);
  assertEquals(dumped.out.trimEnd().split("\n").map((line) => JSON.parse(line).offset), [
    ...Array(10).keys(),
  ]);
  const verified = await felix(folder.path, "log", "verify", "root");
  assertEquals([verified.code, verified.err], [0, ""]);
  assertStringIncludes(verified.out, "logs: 1, not sound: 0\n");
  const missing = await felix(folder.path, "log", "verify", "elsewhere");
  assertEquals([missing.code, missing.out], [1, ""]);
  const unknown = await felix(folder.path, "dump", directory);
  assertEquals([unknown.code, unknown.out], [2, ""]);
  assertStringIncludes(unknown.err, "the first argument is `log`");
});
