// Judges failed calls: asks the policy, counts, tells hooks. Calls on hot paths keep their own
// state and ask here only when something failed; `withRetries` is the loop for everything else.

import type { CallGuard } from "../call_guard.ts";
import { ConnectionError } from "../failure/classes.ts";
import { FelixError } from "../failure/felix_error.ts";
import { decideRetry } from "../retry_policy.ts";
import type { ResolvedPolicy, RetryDecision } from "../retry_policy.ts";
import { monotonicMs } from "../runtime/deno.ts";
import type { ClientCore } from "./client_core.ts";

/** What a call keeps about its failures. */
export interface RetryState {
  readonly operation: string;
  readonly resource: string | undefined;
  /** When it began, on the monotonic clock. */
  readonly startedMs: number;
  /** Sending it twice does no harm. */
  readonly idempotent: boolean;
  /** It may be sent again after an answer that says that nothing was applied. */
  readonly retrySafe: boolean;
  /** Attempts so far, the present one included. */
  attempts: number;
  /** When it was first answered `not_found`; 0 = not yet. */
  notFoundSinceMs: number;
}

/** Decides what becomes of a failed attempt and counts it. */
export function judge(
  core: ClientCore,
  state: RetryState,
  error: FelixError,
  viaOwner: boolean,
  policy: ResolvedPolicy = core.settings.policy,
): RetryDecision {
  const now = monotonicMs();
  if (error.code === "not_found" && state.notFoundSinceMs === 0) state.notFoundSinceMs = now;
  const decision = core.closed ? { kind: "reject" as const } : decideRetry(
    {
      error,
      idempotent: state.idempotent,
      retrySafe: state.retrySafe,
      viaOwner,
      attempts: state.attempts,
      elapsedMs: now - state.startedMs,
      notFoundMs: state.notFoundSinceMs === 0 ? 0 : now - state.notFoundSinceMs,
    },
    policy,
    core.random(),
  );
  if (decision.kind === "reject") return decision;
  const delayMs = decision.kind === "again" ? decision.delayMs : 0;
  core.counters.retry(error.code);
  core.hooks.call("onRetry", {
    operation: state.operation,
    ...(state.resource === undefined ? {} : { resource: state.resource }),
    attempt: state.attempts,
    delayMs,
    error,
  });
  core.hooks.log("debug", "retrying", {
    operation: state.operation,
    attempt: state.attempts,
    delay_ms: Math.round(delayMs),
    code: error.code,
    retry: error.retry,
  });
  return decision;
}

/** One attempt of a call under `withRetries`. */
export interface Attempt {
  /** Attempts so far, this one included. */
  readonly attempts: number;
  /** Set by the attempt when it goes to a remembered owner: how to forget it. */
  forgetOwner: (() => void) | null;
}

/** Makes a FelixError of anything thrown while a request was on its way. */
export function asFelixError(error: unknown, operation: string): FelixError {
  if (error instanceof FelixError) return error;
  return new ConnectionError("request", {
    message: error instanceof Error ? error.message : String(error),
    operation,
    cause: error,
  });
}

/**
 * Runs an idempotent call until it succeeds or the policy gives up.
 * @throws {FelixError} the last failure
 */
export async function withRetries<T>(
  core: ClientCore,
  call: {
    operation: string;
    resource: string | undefined;
    guard: CallGuard;
    /** Default: the client's. */
    policy?: ResolvedPolicy;
  },
  run: (attempt: Attempt) => Promise<T>,
): Promise<T> {
  const { operation, resource, guard } = call;
  const state: RetryState = {
    operation,
    resource,
    startedMs: guard.startedMs,
    idempotent: true,
    retrySafe: true,
    attempts: 0,
    notFoundSinceMs: 0,
  };
  for (;;) {
    guard.check();
    state.attempts++;
    const attempt: Attempt = { attempts: state.attempts, forgetOwner: null };
    try {
      return await guard.wait(run(attempt));
    } catch (thrown) {
      guard.check();
      const error = asFelixError(thrown, operation);
      const decision = judge(core, state, error, attempt.forgetOwner !== null, call.policy);
      if (decision.kind === "reject") throw error;
      attempt.forgetOwner?.();
      if (decision.kind === "again") await guard.delay(decision.delayMs);
    }
  }
}
