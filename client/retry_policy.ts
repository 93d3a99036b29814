// When a failed call is tried again, where, and after how long (spec/client.md §12.5). Pure: time
// and randomness come in as arguments.

import type { FelixError } from "./failure/felix_error.ts";

/** How often and how fast failed calls are tried again. */
export interface ReconnectPolicy {
  /** Tries of one call, the first included; default 5. */
  readonly attempts?: number;
  /** Milliseconds that the first wait is drawn below; doubles each time. Default 200. */
  readonly backoffMs?: number;
  /** Milliseconds that no drawn wait exceeds; default 2000. */
  readonly maxBackoffMs?: number;
  /** Milliseconds after which a call is not tried again; none by default. */
  readonly deadlineMs?: number;
}

/** A policy with its defaults filled in. */
export interface ResolvedPolicy {
  readonly attempts: number;
  readonly backoffMs: number;
  readonly maxBackoffMs: number;
  readonly deadlineMs: number;
}

/** Fills in the defaults. */
export function resolvePolicy(policy: ReconnectPolicy = {}): ResolvedPolicy {
  return {
    attempts: policy.attempts ?? 5,
    backoffMs: policy.backoffMs ?? 200,
    maxBackoffMs: policy.maxBackoffMs ?? 2000,
    deadlineMs: policy.deadlineMs ?? Infinity,
  };
}

/** `not_found` is worth asking again only while a broker may still be learning (trap 6). */
export const NOT_FOUND_RETRY_MS = 5000;

/**
 * Milliseconds to wait before retry `retry` (0-based): uniform in `[0, min(max, base * 2^retry)]`.
 * `random` is in `[0, 1)`.
 */
export function backoffDelayMs(policy: ResolvedPolicy, retry: number, random: number): number {
  return random * Math.min(policy.maxBackoffMs, policy.backoffMs * 2 ** Math.min(retry, 30));
}

/** What is known when a call failed. */
export interface FailedAttempt {
  readonly error: FelixError;
  /** Sending it twice does no harm. */
  readonly idempotent: boolean;
  /** A write may be sent again when the answer says that nothing was applied. */
  readonly retrySafe: boolean;
  /** It was sent to an owner that the client remembered, not to the entry broker. */
  readonly viaOwner: boolean;
  /** Attempts so far, this one included. */
  readonly attempts: number;
  /** Milliseconds since the call began. */
  readonly elapsedMs: number;
  /** Milliseconds since its first `not_found`; 0 when this is the first. */
  readonly notFoundMs: number;
}

/** What to do about it. */
export type RetryDecision =
  | { readonly kind: "reject" }
  /** Forget the remembered owner and go through the entry broker, now. */
  | { readonly kind: "reroute" }
  | {
    readonly kind: "again";
    readonly delayMs: number;
    /** The connection is suspect: use another broker if there is one. */
    readonly elsewhere: boolean;
  };

const REJECT: RetryDecision = { kind: "reject" };

function retryAfterMs(error: FelixError): number {
  const told = error.detail?.retry_after_ms;
  return typeof told === "number" && told > 0 ? told : 0;
}

/** Whether no coded answer arrived: a coded one, `draining` aside, proves the broker is alive. */
function isConnectionTrouble(error: FelixError): boolean {
  return error.brokerCode === undefined || error.brokerCode === "draining";
}

/** Decides about a failed attempt. */
export function decideRetry(
  failed: FailedAttempt,
  policy: ResolvedPolicy,
  random: number,
): RetryDecision {
  const { error, idempotent } = failed;
  if (error.outcomeUnknown && !idempotent) return REJECT;
  if (!error.retryable && !(error.outcomeUnknown && idempotent)) return REJECT;
  const reroutes = error.retry === "retry" || error.retry === "redirect" ||
    error.code === "not_leader";
  if (failed.viaOwner && reroutes && error.code !== "stale_claim") return { kind: "reroute" };
  if (!idempotent && !failed.retrySafe) return REJECT;
  if (!idempotent && error.code === "broker_error") return REJECT;
  if (failed.attempts >= policy.attempts) return REJECT;
  if (error.code === "not_found" && failed.notFoundMs >= NOT_FOUND_RETRY_MS) return REJECT;
  const drawn = backoffDelayMs(policy, failed.attempts - 1, random);
  const delayMs = Math.max(drawn, retryAfterMs(error));
  if (failed.elapsedMs + delayMs > policy.deadlineMs) return REJECT;
  return { kind: "again", delayMs, elsewhere: isConnectionTrouble(error) };
}
