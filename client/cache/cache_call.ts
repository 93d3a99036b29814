// One cache request from the call to its settlement: settled exactly once, and a write whose frame
// was handed over fails as "nothing applied" only when the broker said so.

import type { Message } from "@felix/wire";
import { watchCall } from "../call_guard.ts";
import { OutcomeUnknownError, TimeoutError } from "../failure/classes.ts";
import { FelixError } from "../failure/felix_error.ts";
import type { FeatureName } from "../features.ts";
import type { RetryState } from "../link/retrier.ts";
import type { Route } from "../routing/route.ts";
import type { CallOptions } from "../types.ts";
import type { CachePieces } from "./cache_frames.ts";

/** What is asked. */
export type CacheKind = "get" | "put" | "delete" | "counterAdd" | "counterGet";

/** What a request is answered with: a value, the sum of a counter, nothing. */
export type CacheAnswer = Uint8Array | bigint | null;

/** What a kind of request is called, and whether it only reads. */
const KINDS: Readonly<Record<CacheKind, { readonly operation: string; readonly reads: boolean }>> =
  {
    get: { operation: "cache.get", reads: true },
    put: { operation: "cache.put", reads: false },
    delete: { operation: "cache.delete", reads: false },
    counterAdd: { operation: "counter.add", reads: false },
    counterGet: { operation: "counter.get", reads: true },
  };

/** What requests of a kind are called in errors and hooks. */
export function operationOf(kind: CacheKind): string {
  return KINDS[kind].operation;
}

/** One cache as requests see it. */
export interface CacheScope {
  readonly namespace: string;
  readonly cache: string;
  /** `namespace/cache`. */
  readonly resource: string;
  readonly pieces: CachePieces;
  readonly route: Route;
}

/** What a request carries. */
export interface CacheRequest {
  readonly kind: CacheKind;
  readonly key: string;
  readonly value: Uint8Array | null;
  readonly ttlMs: number | null;
  readonly idempotentRetry: boolean;
  /** For kinds without a short cut: the message that asks, and what the broker must serve. */
  readonly other: OtherRequest | null;
}

/** A request that the codec writes. */
export interface OtherRequest {
  readonly feature: FeatureName;
  message(requestId: bigint): Message;
}

/** One cache request. */
export class CacheCall implements RetryState {
  readonly scope: CacheScope;
  readonly request: CacheRequest;
  readonly startedMs: number;
  readonly deadlineMs: number;
  readonly promise: Promise<CacheAnswer>;
  readonly retrySafe = true;
  attempts = 0;
  notFoundSinceMs = 0;
  state: "waiting" | "sent" | "backoff" | "done" = "waiting";
  /** Where the value begins in its answer, less what the request id needs. */
  keyEnd = 0;
  sentMs = 0;
  /** Its number on the stream it was sent on. */
  requestId = 0;
  /** Whether it went to a remembered owner. */
  viaOwner = false;
  /** Its shard; 0 where it does not matter. */
  shard = 0;
  /** Whether it counts as in flight. */
  counted = false;
  /** Whether an earlier attempt's outcome is unknown. */
  ambiguous = false;
  readonly #settled: (call: CacheCall, answer: CacheAnswer | undefined) => void;
  readonly #stopWatching: (() => void) | null;
  #resolve!: (answer: CacheAnswer) => void;
  #reject!: (error: unknown) => void;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** A request that nothing was done for yet; `settled` is told once, with the answer. */
  constructor(
    scope: CacheScope,
    request: CacheRequest,
    options: CallOptions,
    defaultTimeoutMs: number,
    nowMs: number,
    settled: (call: CacheCall, answer: CacheAnswer | undefined) => void,
  ) {
    this.scope = scope;
    this.request = request;
    this.startedMs = nowMs;
    this.deadlineMs = this.startedMs + (options.timeoutMs ?? defaultTimeoutMs);
    this.#settled = settled;
    this.promise = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    this.#stopWatching = options.signal === undefined && options.timeoutMs === undefined
      ? null
      : watchCall(options, (reason) => this.cancel(reason), () => this.cancel(this.#expired()));
  }

  get operation(): string {
    return operationOf(this.request.kind);
  }

  /** Whether it changes nothing. */
  get reads(): boolean {
    return KINDS[this.request.kind].reads;
  }

  get resource(): string {
    return this.scope.resource;
  }

  get idempotent(): boolean {
    return this.reads || this.request.idempotentRetry;
  }

  /** It was answered. */
  succeed(answer: CacheAnswer): void {
    if (this.state === "done") return;
    this.#done();
    this.#resolve(answer);
    this.#settled(this, answer);
  }

  /** It failed for good. */
  fail(error: unknown): void {
    if (this.state === "done") return;
    this.#done();
    this.#reject(error);
    this.#settled(this, undefined);
  }

  /** Gives it up: a write that may have been applied says so. */
  cancel(reason: unknown): void {
    const certain = this.reads || (this.state !== "sent" && !this.ambiguous);
    if (this.state === "done") return;
    if (certain) return this.fail(reason);
    this.fail(this.unknown(reason, undefined, "given up before the answer came"));
  }

  /** Gives it up when its time is over. */
  expire(nowMs: number): void {
    if (this.state !== "done" && nowMs >= this.deadlineMs) this.cancel(this.#expired());
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
      retryable: this.reads,
    });
  }

  #done(): void {
    this.state = "done";
    this.#stopWatching?.();
    if (this.#timer !== undefined) clearTimeout(this.#timer);
  }
}
