// Waiting with a deadline: answers what it was asked for, and says what it saw when time is up.

import { assertEquals, assertRejects } from "@std/assert";
import { poll, PollTimeout, within } from "./poll.ts";

Deno.test({
  name: "poll answers the first value that counts",
  sanitizeOps: true,
  sanitizeResources: true,
  fn: async () => {
    const values = [undefined, null, false, 0];
    assertEquals(await poll(() => values.shift(), { everyMs: 1 }), 0);
  },
});

Deno.test({
  name: "poll takes a throw for not yet and tells it when time is up",
  sanitizeOps: true,
  sanitizeResources: true,
  fn: async () => {
    let asked = 0;
    const ask = (): never => {
      asked++;
      throw new TypeError("closed");
    };
    await assertRejects(
      () => poll(ask, { deadlineMs: 5, everyMs: 1, what: "the port" }),
      PollTimeout,
      "the port did not hold within 5 ms; last: TypeError: closed",
    );
    assertEquals(asked > 1, true);
  },
});

Deno.test({
  name: "within passes results and failures on and leaves no timer behind",
  sanitizeOps: true,
  sanitizeResources: true,
  fn: async () => {
    assertEquals(await within(Promise.resolve(7), "it"), 7);
    await assertRejects(() => within(Promise.reject(new TypeError("no")), "it"), TypeError, "no");
    const never = new Promise<never>(() => {});
    await assertRejects(() => within(never, "the answer", 2), PollTimeout, "the answer took more");
  },
});
