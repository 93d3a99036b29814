// Buckets: their edges, and that every value lands in the first one that holds it.

import { assertEquals } from "@std/assert";
import fc from "fast-check";
import {
  COUNT_BOUNDS,
  Histogram,
  MILLISECOND_BOUNDS,
  SECOND_BOUNDS,
  SIZE_BOUNDS,
} from "./histogram.ts";

Deno.test("the bucket edges are those of the specification", () => {
  assertEquals(MILLISECOND_BOUNDS, [
    ...[0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000],
  ]);
  assertEquals(SECOND_BOUNDS[0], 0.0001);
  assertEquals(SECOND_BOUNDS.at(-1), 10);
  assertEquals([SIZE_BOUNDS[0], SIZE_BOUNDS[1], SIZE_BOUNDS.at(-1)], [64, 256, 64 * 4 ** 9]);
});

for (const bounds of [MILLISECOND_BOUNDS, SECOND_BOUNDS, SIZE_BOUNDS, COUNT_BOUNDS, [1], [3, 4]]) {
  Deno.test(`a value lands in the first bucket that holds it: ${bounds[0]}...`, () => {
    const value = fc.oneof(
      fc.double({ min: -1, max: bounds.at(-1)! * 3, noNaN: true }),
      fc.constantFrom(...bounds, ...bounds.map((bound) => bound * 1.0000001), 0, Infinity),
    );
    fc.assert(
      fc.property(value, (observed) => {
        const histogram = new Histogram(bounds);
        histogram.observe(observed);
        const index = bounds.findIndex((bound) => observed <= bound);
        assertEquals(histogram.counts[index < 0 ? bounds.length : index], 1);
        assertEquals(histogram.count, 1);
        assertEquals(histogram.sum, observed + 0, "minus zero adds up to zero");
      }),
      { numRuns: 500 },
    );
  });
}
