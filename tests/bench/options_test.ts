// The command line of the benchmark and the names of its rows.

import { assert, assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import { parseOptions, UsageError } from "./options.ts";
import { FULL, isPeer, rows } from "./rows.ts";

const names = (...args: string[]): string[] => parseOptions(args).rows.map(({ name }) => name);

Deno.test("every row is there once", () => {
  const all = rows(FULL).map(({ name }) => name);
  assertEquals(new Set(all).size, all.length);
  const expected = [
    "acked-1-256",
    "acked-pipelined-256",
    "cache-get-1",
    "cache-get-256-32-spread",
    "cache-get-32",
    "cache-miss-0-32",
    "cache-put-256-32-spread",
    "durable-1-256",
    "durable-256-256",
    "durable-256x64",
    "durable-4096x64",
    "idle-connection",
    "idle-subscription",
    "ingest-256x64",
    "ingest-4096x64",
    "publish-1",
    "publish-32",
    "recovery",
    "replay-256x64",
    "replay-4096x64",
  ];
  for (const fanout of [1, 10]) {
    for (const payload of [0, 256, 1024, 4096]) {
      expected.push(`fanout-${fanout}-${payload}x1`, `fanout-${fanout}-${payload}x64`);
    }
  }
  for (const payload of [0, 256, 4096]) {
    expected.push(`cache-put-${payload}-32`, `cache-get-${payload}-32`);
  }
  assertEquals(all.toSorted(), expected.toSorted());
});

Deno.test("throughput rows move more than the send window, in whole batches", () => {
  for (const { name, cell } of rows(FULL)) {
    if (cell.kind !== "ingest" && cell.kind !== "fanout") continue;
    assertEquals(cell.records % cell.batch, 0, name);
    if (cell.payloadBytes > 0) assert(cell.records * cell.payloadBytes >= 256 * 2 ** 20, name);
  }
});

Deno.test("rows are picked by exact name first, else by how names begin", () => {
  assertEquals(names("cache-get-1"), ["cache-get-1"]);
  assertEquals(names("fanout-10-256x"), ["fanout-10-256x1", "fanout-10-256x64"]);
  assertEquals(names("cache-get-256"), ["cache-get-256-32", "cache-get-256-32-spread"]);
  assertEquals(names().length, rows(FULL).length);
});

Deno.test("options are read, and alone leaves out what may not be installed", () => {
  const options = parseOptions(["--smoke", "--json", "--alone", "--write", "out.md"]);
  assertEquals([options.smoke, options.json, options.trials], [true, true, 1]);
  assertEquals(options.write, "out.md");
  assert(options.rows.every((row) => !row.beside.some(isPeer) && row.cell.kind !== "python"));
  assertEquals(parseOptions(["--trials", "5"]).trials, 5);
});

Deno.test("what is not understood is refused with the rows or the usage", () => {
  for (const args of [["nonsense"], ["--nonsense"], ["--trials", "0"], ["--write"]]) {
    const error = assertThrows(() => parseOptions(args), UsageError);
    assertStringIncludes(String(error), args[0] === "nonsense" ? "ingest-256x64" : "deno task");
  }
});
