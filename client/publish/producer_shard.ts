// The batches of one producer to one shard, in order. The rule: a batch gets the next number when
// it is first sent and keeps it; after any failure everything from the oldest unanswered batch on
// is sent again, in order, under the same numbers (spec/client.md §6, §12.5).

import type { ByteBudget } from "../byte_budget.ts";
import { Deque } from "../deque.ts";
import { errorFromRefusal } from "../failure/broker_failure.ts";
import {
  ClosedError,
  NotLeaderError,
  OutcomeUnknownError,
  ProducerError,
} from "../failure/classes.ts";
import type { FelixError } from "../failure/felix_error.ts";
import type { ClientCore } from "../link/client_core.ts";
import type { Fleet } from "../link/fleet.ts";
import { asFelixError, judge } from "../link/retrier.ts";
import type { RetryState } from "../link/retrier.ts";
import type { Routes } from "../routing/routes.ts";
import { monotonicMs } from "../runtime/deno.ts";
import type { ProducerBatch } from "./producer_batch.ts";
import { ProducerStream } from "./producer_stream.ts";
import type { PublishAnswer } from "./publish_answer.ts";
import type { StreamScope } from "./stream_scope.ts";

/** Redirects followed before an attempt counts as failed (spec/client.md §12.4). */
const MAX_HOPS = 3;

/** What the shards of a producer share. */
export interface ShardHost {
  readonly core: ClientCore;
  readonly fleet: Fleet;
  readonly routes: Routes;
  readonly budget: ByteBudget;
  readonly window: number;
  readonly stallMs: number;
  readonly reinitialises: boolean;
  /** A new id. @throws {FelixError} */
  newId(): Promise<bigint>;
  /** The producer cannot go on. */
  stop(error: ProducerError): void;
}

/** One shard of a producer. */
export class ProducerShard implements RetryState {
  readonly operation = "publish";
  readonly idempotent = true;
  readonly retrySafe = true;
  readonly resource: string;
  startedMs = 0;
  attempts = 0;
  notFoundSinceMs = 0;
  readonly #host: ShardHost;
  readonly #scope: StreamScope;
  readonly #shard: number;
  #producerId: bigint;
  #nextSequence = 0n;
  /** Have their numbers, oldest first; the first `unanswered` of the stream are on their way. */
  readonly #numbered: ProducerBatch[] = [];
  readonly #waiting: Deque<ProducerBatch> = new Deque();
  #stream: ProducerStream | null = null;
  #viaOwner = false;
  #hops = 0;
  #opening = false;
  #retryTimer: ReturnType<typeof setTimeout> | undefined;
  #ended = false;
  #idle: { resolve: () => void; reject: (error: unknown) => void }[] = [];

  /** Nothing sent yet. */
  constructor(host: ShardHost, scope: StreamScope, shard: number, producerId: bigint) {
    this.#host = host;
    this.#scope = scope;
    this.#shard = shard;
    this.#producerId = producerId;
    this.resource = `${scope.resource}/${shard}`;
  }

  /** Whether a batch is kept whose caller was told that its outcome is unknown. */
  get inDoubt(): boolean {
    return this.#numbered.some((batch) => batch.settled);
  }

  /** Sends a batch behind those before it. It holds its bytes. */
  enqueue(batch: ProducerBatch): void {
    this.#waiting.push(batch);
    this.#pump();
  }

  /** A batch's caller waits no longer. */
  givenUp(batch: ProducerBatch): void {
    if (batch.sequence !== null) return;
    if (this.#waiting.remove(batch)) this.#host.budget.release(batch.budgetBytes);
    this.#tellIdle();
  }

  /** Resolves once everything is written, or rejects with what stands in the way. */
  whenIdle(): Promise<void> {
    if (this.#numbered.length === 0 && this.#waiting.size === 0) return Promise.resolve();
    return new Promise((resolve, reject) => {
      this.#idle.push({ resolve, reject });
      this.#pump();
    });
  }

  /** Sends nothing more; whoever still waits is told `error`. */
  end(error: FelixError): void {
    if (this.#ended) return;
    this.#ended = true;
    clearTimeout(this.#retryTimer);
    this.#leaveStream();
    const all = [...this.#numbered.splice(0), ...this.#waiting.takeAll()];
    for (const batch of all) {
      batch.fail(error);
      this.#host.budget.release(batch.budgetBytes);
    }
    this.#rejectIdle(error);
  }

  /** Ends the stream of a shard that is given nothing more and has nothing on its way. */
  async finish(): Promise<void> {
    const stream = this.#stream;
    this.#stream = null;
    await stream?.finish();
  }

  answered(batch: ProducerBatch, answer: PublishAnswer, stream: ProducerStream): void {
    const { counters } = this.#host.core;
    const { refusal, refused } = answer;
    if (refusal === undefined) {
      this.#numbered.shift();
      this.attempts = 0;
      this.#hops = 0;
      this.notFoundSinceMs = 0;
      counters.publish.acked++;
      this.#host.budget.release(batch.budgetBytes);
      batch.succeed(answer.offset, this.#shard, stream.broker);
      this.#tellIdle();
      return this.#pump();
    }
    const { broker } = stream;
    this.#leaveStream();
    const { resource } = this;
    const init = { operation: "publish", resource, broker, attempts: batch.attempts };
    if (refused === undefined) return this.#failed(errorFromRefusal(refusal, init));
    this.#refused(refused, { ...init, message: refusal.message });
  }

  lost(cause: unknown, stream: ProducerStream): void {
    for (const batch of stream.unanswered) batch.ambiguous = true;
    this.#stream = null;
    const idle = this.#numbered.length === 0 && this.#waiting.size === 0;
    if (this.#ended || idle) return;
    this.#failed(
      new OutcomeUnknownError({
        message: "the stream ended before the batch was answered",
        operation: "publish",
        resource: this.resource,
        broker: stream.broker,
        cause: cause ?? undefined,
      }),
    );
  }

  #refused(
    reason: NonNullable<PublishAnswer["refused"]>,
    init: { message: string; operation: string; resource: string; broker: string },
  ): void {
    if (typeof reason === "object") {
      if ("not_leader" in reason) return this.#redirected(reason.not_leader, init);
      if ("sequence_gap" in reason) {
        const { expected } = reason.sequence_gap;
        const detail = { expected: String(expected) };
        return this.#host.stop(new ProducerError("sequence_gap", { ...init, detail }));
      }
      return this.#host.stop(new ProducerError("producer_stopped", init));
    }
    const once = this.#numbered.every((batch) => batch.attempts <= 1);
    if (reason === "unknown_producer" && this.#host.reinitialises && once) {
      // Nothing was taken under the old id, and nothing of it can be: no number but 0 would be.
      return void this.#reinitialise();
    }
    this.#host.stop(new ProducerError(reason, init));
  }

  async #reinitialise(): Promise<void> {
    this.#opening = true;
    try {
      this.#producerId = await this.#host.newId();
      this.#nextSequence = 0n;
      for (const batch of this.#numbered) batch.sequence = this.#nextSequence++;
      this.#opening = false;
      this.#pump();
    } catch (error) {
      this.#opening = false;
      this.#failed(asFelixError(error, "publish"));
    }
  }

  #redirected(
    leader: { readonly node_id: string; readonly addr?: string },
    init: { message: string; operation: string; resource: string; broker: string },
  ): void {
    const { route } = this.#scope;
    const generation = route.owner(this.#shard)?.generation ?? 0n;
    const told = { nodeId: leader.node_id, addr: leader.addr, generation };
    const known = this.#host.routes.learn(route, this.#shard, told);
    if (known && ++this.#hops <= MAX_HOPS) return this.#pump();
    this.#hops = 0;
    this.#viaOwner = false;
    route.forget(this.#shard);
    this.#failed(new NotLeaderError({ ...init, detail: { node_id: leader.node_id } }));
  }

  #failed(error: FelixError): void {
    if (this.#ended) return;
    const { core } = this.#host;
    if (this.attempts++ === 0) this.startedMs = monotonicMs();
    const decision = judge(core, this, error, this.#viaOwner);
    if (this.#viaOwner) this.#scope.route.forget(this.#shard, error.broker);
    if (decision.kind === "reject") return this.#giveUp(error);
    const delayMs = decision.kind === "again" ? decision.delayMs : 0;
    clearTimeout(this.#retryTimer);
    this.#opening = true;
    this.#retryTimer = setTimeout(() => {
      this.#opening = false;
      this.#pump();
    }, delayMs);
  }

  /** Tells all callers; what has a number is kept, and goes first when somebody tries again. */
  #giveUp(error: FelixError): void {
    const { counters } = this.#host.core;
    this.attempts = 0;
    this.notFoundSinceMs = 0;
    if (this.#numbered.length === 0 && error.outcomeUnknown) error = unsent(error);
    for (const batch of this.#numbered) {
      if (error.outcomeUnknown) batch.ambiguous = true;
      if (batch.ambiguous) counters.publish.outcomeUnknown++;
      else counters.publish.failed++;
      batch.fail(error);
    }
    const behind = this.#numbered.length === 0 ? error : new ProducerError("producer_in_doubt", {
      message: "batches before this one are in doubt; nothing of it was sent",
      operation: "publish",
      resource: this.resource,
      cause: error,
    });
    for (const batch of this.#waiting.takeAll()) {
      counters.publish.failed++;
      this.#host.budget.release(batch.budgetBytes);
      batch.fail(behind);
    }
    this.#rejectIdle(error);
  }

  #pump(): void {
    if (this.#ended || this.#opening) return;
    const stream = this.#stream;
    if (stream === null) {
      if (this.#numbered.length + this.#waiting.size > 0) void this.#open();
      return;
    }
    while (stream.hasRoom) {
      const at = stream.unanswered.length;
      if (at === this.#numbered.length) {
        const next = this.#waiting.shift();
        if (next === undefined) return;
        next.sequence = this.#nextSequence++;
        this.#numbered.push(next);
      }
      stream.send(this.#numbered[at]!, this.#producerId);
    }
  }

  async #open(): Promise<void> {
    const { routes, fleet, window, stallMs } = this.#host;
    this.#opening = true;
    try {
      const owner = routes.ownerOf(this.#scope.route, this.#shard);
      this.#viaOwner = owner !== null;
      const broker = owner ?? await fleet.reach();
      const link = await broker.pool("publish").acquire();
      const channel = await link.openChannel();
      if (this.#ended) return void channel.finish();
      this.#stream = new ProducerStream(channel, this.#scope, this, { window, stallMs });
      this.#opening = false;
      this.#pump();
    } catch (error) {
      this.#opening = false;
      this.#failed(asFelixError(error, "publish"));
    }
  }

  #leaveStream(): void {
    const stream = this.#stream;
    if (stream === null) return;
    this.#stream = null;
    for (const batch of stream.unanswered) batch.ambiguous = true;
    stream.leave();
  }

  #tellIdle(): void {
    if (this.#numbered.length > 0 || this.#waiting.size > 0) return;
    for (const { resolve } of this.#idle.splice(0)) resolve();
  }

  #rejectIdle(error: unknown): void {
    for (const { reject } of this.#idle.splice(0)) reject(error);
  }
}

/** The failure of a stream that nothing was sent on. */
function unsent(error: FelixError): FelixError {
  return error.cause === undefined
    ? new ClosedError({ message: "the stream ended", operation: "publish" })
    : asFelixError(error.cause, "publish");
}
