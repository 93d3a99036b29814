// One batch of an idempotent producer from the call until it is known to be written. The rule: its
// caller may give it up, but once it has a number it is kept and finished, because nothing else may
// ever be sent under that number (spec/client.md §6).

import type { BudgetWaiter } from "../byte_budget.ts";
import { watchCall } from "../call_guard.ts";
import { OutcomeUnknownError, TimeoutError } from "../failure/classes.ts";
import type { CallOptions } from "../types.ts";
import type { PublishResult } from "./publish_options.ts";

/** What a batch is made of. */
export interface BatchContent {
  readonly operation: string;
  readonly resource: string;
  readonly payloads: readonly Uint8Array[];
  readonly key: Uint8Array | null;
  readonly budgetBytes: number;
}

/** One batch. */
export class ProducerBatch implements BudgetWaiter {
  readonly content: BatchContent;
  readonly promise: Promise<PublishResult>;
  /** Its number on its shard; `null` until it is first sent. */
  sequence: bigint | null = null;
  /** Its number on the present stream. */
  requestId = 0;
  attempts = 0;
  /** An attempt of it was not answered, or not with certainty. */
  ambiguous = false;
  /** Its caller has been told. */
  settled = false;
  readonly #onAdmitted: (batch: ProducerBatch) => void;
  readonly #onGivenUp: (batch: ProducerBatch) => void;
  readonly #stopWatching: (() => void) | null;
  #resolve!: (result: PublishResult) => void;
  #reject!: (error: unknown) => void;

  /** `onAdmitted`: it got its bytes; `onGivenUp`: its caller waits no longer. */
  constructor(
    content: BatchContent,
    options: CallOptions,
    timeoutMs: number,
    on: {
      admitted: (batch: ProducerBatch) => void;
      givenUp: (batch: ProducerBatch) => void;
    },
  ) {
    this.content = content;
    this.#onAdmitted = on.admitted;
    this.#onGivenUp = on.givenUp;
    this.promise = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    const limits = timeoutMs === Infinity ? options : { ...options, timeoutMs };
    this.#stopWatching = watchCall(
      limits,
      (reason) => this.#giveUp(reason),
      () => this.#giveUp(this.#expired(timeoutMs)),
    );
  }

  /** Bytes of the budget that it holds until it is known to be written. */
  get budgetBytes(): number {
    return this.content.budgetBytes;
  }

  /** The budget let it in. */
  admitted(): void {
    this.#onAdmitted(this);
  }

  /** It is written. */
  succeed(offset: bigint | null, shard: number, broker: string): void {
    if (!this.#settle()) return;
    const { attempts, content: { payloads } } = this;
    this.#resolve({
      offset,
      count: payloads.length,
      shard,
      broker,
      forwarded: false,
      attempts,
      mayBeDuplicated: false,
    });
  }

  /** Its caller is told `error`, or that the outcome is unknown where it is. */
  fail(error: unknown): void {
    if (!this.#settle()) return;
    this.#reject(
      this.ambiguous && !(error instanceof OutcomeUnknownError)
        ? this.#unknown(error, "the batch may have been written; the producer keeps it")
        : error,
    );
  }

  #giveUp(reason: unknown): void {
    if (!this.#settle()) return;
    const sent = this.sequence !== null;
    this.#reject(sent ? this.#unknown(reason, "given up before the answer came") : reason);
    this.#onGivenUp(this);
  }

  #settle(): boolean {
    if (this.settled) return false;
    this.settled = true;
    this.#stopWatching?.();
    return true;
  }

  #unknown(cause: unknown, message: string): OutcomeUnknownError {
    const { content: { operation, resource }, attempts } = this;
    return new OutcomeUnknownError({ message, operation, resource, attempts, cause });
  }

  #expired(limitMs: number): TimeoutError {
    const { content: { operation, resource }, attempts } = this;
    return new TimeoutError(limitMs, {
      message: `${operation} took longer than ${limitMs} ms`,
      operation,
      resource,
      attempts,
      retryable: false,
    });
  }
}
