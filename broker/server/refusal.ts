// How a refusal is said: the text that older clients match on, a stable code and a retry class,
// and only to clients that read them (spec/wire.md §7).

import { DEFAULT_RETRY, encodeMessage } from "@felix/wire";
import type {
  ByteWriter,
  ErrorCode,
  ErrorMessage,
  PublishAckError,
  PublishErrorMessage,
  RefusedReason,
  RetryClass,
} from "@felix/wire";
import { FLAG_BINARY_PUBLISH_ACK_CODE, FLAG_BINARY_PUBLISH_ACK_DETAIL } from "@felix/wire";

/** Why a request was not served. */
export interface Refusal {
  readonly code: ErrorCode;
  readonly message: string;
  /** Retry class where it is not the code's default. */
  readonly retry?: RetryClass;
  readonly reason?: string;
  readonly retryAfterMs?: number;
  /** What `publish_refused` says, for a client that knows it. */
  readonly refused?: RefusedReason;
}

/** Refusals whose text is part of the contract (spec/wire.md §7.3). */
export const REFUSAL = {
  authRequired: { code: "unauthenticated", message: "auth required" },
  authFailed: { code: "unauthenticated", message: "auth failed" },
  authTwice: { code: "invalid_request", message: "auth already established" },
  tenantMismatch: { code: "forbidden", message: "tenant mismatch" },
  forbidden: { code: "forbidden", message: "forbidden" },
  unexpectedType: { code: "invalid_request", message: "unexpected message type" },
  unknownFlags: { code: "invalid_request", message: "unsupported frame flags" },
  malformedBatch: { code: "invalid_request", message: "malformed publish batch" },
  noRequestId: { code: "invalid_request", message: "missing request_id for acked publish" },
  noRequestIdBatch: {
    code: "invalid_request",
    message: "missing request_id for acked publish batch",
  },
  tooManySubscriptions: {
    code: "limit_exceeded",
    message: "max subscriptions per connection exceeded",
  },
  noStreamCredit: {
    code: "limit_exceeded",
    message: "the connection has no credit for an event stream",
  },
  draining: {
    code: "draining",
    message: "broker is shutting down; connect to another broker",
  },
  emptyBatch: { code: "invalid_request", message: "a producer's batch has a record or more" },
  recordTooLarge: { code: "limit_exceeded", message: "a record is larger than 8 MiB" },
  shardRange: { code: "invalid_request", message: "shard is outside the stream's width" },
} as const satisfies Record<string, Refusal>;

/** An unknown stream. */
export function streamNotFound(tenant: string, namespace: string, stream: string): Refusal {
  return {
    code: "not_found",
    message: `stream not found: tenant=${tenant} namespace=${namespace} stream=${stream}`,
  };
}

/** An unknown cache. */
export function cacheNotFound(tenant: string, namespace: string, cache: string): Refusal {
  return {
    code: "not_found",
    message: `cache scope not found: ${tenant}/${namespace}/${cache}`,
  };
}

/** The retry class that goes with a refusal. */
export function retryOf(refusal: Refusal): RetryClass {
  return refusal.retry ?? DEFAULT_RETRY[refusal.code];
}

function codes(refusal: Refusal): Pick<ErrorMessage, "code" | "retry" | "detail"> {
  const { reason, retryAfterMs } = refusal;
  const detail = {
    ...(reason === undefined ? {} : { reason }),
    ...(retryAfterMs === undefined ? {} : { retry_after_ms: BigInt(retryAfterMs) }),
  };
  return {
    code: refusal.code,
    retry: retryOf(refusal),
    ...(reason === undefined && retryAfterMs === undefined ? {} : { detail }),
  };
}

/** The `error` message for a refusal; bare text for a client that reads no codes. */
export function errorMessage(refusal: Refusal, readsCodes: boolean): ErrorMessage {
  return { type: "error", message: refusal.message, ...(readsCodes ? codes(refusal) : {}) };
}

/** Appends that message. */
export function encodeError(refusal: Refusal, readsCodes: boolean, out: ByteWriter): void {
  encodeMessage(errorMessage(refusal, readsCodes), out);
}

/** The failed binary ack for a refusal, as far as the client's flags let it be said. */
export function ackError(refusal: Refusal, flags: number): PublishAckError {
  const { message, code, reason, retryAfterMs } = refusal;
  if ((flags & FLAG_BINARY_PUBLISH_ACK_CODE) === 0) return { message };
  const error = { message, code, retry: retryOf(refusal) };
  const detailed = (flags & FLAG_BINARY_PUBLISH_ACK_DETAIL) !== 0;
  if (!detailed || (reason === undefined && retryAfterMs === undefined)) return error;
  return { ...error, reason: reason ?? "", retryAfterMs: BigInt(retryAfterMs ?? 0) };
}

/** The `publish_error` message for a refusal. */
export function publishErrorMessage(
  requestId: bigint,
  refusal: Refusal,
  readsCodes: boolean,
): PublishErrorMessage {
  return {
    type: "publish_error",
    request_id: requestId,
    message: refusal.message,
    ...(readsCodes ? codes(refusal) : {}),
  };
}
