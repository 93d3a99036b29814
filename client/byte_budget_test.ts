// The publish budget: order, oversized frames, giving up (spec/client.md §5.2). The model is a sum
// of what is held, checked after every step.

import { assert, assertEquals } from "@std/assert";
import fc from "fast-check";
import { ByteBudget } from "./byte_budget.ts";

class Waiter {
  got = false;
  readonly budgetBytes: number;
  readonly #order: number[];
  readonly #index: number;
  constructor(budgetBytes: number, order: number[], index: number) {
    this.budgetBytes = budgetBytes;
    this.#order = order;
    this.#index = index;
  }
  admitted(): void {
    this.got = true;
    this.#order.push(this.#index);
  }
}

Deno.test("a frame larger than the budget waits for nothing in flight, then takes all", () => {
  const budget = new ByteBudget(100);
  const order: number[] = [];
  const small = new Waiter(10, order, 0);
  const huge = new Waiter(1000, order, 1);
  const next = new Waiter(10, order, 2);
  assert(budget.acquire(small));
  assert(!budget.acquire(huge));
  assert(!budget.acquire(next), "nobody overtakes");
  budget.release(10);
  assertEquals(order, [1]);
  assertEquals(budget.usedBytes, 1000);
  budget.release(1000);
  assertEquals(order, [1, 2]);
  budget.release(10);
  assertEquals(budget.usedBytes, 0);
});

Deno.test("one that gives up makes way", () => {
  const budget = new ByteBudget(100);
  const order: number[] = [];
  assert(budget.acquire(new Waiter(60, order, 0)));
  const big = new Waiter(80, order, 1);
  assert(!budget.acquire(big));
  assert(!budget.acquire(new Waiter(30, order, 2)));
  assert(budget.cancel(big));
  assert(!budget.cancel(big));
  assertEquals(order, [2]);
});

Deno.test("first come first served, and never above the limit but for one frame", () => {
  const sizes = fc.array(fc.integer({ min: 1, max: 300 }), { minLength: 1, maxLength: 60 });
  fc.assert(fc.property(sizes, fc.infiniteStream(fc.nat(100)), (bytes, picks) => {
    const budget = new ByteBudget(200);
    const order: number[] = [];
    const waiters = bytes.map((size, index) => new Waiter(size, order, index));
    for (const waiter of waiters) if (budget.acquire(waiter)) waiter.admitted();
    const held = [...order];
    const check = (): void => {
      const used = held.reduce((sum, index) => sum + bytes[index]!, 0);
      assertEquals(budget.usedBytes, used);
      assert(used <= 200 || held.length === 1);
    };
    check();
    while (held.length > 0) {
      const at = picks.next().value! % held.length;
      const [index] = held.splice(at, 1);
      const before = order.length;
      budget.release(bytes[index!]!);
      held.push(...order.slice(before));
      check();
    }
    assertEquals(order, bytes.map((_, index) => index));
  }));
});
