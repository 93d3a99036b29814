// The window of one producer against a plain list.

import { assertEquals } from "@std/assert";
import fc from "fast-check";
import type { RememberedBatch } from "../format/producer_snapshot.ts";
import { BatchWindow } from "./batch_window.ts";

const u64 = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n });
const pushes = fc.tuple(
  fc.integer({ min: 1, max: 2 ** 44 }),
  fc.integer({ min: 1, max: 2 ** 32 - 1 }),
  fc.option(u64),
);
const steps = fc.array(fc.oneof({ weight: 6, arbitrary: pushes }, fc.nat(5)), { maxLength: 200 });

Deno.test("a window is the newest batches of its producer", () => {
  const limits = fc.integer({ min: 1, max: 64 });
  fc.assert(fc.property(steps, limits, (sequence, limit) => {
    const window = new BatchWindow(10n, limit);
    let model: RememberedBatch[] = [];
    let last = 9n;
    let offset = 0;
    for (const step of sequence) {
      if (typeof step === "number") {
        const base = model[step]?.first ?? 0;
        window.forgetBelow(base);
        model = model.filter(({ first }) => first >= base);
      } else {
        const [gap, length, digest] = step;
        offset += gap;
        window.push(offset, length, digest);
        model = [...model, { first: offset, length, digest }].slice(-limit);
        last++;
      }
      assertEquals(window.batches(), model);
      assertEquals(window.lastSequence, last);
    }
    model.forEach((batch, index) => {
      assertEquals(window.find(last - BigInt(model.length - 1 - index)), batch);
    });
    assertEquals(window.find(last + 1n), null);
    assertEquals(window.find(last - BigInt(model.length)), null);
  }));
});
