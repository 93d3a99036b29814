// Turns what a broker answered into an error class. The rule: code and class decide; text is read
// for one word only, `forbidden`, and only from brokers that send no codes (spec/client.md §4,
// rules 1 and 2).

import { retryFromText } from "@felix/wire";
import {
  AuthError,
  ConnectionError,
  NotFoundError,
  NotLeaderError,
  OutcomeUnknownError,
  OverloadedError,
  ShardUnavailableError,
} from "./classes.ts";
import { FelixError } from "./felix_error.ts";
import type { ErrorDetail, FelixErrorInit, RetryClass } from "./felix_error.ts";

/** A refusal as it came off the wire. */
export interface BrokerRefusal {
  readonly message: string;
  /** Absent from a broker that predates codes. */
  readonly code?: string | undefined;
  readonly retry?: string | undefined;
  readonly reason?: string | undefined;
  readonly retryAfterMs?: number | undefined;
}

/** What was being done when a failure happened. */
export interface FailureContext {
  readonly operation: string;
  readonly resource?: string | undefined;
  readonly broker?: string | undefined;
  readonly attempts?: number | undefined;
}

/** Reads a retry class; a word that is not known reads as `fatal` (spec/wire.md §7.1). */
export function readRetryClass(word: string | undefined): RetryClass | undefined {
  if (word === undefined) return undefined;
  return retryFromText(word);
}

function detailOf(refusal: BrokerRefusal): ErrorDetail | undefined {
  const { reason, retryAfterMs } = refusal;
  if (reason === undefined && retryAfterMs === undefined) return undefined;
  return {
    ...(reason === undefined ? {} : { reason }),
    ...(retryAfterMs === undefined ? {} : { retry_after_ms: retryAfterMs }),
  };
}

/** The error for a refusal. */
export function errorFromRefusal(refusal: BrokerRefusal, context: FailureContext): FelixError {
  const retry = readRetryClass(refusal.retry);
  const init: FelixErrorInit = {
    message: refusal.message,
    ...context,
    brokerCode: refusal.code,
    retry,
    detail: detailOf(refusal),
  };
  if (retry === "outcome_unknown") return new OutcomeUnknownError(init);
  switch (refusal.code) {
    case undefined:
      return /forbidden/i.test(refusal.message)
        ? new AuthError("forbidden", init)
        : new FelixError("broker_error", { ...init, retryable: true });
    case "unauthenticated":
    case "forbidden":
    case "revoked":
      return new AuthError(refusal.code, init);
    case "not_found":
      return new NotFoundError(init);
    case "shard_unavailable":
      return new ShardUnavailableError(init);
    case "not_leader":
      return new NotLeaderError(init);
    case "overloaded":
      return new OverloadedError(init);
    case "draining":
      return new ConnectionError("request", init);
    case "quorum_timeout":
    case "leadership_lost":
    case "unacknowledged":
    case "internal":
    case "storage":
      return retry === undefined
        ? new OutcomeUnknownError(init)
        : new FelixError(refusal.code, init);
    default:
      return new FelixError(refusal.code, init);
  }
}
