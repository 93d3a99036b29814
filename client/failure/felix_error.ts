// The root of every failure this package rejects with. The rule: the broker's retry class, when it
// sent one, decides whether a call may be sent again; the class of the error only where it did not
// (spec/client.md §4).

/** How a failed request may be sent again (spec/wire.md §7.1). */
export type RetryClass = "retry" | "retry_after" | "redirect" | "outcome_unknown" | "fatal";

/**
 * Stable codes of {@link FelixError}. A code that a newer broker sends and this version does not
 * know is passed on as it came.
 */
export type FelixErrorCode =
  | "broker_error"
  | "closed"
  | "connection"
  | "cursor_in_future"
  | "cursor_too_old"
  | "forbidden"
  | "invalid_argument"
  | "invalid_request"
  | "limit_exceeded"
  | "not_found"
  | "not_leader"
  | "outcome_unknown"
  | "overloaded"
  | "producer_in_doubt"
  | "producer_stopped"
  | "protocol"
  | "runtime_unsupported"
  | "sequence_expired"
  | "sequence_gap"
  | "sequence_reused"
  | "shard_unavailable"
  | "subscription_lagged"
  | "subscription_lost"
  | "timeout"
  | "unauthenticated"
  | "unknown_producer"
  | "unsupported"
  | (string & Record<never, never>);

/** Further facts about a failure, such as `reason` or `retry_after_ms`. */
export type ErrorDetail = Readonly<Record<string, string | number>>;

/** What is known about a failure when it is made. */
export interface FelixErrorInit {
  /** Prose for people; not stable. */
  readonly message: string;
  /** What was being done: `publish`, `cache.get`, `subscribe`. */
  readonly operation: string;
  /** What it was done to: `default/orders`, with the shard when known `default/orders/3`. */
  readonly resource?: string | undefined;
  /** Address that answered or failed last, as `host:port`. */
  readonly broker?: string | undefined;
  /** How often the request was tried; default 1. */
  readonly attempts?: number | undefined;
  /** The broker's own code, when it sent one. */
  readonly brokerCode?: string | undefined;
  /** The broker's retry class, when it sent one. */
  readonly retry?: RetryClass | undefined;
  /** Further facts. */
  readonly detail?: ErrorDetail | undefined;
  /** Used where the broker sent no retry class; default as the class of the error says. */
  readonly retryable?: boolean | undefined;
  /** What led to this failure. */
  readonly cause?: unknown;
}

/**
 * Any failure of the client. Test `code` (stable) or the class, never `message`.
 *
 * @example
 * ```ts
 * import { FelixError } from "@felix/client/errors";
 *
 * function mayTryAgain(error: unknown): boolean {
 *   return error instanceof FelixError && error.retryable;
 * }
 * ```
 */
export class FelixError extends Error {
  /** Name of the class. */
  override readonly name: string = "FelixError";
  /** Stable; always set. */
  readonly code: FelixErrorCode;
  /** The broker's code, when it sent one. */
  readonly brokerCode?: string;
  /** The broker's retry class, when it sent one. */
  readonly retry?: RetryClass;
  /** Further facts: `reason`, `retry_after_ms`, `phase`. */
  readonly detail?: ErrorDetail;
  /** Sending the same request again cannot apply it twice and may succeed. */
  readonly retryable: boolean;
  /** The write may have been applied. */
  readonly outcomeUnknown: boolean;
  /** What was being done: `publish`, `cache.get`, `subscribe`. */
  readonly operation: string;
  /** What it was done to: `default/orders`, with the shard when known `default/orders/3`. */
  readonly resource?: string;
  /** Address that answered or failed last. */
  readonly broker?: string;
  /** How often the request was tried. */
  readonly attempts: number;

  /** Builds a failure; `retryable` follows the broker's retry class when there is one. */
  constructor(code: FelixErrorCode, init: FelixErrorInit) {
    super(init.message, init.cause === undefined ? undefined : { cause: init.cause });
    this.code = code;
    this.operation = init.operation;
    this.attempts = init.attempts ?? 1;
    const retry = init.retry;
    this.retryable = retry === undefined
      ? init.retryable ?? false
      : retry === "retry" || retry === "retry_after" || retry === "redirect";
    this.outcomeUnknown = retry === "outcome_unknown" || code === "outcome_unknown";
    if (retry !== undefined) this.retry = retry;
    if (init.brokerCode !== undefined) this.brokerCode = init.brokerCode;
    if (init.detail !== undefined) this.detail = init.detail;
    if (init.resource !== undefined) this.resource = init.resource;
    if (init.broker !== undefined) this.broker = init.broker;
  }
}
