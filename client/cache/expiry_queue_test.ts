// The heap of expiries against a sorted list (spec/client.md §9).

import { assert, assertEquals } from "@std/assert";
import fc from "fast-check";
import { ExpiryQueue } from "./expiry_queue.ts";

Deno.test("keys come due in order of their latest time, each once", () => {
  const step = fc.tuple(fc.constantFrom("a", "b", "c", "d", "e"), fc.nat({ max: 100 }));
  fc.assert(fc.property(fc.array(step, { maxLength: 300 }), fc.nat({ max: 110 }), (steps, now) => {
    const times = new Map<string, number>();
    const queue = new ExpiryQueue(({ key, atMs }) => times.get(key) === atMs);
    for (const [key, atMs] of steps) {
      if (times.get(key) === atMs) continue;
      times.set(key, atMs);
      queue.add({ key, atMs }, times.size);
      assert(queue.size <= 2 * times.size + 65);
    }
    const expected = [...times.values()].filter((at) => at <= now).toSorted((a, b) => a - b);
    const due: number[] = [];
    for (let next = queue.due(now); next !== undefined; next = queue.due(now)) {
      times.delete(next.key);
      due.push(next.atMs);
    }
    assertEquals(due, expected);
    const left = [...times.values()].toSorted((a, b) => a - b);
    assertEquals(queue.peek()?.atMs, left[0]);
  }));
});

Deno.test("a key that comes and goes with the same time does not fill the heap", () => {
  const queue = new ExpiryQueue(() => true);
  for (let n = 0; n < 1000; n++) queue.add({ key: "k", atMs: 5 }, 1);
  assert(queue.size <= 67);
});
