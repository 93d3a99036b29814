// A ring is an array with `push`, `unshift` and `shift`.

import { assertEquals } from "@std/assert";
import fc from "fast-check";
import { Ring } from "./ring.ts";

Deno.test("a ring behaves as an array under random operations", () => {
  const operations = fc.array(
    fc.oneof(
      fc.integer({ min: 0, max: 1000 }).map((value) => ({ kind: "push" as const, value })),
      fc.integer({ min: 0, max: 1000 }).map((value) => ({ kind: "unshift" as const, value })),
      fc.constant({ kind: "shift" as const, value: 0 }),
      fc.boolean().map((clear) => ({
        kind: clear ? "clear" as const : "shift" as const,
        value: 0,
      })),
    ),
    { maxLength: 200, size: "max" },
  );
  fc.assert(fc.property(operations, (steps) => {
    const ring = new Ring<number>();
    const model: number[] = [];
    for (const { kind, value } of steps) {
      if (kind === "push") {
        ring.push(value);
        model.push(value);
      } else if (kind === "unshift") {
        ring.unshift(value);
        model.unshift(value);
      } else if (kind === "shift") assertEquals(ring.shift(), model.shift());
      else {
        ring.clear();
        model.length = 0;
      }
      assertEquals(ring.length, model.length);
      assertEquals(ring.front, model[0]);
      assertEquals(Array.from(model, (_, at) => ring.at(at)), model);
      assertEquals(ring.at(model.length), undefined);
      assertEquals(ring.at(-1), undefined);
    }
  }));
});
