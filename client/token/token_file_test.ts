// Tokens from a file that is rotated (spec/client.md §14). The clock is the test's own; the files
// lie in a directory that goes away with the test.

import { assertEquals, assertRejects } from "@std/assert";
import { join } from "@std/path";
import { tokenFile } from "./token_file.ts";
import { staticToken } from "./token_provider.ts";

Deno.test("the file is read again in time and after a refusal", async () => {
  const directory = await Deno.makeTempDir();
  try {
    const path = join(directory, "token");
    let now = 0;
    const provider = tokenFile(path, { rereadMs: 1000, now: () => now });
    await assertRejects(() => provider.token());
    await Deno.writeTextFile(path, "one\n");
    assertEquals(await provider.token(), "one");
    await Deno.writeTextFile(path, "two\n");
    assertEquals(await provider.token(), "one");
    now = 1000;
    assertEquals(await provider.token(), "two");
    await Deno.writeTextFile(path, "three");
    provider.invalidate!("one");
    assertEquals(await provider.token(), "two");
    provider.invalidate!("two");
    assertEquals(await provider.token(), "three");
    await Deno.remove(path);
    now = 5000;
    assertEquals(await provider.token(), "three", "a failed read keeps the last token");
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
});

Deno.test("a static token stays", async () => {
  assertEquals(await staticToken("t").token(), "t");
});
