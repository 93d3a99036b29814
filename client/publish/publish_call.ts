// One publish from the call to its settlement. The rule: it is settled exactly once, it holds its
// bytes of the budget until then, and once its frame was handed over a failure is only reported as
// "nothing applied" when the broker said so (spec/client.md §5.3, §15).

import type { BudgetWaiter } from "../byte_budget.ts";
import { watchCall } from "../call_guard.ts";
import { OutcomeUnknownError, TimeoutError } from "../failure/classes.ts";
import { FelixError } from "../failure/felix_error.ts";
import type { RetryState } from "../link/retrier.ts";
import type { PublishLane } from "./publish_lane.ts";
import type { PublishOptions, PublishResult } from "./publish_options.ts";
import type { StreamScope } from "./stream_scope.ts";

/** Where a call is. */
export type CallState = "waiting" | "sent" | "backoff" | "done";

/** Told when a call is settled. */
export interface CallOwner {
  /** Called once, after the promise was settled. */
  settled(call: PublishCall): void;
  /** A waiting call got its bytes. */
  admitted(call: PublishCall): void;
}

/** One publish. */
export class PublishCall implements BudgetWaiter, RetryState {
  readonly operation: string;
  readonly scope: StreamScope;
  readonly payloads: readonly Uint8Array[];
  readonly key: Uint8Array | null;
  /** As on the wire; 0 = unanswered. */
  readonly ack: 0 | 1 | 2;
  readonly budgetBytes: number;
  readonly startedMs: number;
  readonly deadlineMs: number;
  readonly idempotent: boolean;
  readonly retrySafe: boolean;
  readonly promise: Promise<PublishResult>;
  attempts = 0;
  notFoundSinceMs = 0;
  state: CallState = "waiting";
  /** Where it goes; set when its shard is known. */
  lane: PublishLane | null = null;
  /** Whether it holds its bytes of the budget. */
  holdsBytes = false;
  /** Whether an earlier attempt's outcome is unknown. */
  ambiguous = false;
  /** When its frame was appended, on the monotonic clock. */
  sentMs = 0;
  readonly #owner: CallOwner;
  #resolve!: (result: PublishResult) => void;
  #reject!: (error: unknown) => void;
  readonly #stopWatching: (() => void) | null;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** A call that nothing was done for yet. */
  constructor(init: {
    owner: CallOwner;
    operation: string;
    scope: StreamScope;
    payloads: readonly Uint8Array[];
    key: Uint8Array | null;
    ack: 0 | 1 | 2;
    budgetBytes: number;
    options: PublishOptions;
    defaultTimeoutMs: number;
    nowMs: number;
  }) {
    const { options } = init;
    this.#owner = init.owner;
    this.operation = init.operation;
    this.scope = init.scope;
    this.startedMs = init.nowMs;
    this.payloads = init.payloads;
    this.key = init.key;
    this.ack = init.ack;
    this.budgetBytes = init.budgetBytes;
    this.deadlineMs = this.startedMs + (options.timeoutMs ?? init.defaultTimeoutMs);
    this.idempotent = options.delivery === "atLeastOnce";
    this.retrySafe = options.retrySafe ?? true;
    this.promise = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    this.#stopWatching = watchCall(
      options,
      (reason) => this.cancel(reason),
      () => this.cancel(this.#expired()),
    );
  }

  /** `namespace/stream`, with the shard when known. */
  get resource(): string {
    const shard = this.lane?.shard;
    return shard === null || shard === undefined
      ? this.scope.resource
      : `${this.scope.resource}/${shard}`;
  }

  /** The budget let it in. */
  admitted(): void {
    this.holdsBytes = true;
    this.#owner.admitted(this);
  }

  /** It was acknowledged (or, unacked, accepted). */
  succeed(result: { offset: bigint | null; broker: string; forwarded: boolean }): void {
    if (this.state === "done") return;
    this.#done();
    this.#resolve({
      offset: result.offset,
      count: this.payloads.length,
      shard: this.lane?.shard ?? null,
      broker: result.broker,
      forwarded: result.forwarded,
      attempts: this.attempts,
      mayBeDuplicated: this.ambiguous,
    });
    this.#owner.settled(this);
  }

  /** It failed for good. */
  fail(error: unknown): void {
    if (this.state === "done") return;
    this.#done();
    this.#reject(error);
    this.#owner.settled(this);
  }

  /** Gives it up: `reason` is what the caller sees unless something may have been applied. */
  cancel(reason: unknown): void {
    if (this.state === "done") return;
    if (this.ack === 0 || (this.state !== "sent" && !this.ambiguous)) return this.fail(reason);
    this.fail(this.unknown(reason, undefined, "given up before the answer came"));
  }

  /** Gives it up when its time is over. */
  expire(nowMs: number): void {
    if (this.state === "done" || nowMs < this.deadlineMs) return;
    this.cancel(this.#expired());
  }

  /** The failure that says that it may have been applied. */
  unknown(cause: unknown, broker: string | undefined, message: string): OutcomeUnknownError {
    return new OutcomeUnknownError({
      message,
      operation: this.operation,
      resource: this.resource,
      broker: broker ?? (cause instanceof FelixError ? cause.broker : undefined),
      attempts: this.attempts,
      cause,
    });
  }

  /** Calls `run` after `delayMs` unless it is settled before. */
  later(delayMs: number, run: () => void): void {
    this.state = "backoff";
    this.#timer = setTimeout(() => {
      this.state = "waiting";
      run();
    }, delayMs);
  }

  #expired(): TimeoutError {
    const limit = Math.round(this.deadlineMs - this.startedMs);
    return new TimeoutError(limit, {
      message: `${this.operation} took longer than ${limit} ms`,
      operation: this.operation,
      resource: this.resource,
      attempts: this.attempts,
      retryable: false,
    });
  }

  #done(): void {
    this.state = "done";
    this.#stopWatching?.();
    if (this.#timer !== undefined) clearTimeout(this.#timer);
  }
}
