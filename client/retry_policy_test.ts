// The table of spec/client.md §12.5 and the back-off rule. Time and chance are arguments, so every
// row is exact.

import { assert, assertEquals } from "@std/assert";
import fc from "fast-check";
import { errorFromRefusal } from "./failure/broker_failure.ts";
import { ConnectionError, OutcomeUnknownError } from "./failure/classes.ts";
import type { FelixError } from "./failure/felix_error.ts";
import { backoffDelayMs, decideRetry, NOT_FOUND_RETRY_MS, resolvePolicy } from "./retry_policy.ts";
import type { FailedAttempt, RetryDecision } from "./retry_policy.ts";

const policy = resolvePolicy();

function coded(code: string, retry: string, retryAfterMs?: number): FelixError {
  return errorFromRefusal({ message: code, code, retry, retryAfterMs }, { operation: "test" });
}

function decide(error: FelixError, more: Partial<FailedAttempt> = {}): RetryDecision {
  const failed: FailedAttempt = {
    error,
    idempotent: true,
    retrySafe: true,
    viaOwner: false,
    attempts: 1,
    elapsedMs: 0,
    notFoundMs: 0,
    ...more,
  };
  return decideRetry(failed, policy, 0.5);
}

const write = { idempotent: false };

Deno.test("waits are uniform between nothing and a ceiling that doubles", () => {
  fc.assert(fc.property(fc.nat(40), fc.double({ min: 0, max: 0.999, noNaN: true }), (n, random) => {
    const delay = backoffDelayMs(policy, n, random);
    const ceiling = Math.min(2000, 200 * 2 ** n);
    assertEquals(delay, random * ceiling);
  }));
  assertEquals(backoffDelayMs(policy, 0, 0), 0);
  assert(backoffDelayMs(policy, 0, 0.999) < 200);
});

Deno.test("fatal is never tried again", () => {
  for (const code of ["unauthenticated", "forbidden", "invalid_request", "limit_exceeded"]) {
    assertEquals(decide(coded(code, "fatal")).kind, "reject");
    assertEquals(decide(coded(code, "fatal"), { viaOwner: true }).kind, "reject");
  }
});

Deno.test("retry and redirect from a remembered owner go through the entry at once", () => {
  for (const [code, retry] of [["shard_unavailable", "retry"], ["not_leader", "redirect"]]) {
    const error = coded(code!, retry!);
    assertEquals(decide(error, { viaOwner: true }), { kind: "reroute" });
    assertEquals(decide(error, { viaOwner: true, ...write, retrySafe: false }), {
      kind: "reroute",
    });
    assertEquals(decide(error).kind, "again");
    assertEquals(decide(error, write).kind, "again");
    assertEquals(decide(error, { ...write, retrySafe: false }).kind, "reject");
  }
  assertEquals(decide(coded("stale_claim", "retry"), { viaOwner: true }).kind, "again");
});

Deno.test("retry_after waits at least as long as was told", () => {
  const decision = decide(coded("overloaded", "retry_after", 500));
  assertEquals(decision, { kind: "again", delayMs: 500, elsewhere: false });
  const short = decide(coded("overloaded", "retry_after", 1));
  assertEquals(short, { kind: "again", delayMs: 100, elsewhere: false });
});

Deno.test("not_found is worth asking again for five seconds", () => {
  const error = coded("not_found", "retry_after");
  assertEquals(decide(error, { notFoundMs: NOT_FOUND_RETRY_MS - 1 }).kind, "again");
  assertEquals(decide(error, { notFoundMs: NOT_FOUND_RETRY_MS }).kind, "reject");
});

Deno.test("an unknown outcome is sent again only when that does no harm", () => {
  const error = coded("quorum_timeout", "outcome_unknown");
  assertEquals(decide(error, write).kind, "reject");
  assertEquals(decide(error), { kind: "again", delayMs: 100, elsewhere: false });
  const lost = new OutcomeUnknownError({ message: "lost", operation: "test" });
  assertEquals(decide(lost, write).kind, "reject");
  assertEquals(decide(lost), { kind: "again", delayMs: 100, elsewhere: true });
});

Deno.test("connection trouble is tried elsewhere, a draining broker too", () => {
  const lost = new ConnectionError("dial", { message: "lost", operation: "test" });
  assertEquals(decide(lost), { kind: "again", delayMs: 100, elsewhere: true });
  assertEquals(decide(coded("draining", "retry")), {
    kind: "again",
    delayMs: 100,
    elsewhere: true,
  });
});

Deno.test("an uncoded refusal of a write is final, of a read it is not", () => {
  const error = errorFromRefusal({ message: "no" }, { operation: "test" });
  assertEquals(decide(error).kind, "again");
  assertEquals(decide(error, write).kind, "reject");
});

Deno.test("attempts and the deadline bound everything", () => {
  const error = coded("shard_unavailable", "retry");
  assertEquals(decide(error, { attempts: 4 }).kind, "again");
  assertEquals(decide(error, { attempts: 5 }).kind, "reject");
  const failed: FailedAttempt = {
    error,
    idempotent: true,
    retrySafe: true,
    viaOwner: false,
    attempts: 1,
    elapsedMs: 950,
    notFoundMs: 0,
  };
  const bounded = { ...policy, deadlineMs: 1000 };
  assertEquals(decideRetry(failed, bounded, 0.9).kind, "reject");
  assertEquals(decideRetry(failed, bounded, 0.1).kind, "again");
});
