// The arithmetic of the benchmark: percentile index, median, spread and the bounded sample set.

import { assertEquals } from "@std/assert";
import { median, percentile, Samples, spread } from "./statistics.ts";

Deno.test("percentile takes the sample at round((n - 1) · p)", () => {
  const sorted = [10, 20, 30, 40];
  assertEquals(percentile(sorted, 0), 10);
  assertEquals(percentile(sorted, 0.5), 30);
  assertEquals(percentile(sorted, 0.99), 40);
  assertEquals(percentile([], 0.5), null);
});

Deno.test("median and spread of trials", () => {
  assertEquals(median([3, 1, 2]), 2);
  assertEquals(median([4, 1]), 1);
  assertEquals(median([]), null);
  assertEquals(spread([50, 100, 75]), 2);
  assertEquals(spread([7]), 1);
});

Deno.test("samples stay bounded and evenly spread when they overflow", () => {
  const samples = new Samples(64);
  for (let value = 0; value < 10_000; value++) samples.add(value);
  const { p50Ms, p99Ms } = samples.summary();
  assertEquals(samples.count <= 64, true);
  assertEquals(Math.abs((p50Ms ?? 0) - 5000) < 500, true);
  assertEquals((p99Ms ?? 0) > 9000, true);
  samples.clear();
  assertEquals(samples.summary(), { p50Ms: null, p99Ms: null });
});
