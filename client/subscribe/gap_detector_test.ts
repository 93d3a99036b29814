// The state machine of spec/client.md §7.2. Every offset is delivered, dropped, skipped or
// repeated: the property adds them up.

import { assertEquals } from "@std/assert";
import fc from "fast-check";
import { GapDetector } from "./gap_detector.ts";

Deno.test("the first batch is taken wherever it begins", () => {
  const gaps = new GapDetector();
  assertEquals(gaps.next, null);
  assertEquals(gaps.see(40n, 2, 0n), { duplicates: 0, dropped: 0n });
  assertEquals(gaps.next, 42n);
});

Deno.test("a jump is a gap, unless the broker says what was skipped", () => {
  const gaps = new GapDetector();
  gaps.see(0n, 1, 0n);
  assertEquals(gaps.see(3n, 1, 0n).dropped, 2n);
  assertEquals(gaps.see(6n, 1, 2n).dropped, 0n);
  assertEquals(gaps.see(10n, 1, 1n).dropped, 2n);
});

Deno.test("what came before is a duplicate, in whole or in part", () => {
  const gaps = new GapDetector();
  gaps.see(0n, 10, 0n);
  assertEquals(gaps.see(3n, 4, 0n), { duplicates: 4, dropped: 0n });
  assertEquals(gaps.see(8n, 4, 0n), { duplicates: 2, dropped: 0n });
  assertEquals(gaps.next, 12n);
});

Deno.test("after a resume nothing below its start is taken", () => {
  const gaps = new GapDetector();
  gaps.see(0n, 10, 0n);
  gaps.resume(7n);
  assertEquals(gaps.next, 7n);
  assertEquals(gaps.see(5n, 4, 0n), { duplicates: 2, dropped: 0n });
  gaps.resume(20n);
  assertEquals(gaps.see(22n, 1, 0n), { duplicates: 0, dropped: 0n }, "no gap twice");
  gaps.reset();
  assertEquals(gaps.next, null);
});

Deno.test("offsets above 2^53 count exactly", () => {
  const gaps = new GapDetector();
  const base = 2n ** 60n + 1n;
  gaps.see(base, 3, 0n);
  assertEquals(gaps.see(base + 4n, 1, 0n).dropped, 1n);
});

Deno.test("delivered, dropped and skipped make up every offset", () => {
  const step = fc.record({
    lost: fc.nat(3),
    skipped: fc.nat(2),
    count: fc.integer({ min: 1, max: 5 }),
    repeat: fc.nat(3),
  });
  fc.assert(fc.property(fc.array(step, { minLength: 1 }), (steps) => {
    const gaps = new GapDetector();
    gaps.see(0n, 1, 0n);
    let tail = 1n;
    let accounted = 1n;
    for (const { lost, skipped, count, repeat } of steps) {
      const again = BigInt(repeat) < tail ? BigInt(repeat) : tail;
      const repeats = lost === 0 && skipped === 0 ? again : 0n;
      const base = tail + BigInt(lost) + BigInt(skipped) - repeats;
      const total = count + Number(repeats);
      const verdict = gaps.see(base, total, BigInt(skipped));
      assertEquals(verdict.duplicates, Number(repeats));
      accounted += verdict.dropped + BigInt(skipped) + BigInt(total - verdict.duplicates);
      tail = base + BigInt(total);
      assertEquals(accounted, tail);
      assertEquals(gaps.next, tail);
    }
  }));
});
