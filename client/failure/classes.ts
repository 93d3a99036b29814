// One class for each kind of failure (the table of spec/client.md §4). A class adds the facts that
// a caller acts on and the answer to "may I send it again?" where the broker gave none.

import { FelixError } from "./felix_error.ts";
import type { FelixErrorInit } from "./felix_error.ts";

/** Where a {@link ConnectionError} happened. */
export type ConnectionPhase = "dial" | "handshake" | "auth" | "request";

/**
 * No connection, or it went away before the request was sent (`detail.phase` says when), or the
 * broker is shutting down. Nothing was applied.
 */
export class ConnectionError extends FelixError {
  /** Name of the class. */
  override readonly name = "ConnectionError";
  /** When it happened; also `detail.phase`. */
  readonly phase: ConnectionPhase;
  /** Builds the failure for one phase. */
  constructor(phase: ConnectionPhase, init: FelixErrorInit) {
    super("connection", {
      ...init,
      retryable: init.retryable ?? true,
      detail: { ...init.detail, phase },
    });
    this.phase = phase;
  }
}

/** A time limit passed before the request was sent, or while a read waited for its answer. */
export class TimeoutError extends FelixError {
  /** Name of the class. */
  override readonly name = "TimeoutError";
  /** Milliseconds that were allowed. */
  readonly timeoutMs: number;
  /** Builds the failure for one limit in milliseconds. */
  constructor(timeoutMs: number, init: FelixErrorInit) {
    super("timeout", init);
    this.timeoutMs = timeoutMs;
  }
}

/** Nobody can serve the shard at the moment; `reason` says why. */
export class ShardUnavailableError extends FelixError {
  /** Name of the class. */
  override readonly name: string = "ShardUnavailableError";
  /** `not_assigned`, `owner_unavailable`, `not_ready`, `moving`, …; empty when not said. */
  readonly reason: string;
  /** Builds the failure; `code` is `not_leader` for the subclass. */
  constructor(
    init: FelixErrorInit,
    code: "shard_unavailable" | "not_leader" = "shard_unavailable",
  ) {
    super(code, { ...init, retryable: init.retryable ?? true });
    this.reason = String(init.detail?.reason ?? "");
  }
}

/** A redirect that could not be followed: too many hops, a loop, or no reachable address. */
export class NotLeaderError extends ShardUnavailableError {
  /** Name of the class. */
  override readonly name = "NotLeaderError";
  /** Node that owns the shard, as far as the last broker knew; empty when not said. */
  readonly nodeId: string;
  /** Its client address; `null` when not told. */
  readonly addr: string | null;
  /** Assignment epoch of the answer. */
  readonly generation: bigint;
  /** Builds the failure from the redirect that ended the attempt. */
  constructor(
    init: FelixErrorInit & { nodeId?: string; addr?: string | null; generation?: bigint },
  ) {
    super(init, "not_leader");
    this.nodeId = init.nodeId ?? "";
    this.addr = init.addr ?? null;
    this.generation = init.generation ?? 0n;
  }
}

/** The broker sheds load; nothing was applied. */
export class OverloadedError extends FelixError {
  /** Name of the class. */
  override readonly name = "OverloadedError";
  /** `publish_queue_full`, `tenant_quota`, …; empty when not said. */
  readonly reason: string;
  /** Milliseconds to wait before trying again; 0 when not said. */
  readonly retryAfterMs: number;
  /** Builds the failure. */
  constructor(init: FelixErrorInit) {
    super("overloaded", { ...init, retryable: init.retryable ?? true });
    this.reason = String(init.detail?.reason ?? "");
    this.retryAfterMs = Number(init.detail?.retry_after_ms ?? 0);
  }
}

/**
 * The write may or may not have been applied; it was not sent again. `cause` holds the trigger:
 * a lost connection, an abort reason, a time-out.
 */
export class OutcomeUnknownError extends FelixError {
  /** Name of the class. */
  override readonly name = "OutcomeUnknownError";
  /** Builds the failure. */
  constructor(init: FelixErrorInit) {
    super("outcome_unknown", { ...init, retryable: false });
  }
}

/** The token was refused (`unauthenticated`) or lacks a permission (`forbidden`). */
export class AuthError extends FelixError {
  /** Name of the class. */
  override readonly name = "AuthError";
  /** Builds the failure. */
  constructor(code: "unauthenticated" | "forbidden" | "revoked", init: FelixErrorInit) {
    super(code, init);
  }
}

/** Tenant, namespace, stream or cache is not known. May be transient right after a change. */
export class NotFoundError extends FelixError {
  /** Name of the class. */
  override readonly name = "NotFoundError";
  /** Builds the failure. */
  constructor(init: FelixErrorInit) {
    super("not_found", init);
  }
}

/** The wanted start offset cannot be read. */
export class CursorError extends FelixError {
  /** Name of the class. */
  override readonly name = "CursorError";
  /** Offset that was asked for. */
  readonly requested: bigint;
  /** Oldest readable offset (`cursor_too_old`) or the tail (`cursor_in_future`). */
  readonly available: bigint;
  /** Builds the failure. */
  constructor(
    code: "cursor_too_old" | "cursor_in_future",
    init: FelixErrorInit & { requested: bigint; available: bigint },
  ) {
    super(code, init);
    this.requested = init.requested;
    this.available = init.available;
  }
}

/** Records were lost on the way, and the subscription is to stop at that (`onGap: "throw"`). */
export class SubscriptionLaggedError extends FelixError {
  /** Name of the class. */
  override readonly name = "SubscriptionLaggedError";
  /** First offset to read again. */
  readonly resumeFrom: bigint | null;
  /** Last offset handed out. */
  readonly lastOffset: bigint | null;
  /** Builds the failure. */
  constructor(init: FelixErrorInit & { resumeFrom: bigint | null; lastOffset: bigint | null }) {
    super("subscription_lagged", init);
    this.resumeFrom = init.resumeFrom;
    this.lastOffset = init.lastOffset;
  }
}

/** The subscription's connection died and it could not be resumed in time. */
export class SubscriptionLostError extends FelixError {
  /** Name of the class. */
  override readonly name = "SubscriptionLostError";
  /** Offset to start from to go on without a gap; `null` on a stream without offsets. */
  readonly resumeFrom: bigint | null;
  /** Builds the failure. */
  constructor(init: FelixErrorInit & { resumeFrom: bigint | null }) {
    super("subscription_lost", { ...init, retryable: init.retryable ?? true });
    this.resumeFrom = init.resumeFrom;
  }
}

/** An idempotent producer cannot go on as it is; `code` says why. */
export class ProducerError extends FelixError {
  /** Name of the class. */
  override readonly name = "ProducerError";
  /** Builds the failure. */
  constructor(
    code:
      | "sequence_gap"
      | "sequence_expired"
      | "sequence_reused"
      | "unknown_producer"
      | "producer_stopped"
      | "producer_in_doubt",
    init: FelixErrorInit,
  ) {
    super(code, { ...init, retryable: false });
  }
}

/** An argument or option was refused before anything was sent. */
export class InvalidArgumentError extends FelixError {
  /** Name of the class. */
  override readonly name = "InvalidArgumentError";
  /** Builds the failure. */
  constructor(init: FelixErrorInit) {
    super("invalid_argument", init);
  }
}

/** The broker (`unsupported`) or this runtime (`runtime_unsupported`) cannot do it. */
export class UnsupportedError extends FelixError {
  /** Name of the class. */
  override readonly name = "UnsupportedError";
  /** What is missing: a feature name or a runtime API. */
  readonly feature: string;
  /** Builds the failure. */
  constructor(
    init: FelixErrorInit & { feature: string },
    code: "unsupported" | "runtime_unsupported" = "unsupported",
  ) {
    super(code, init);
    this.feature = init.feature;
  }
}

/** The broker sent something that is not the protocol; the stream it came on was closed. */
export class ProtocolError extends FelixError {
  /** Name of the class. */
  override readonly name = "ProtocolError";
  /** Builds the failure. */
  constructor(init: FelixErrorInit) {
    super("protocol", init);
  }
}

/** The client, subscription or batcher was closed. */
export class ClosedError extends FelixError {
  /** Name of the class. */
  override readonly name = "ClosedError";
  /** Builds the failure. */
  constructor(init: FelixErrorInit) {
    super("closed", init);
  }
}
