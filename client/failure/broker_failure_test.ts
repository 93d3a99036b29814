// The mapping table of spec/client.md §4 and its rules 1 and 2. One row per code and class; the
// class always wins.

import { assert, assertEquals, assertInstanceOf } from "@std/assert";
import { errorFromRefusal, readRetryClass } from "./broker_failure.ts";
import * as classes from "./classes.ts";
import { FelixError } from "./felix_error.ts";

const context = { operation: "publish", resource: "default/orders/3", broker: "h:1", attempts: 2 };

type Row = readonly [
  code: string,
  retry: string,
  // deno-lint-ignore no-explicit-any -- any constructor
  type: new (...args: any[]) => FelixError,
  ours: string,
  retryable: boolean,
];

const TABLE: readonly Row[] = [
  ["unauthenticated", "fatal", classes.AuthError, "unauthenticated", false],
  ["forbidden", "fatal", classes.AuthError, "forbidden", false],
  ["revoked", "fatal", classes.AuthError, "revoked", false],
  ["not_found", "retry_after", classes.NotFoundError, "not_found", true],
  ["invalid_request", "fatal", FelixError, "invalid_request", false],
  ["limit_exceeded", "fatal", FelixError, "limit_exceeded", false],
  ["shard_unavailable", "retry", classes.ShardUnavailableError, "shard_unavailable", true],
  ["not_leader", "redirect", classes.NotLeaderError, "not_leader", true],
  ["quorum_timeout", "outcome_unknown", classes.OutcomeUnknownError, "outcome_unknown", false],
  ["leadership_lost", "outcome_unknown", classes.OutcomeUnknownError, "outcome_unknown", false],
  ["unacknowledged", "outcome_unknown", classes.OutcomeUnknownError, "outcome_unknown", false],
  ["internal", "outcome_unknown", classes.OutcomeUnknownError, "outcome_unknown", false],
  ["storage", "outcome_unknown", classes.OutcomeUnknownError, "outcome_unknown", false],
  ["storage", "retry", FelixError, "storage", true],
  ["overloaded", "retry_after", classes.OverloadedError, "overloaded", true],
  ["overloaded", "outcome_unknown", classes.OutcomeUnknownError, "outcome_unknown", false],
  ["draining", "retry", classes.ConnectionError, "connection", true],
  ["stale_width", "retry", FelixError, "stale_width", true],
  ["code_99", "retry", FelixError, "code_99", true],
  ["code_99", "no_such_class", FelixError, "code_99", false],
];

for (const [code, retry, type, ours, retryable] of TABLE) {
  Deno.test(`${code} with class ${retry} becomes ${type.name} ${ours}`, () => {
    const error = errorFromRefusal({ message: "m", code, retry }, context);
    assertInstanceOf(error, type);
    assertEquals(error.code, ours);
    assertEquals(error.brokerCode, code);
    assertEquals(error.retryable, retryable);
    assertEquals(error.outcomeUnknown, retry === "outcome_unknown");
    assertEquals(error.operation, "publish");
    assertEquals(error.resource, "default/orders/3");
    assertEquals(error.broker, "h:1");
    assertEquals(error.attempts, 2);
  });
}

Deno.test("the class that was sent wins over the code's own", () => {
  const error = errorFromRefusal({ message: "m", code: "forbidden", retry: "retry" }, context);
  assertInstanceOf(error, classes.AuthError);
  assert(error.retryable);
});

Deno.test("without a class the table decides", () => {
  const make = (code: string): FelixError => errorFromRefusal({ message: "m", code }, context);
  assert(make("shard_unavailable").retryable);
  assert(make("overloaded").retryable);
  assert(make("draining").retryable);
  assert(!make("not_found").retryable);
  assert(!make("forbidden").retryable);
  assert(make("internal").outcomeUnknown);
});

Deno.test("details are carried over", () => {
  const error = errorFromRefusal({
    message: "full",
    code: "overloaded",
    retry: "retry_after",
    reason: "publish_queue_full",
    retryAfterMs: 10,
  }, context);
  assertInstanceOf(error, classes.OverloadedError);
  assertEquals(error.reason, "publish_queue_full");
  assertEquals(error.retryAfterMs, 10);
  assertEquals(error.detail, { reason: "publish_queue_full", retry_after_ms: 10 });
});

Deno.test("of uncoded text only `forbidden` is terminal", () => {
  const make = (message: string): FelixError => errorFromRefusal({ message }, context);
  for (const text of ["Forbidden", "publish FORBIDDEN here"]) {
    assertInstanceOf(make(text), classes.AuthError);
    assertEquals(make(text).code, "forbidden");
    assert(!make(text).retryable);
  }
  for (const text of ["not found", "unauthorized", "cursor too old", "timed out"]) {
    assertEquals(make(text).code, "broker_error");
    assert(make(text).retryable, text);
    assertEquals(make(text).brokerCode, undefined);
  }
});

Deno.test("retry classes are read, unknown ones as fatal", () => {
  assertEquals(readRetryClass(undefined), undefined);
  assertEquals(readRetryClass("retry_after"), "retry_after");
  assertEquals(readRetryClass("whatever"), "fatal");
});

Deno.test("errors keep their cause and name their class", () => {
  const cause = new Error("why");
  const error = new classes.ConnectionError("dial", { message: "m", operation: "connect", cause });
  assertEquals(error.cause, cause);
  assertEquals(error.name, "ConnectionError");
  assertEquals(error.phase, "dial");
  assertEquals(error.detail, { phase: "dial" });
  assertEquals(error.attempts, 1);
  assert(error.retryable);
});
