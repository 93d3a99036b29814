// What is printed about a row, and the arithmetic between trials and ratios.

import { assertEquals, assertStringIncludes } from "@std/assert";
import { compare, type RowResult, summarize } from "./measure.ts";
import { formatRate, markdownPage, tableRow } from "./report.ts";

const core = (server: number) => ({ server, client: 1 });
const trial = (rate: number, p50_ms: number, server: number) => ({
  rate,
  p50_ms,
  p99_ms: 2 * p50_ms,
  core_us_per_record: core(server),
});

const ours = summarize([trial(100, 3, 5), trial(300, 1, 9), trial(200, 2, 7)]);
const ceiling = summarize([trial(400, 1, 3.5)]);
const result: RowResult = {
  row: "acked-1-256",
  unit: "records/s",
  ...ours,
  contender: "felix",
  beside: { raw: ceiling, nats: summarize([], "not installed: not found") },
  ratios: { raw: compare(ours, ceiling), nats: compare(ours, summarize([], "x")) },
};

Deno.test("figures are medians over trials with the spread of the rate", () => {
  assertEquals([ours.rate, ours.p50_ms, ours.p99_ms, ours.trials], [200, 2, 4, 3]);
  assertEquals(ours.core_us_per_record, { server: 7, client: 1 });
  assertEquals(ours.spread, 3);
});

Deno.test("one void trial voids the figures", () => {
  const figures = summarize([trial(100, 3, 5)], "lost 3 of 10");
  assertEquals([figures.rate, figures.void], [null, "lost 3 of 10"]);
});

Deno.test("ratios are ours over theirs and absent where either is", () => {
  assertEquals(result.ratios.raw, { rate: 0.5, p50: 2, core_us_server: 2 });
  assertEquals(result.ratios.nats, { rate: null, p50: null, core_us_server: null });
});

Deno.test("the table says why a contender has no figures", () => {
  const text = tableRow(result);
  assertStringIncludes(text, "acked-1-256");
  assertStringIncludes(text, "0.50x");
  assertStringIncludes(text, "not installed: not found");
  assertEquals(text.split("\n").length, 3);
});

Deno.test("the page names the machine, the versions and every contender", () => {
  const machine = {
    cpu: "A processor",
    cores: 2,
    memoryGiB: 24,
    system: "linux 6.1 x86_64",
    deno: "2.9.6",
    versions: { NATS: "2.15.2" },
  };
  const page = markdownPage([result], machine, { trials: 3, date: "2026-12-01" });
  assertStringIncludes(page, "A processor, 2 cores, 24 GiB");
  assertStringIncludes(page, "Deno 2.9.6, NATS 2.15.2");
  assertStringIncludes(page, "| `acked-1-256` (records/s) | felix | 200 |");
});

Deno.test("rates have thousands separators and memory is in KiB", () => {
  assertEquals(formatRate(1234567.4, "records/s"), "1,234,567");
  assertEquals(formatRate(2048, "bytes"), "2.0 KiB");
  assertEquals(formatRate(1_048_576, "bytes"), "1024 KiB");
  assertEquals(formatRate(null, "bytes"), "-");
});
