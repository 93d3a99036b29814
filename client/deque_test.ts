// The queue against an array that does the same: order, removal, and that space in front of the
// head is given back.

import { assertEquals } from "@std/assert";
import fc from "fast-check";
import { Deque } from "./deque.ts";

Deno.test("it does what an array does", () => {
  const step = fc.oneof(
    fc.record({ do: fc.constant("push" as const), value: fc.nat(50) }),
    fc.record({ do: fc.constant("shift" as const) }),
    fc.record({ do: fc.constant("remove" as const), value: fc.nat(50) }),
    fc.record({ do: fc.constant("takeAll" as const) }),
  );
  fc.assert(fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
    const deque = new Deque<number>();
    let model: number[] = [];
    for (const one of steps) {
      if (one.do === "push") {
        deque.push(one.value);
        model.push(one.value);
      } else if (one.do === "shift") {
        assertEquals(deque.shift(), model.shift());
      } else if (one.do === "remove") {
        const at = model.indexOf(one.value);
        if (at >= 0) model.splice(at, 1);
        assertEquals(deque.remove(one.value), at >= 0);
      } else {
        assertEquals(deque.takeAll(), model);
        model = [];
      }
      assertEquals([deque.size, deque.peek()], [model.length, model[0]]);
      assertEquals([...deque], model);
    }
  }));
});

Deno.test("a long queue keeps its order while it is used at both ends", () => {
  const deque = new Deque<number>();
  let next = 0;
  for (let n = 0; n < 5000; n++) {
    deque.push(2 * n);
    deque.push(2 * n + 1);
    assertEquals(deque.shift(), next++);
  }
  while (deque.size > 0) assertEquals(deque.shift(), next++);
  assertEquals(next, 10_000);
});
