// The README's tour does what it says: its TypeScript and its Python run as printed, against a
// development broker, and print what it promises.

import { assertEquals, assertExists } from "@std/assert";
import { ensurePython } from "../interop/venv.ts";
import { REPOSITORY_ROOT } from "../support/repository.ts";
import { DevBroker } from "../support/servers.ts";

const PROMISED = "hello\nonline\n";

/** The first code block of a language, pointed at this broker's `dev.json`. */
async function snippet(language: string, broker: DevBroker): Promise<string> {
  const readme = await Deno.readTextFile(new URL("README.md", REPOSITORY_ROOT));
  const block = new RegExp("```" + language + "\n([\\s\\S]*?)```").exec(readme);
  assertExists(block, `the README has no ${language} block`);
  return block[1]!.replaceAll(".felix/dev.json", `${broker.state}/dev.json`);
}

async function run(command: string, args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await new Deno.Command(command, {
    args: [...args],
    cwd: REPOSITORY_ROOT,
  }).output();
  assertEquals(code, 0, new TextDecoder().decode(stderr));
  return new TextDecoder().decode(stdout);
}

Deno.test({
  name: "the README's tour works as printed",
  sanitizeOps: true,
  sanitizeResources: true,
  fn: async (test) => {
    await using broker = await DevBroker.start();
    await test.step("TypeScript", async () => {
      const file = `${broker.state}/tour.ts`;
      await Deno.writeTextFile(file, await snippet("ts", broker));
      const config = new URL("deno.json", REPOSITORY_ROOT).pathname;
      const args = ["run", "--quiet", "--config", config, "-A", file];
      assertEquals(await run(Deno.execPath(), args), PROMISED);
    });
    await test.step("Python", async () => {
      const file = `${broker.state}/tour.py`;
      await Deno.writeTextFile(file, await snippet("python", broker));
      assertEquals(await run(await ensurePython(), [file]), PROMISED);
    });
  },
});
