// The way of a publish: room, queue, lane, append, answer (spec/semantics.md §3). `submit` queues,
// `pump` runs whatever can run, synchronously; a publish that stays behind waits for room or for
// its shard, within bounds. Every job gets exactly one outcome (B10) and every byte is given back
// (B9).

import { Admission } from "./admission.ts";
import type { Room } from "./admission.ts";
import { invariant } from "./core_error.ts";
import { Deadlines } from "./deadlines.ts";
import { FairQueue } from "./fair_queue.ts";
import type { Lane } from "./fair_queue.ts";
import { ConnectionBudget } from "./publish_job.ts";
import { publishOnce } from "./idempotent_publish.ts";
import type { PipelineSettings, PublishJob, PublishOutcome } from "./publish_job.ts";
import {
  APPEND_FAILED,
  NOT_FOUND,
  OVERLOADED,
  refused,
  SHED,
  UNKNOWN,
} from "./publish_outcomes.ts";
import { MAX_CLAIM_JOBS } from "./publish_counters.ts";
import type { PublishCounters } from "./publish_counters.ts";
import { DONE, QUEUED, QueuedPublish, WAITING } from "./queued_publish.ts";
import { ShardLanes } from "./shard_lanes.ts";
import type { StreamShard } from "./stream_shard.ts";
import { StorageError } from "@felix/storage";

/** Bytes that a claim takes behind its first publish. */
export const MAX_CLAIM_BYTES_BEHIND: number = 1024 * 1024;

/** What `submit` did: `waiting` = read no more of that stream until `onAdmitted` or `settle`. */
export type Submitted = "queued" | "waiting" | "settled";

/** The publishes of one broker process, from submission to outcome. */
export class PublishPipeline {
  /** Called, outside `pump`, when there is something to pump though nothing was submitted. */
  onRunnable: (() => void) | null = null;
  /** Told why a log did not take a claim or may have lost it, once per claim. */
  onStorageFailure: ((shard: StreamShard, failure: StorageError) => void) | null = null;
  /** Told what an append or a callback threw; without it `pump` throws the first such error. */
  onFault: ((error: unknown) => void) | null = null;

  readonly #settings: PipelineSettings;
  readonly #counters: PublishCounters;
  readonly #queue: FairQueue<QueuedPublish>;
  readonly #admission: Admission;
  readonly #deadlines = new Deadlines();
  readonly #lanes: ShardLanes<QueuedPublish>;
  /** Publishes submitted since `ownPending`: their bodies may be views of a read buffer. */
  #recent: QueuedPublish[] = [];
  /** The claim being made. */
  readonly #claim: QueuedPublish[] = [];
  /** Publishes whose claim waits for its flush. */
  #staged = 0;
  #pumping = false;
  #fault: { readonly error: unknown } | null = null;

  /** `counters` are bumped in place. */
  constructor(settings: PipelineSettings, counters: PublishCounters) {
    const { inflightBytes, connectionInflightBytes } = settings;
    invariant(
      inflightBytes >= 1 && connectionInflightBytes >= 1,
      "B9: a budget has a byte or more",
    );
    this.#settings = settings;
    this.#counters = counters;
    this.#queue = new FairQueue({ share: settings.queueDepth, executors: settings.executors });
    this.#admission = new Admission(this.#queue, inflightBytes);
    this.#lanes = new ShardLanes(this.#queue, () => this.#askForPump());
  }

  /** Publishes in the queue. */
  get queuedJobs(): number {
    return this.#queue.queued;
  }

  /** Bytes charged to the budget of the process. */
  get queuedBytes(): number {
    return this.#admission.usedBytes;
  }

  /** Publishes that wait for room. */
  get waitingJobs(): number {
    return this.#admission.waiting;
  }

  /** The byte budget of a new connection. */
  createBudget(): ConnectionBudget {
    return new ConnectionBudget(this.#settings.connectionInflightBytes);
  }

  /**
   * The connection is gone: its publishes that wait for room are dropped and counted. Those in the
   * queue are appended all the same (spec/semantics.md §3.5).
   */
  closeBudget(budget: ConnectionBudget): void {
    if (budget.closed) return;
    budget.closed = true;
    const waiters = this.#admission.waitersOf(budget);
    for (const publish of waiters) {
      this.#counters.backpressureCancelled++;
      this.#giveUp(publish, publish.job.acked ? OVERLOADED : SHED);
    }
    if (waiters.length > 0) this.#askForPump();
    this.#raiseFault();
  }

  /** Takes a publish in. `nowMs`: monotonic milliseconds. It runs at the next `pump` or before. */
  submit(job: PublishJob, nowMs: number): Submitted {
    const { shard, budget } = job;
    if (!shard.active || budget.closed) {
      job.settle(job.acked ? (shard.active ? OVERLOADED : NOT_FOUND) : SHED);
      return "settled";
    }
    const deadlineMs = job.acked ? nowMs + this.#settings.ackWaitMs : Infinity;
    const publish = new QueuedPublish(job, this.#lanes.of(shard, job.tenant), deadlineMs);
    let room = this.#admission.enter(publish);
    if (room !== "room" && !this.#pumping) {
      // What is queued may only wait for the end of this turn: a burst in one read is no backlog.
      this.#run();
      room = this.#admission.enter(publish);
    }
    let submitted: Submitted = "queued";
    if (room === "room") {
      this.#enqueue(publish);
      this.#recent.push(publish);
    } else submitted = this.#noRoom(publish, room, nowMs);
    this.#raiseFault();
    return submitted;
  }

  /** Runs everything that can run now: tenants in turn, each lane in order, publishes in groups. */
  pump(): void {
    if (this.#pumping) return;
    this.#run();
    this.#raiseFault();
  }

  /**
   * Gives every publish that is still pending a body of its own, before the memory that it was read
   * into is used again, and starts its deadline. To be called once per read, after `pump`.
   */
  ownPending(): void {
    const recent = this.#recent;
    if (recent.length === 0) return;
    if (this.#queue.queued + this.#admission.waiting + this.#staged > 0) {
      for (const publish of recent) {
        if (publish.state === DONE) continue;
        if (!publish.owned) publish.own();
        // A publish that had to wait for room is watched since it began to.
        if (publish.job.acked && !publish.waited) this.#deadlines.add(publish);
      }
    }
    this.#recent = [];
  }

  /** When `expire` is due at the earliest, in the time of `submit`; `null` = nothing is due. */
  nextDeadline(): number | null {
    return this.#deadlines.nextMs();
  }

  /** Answers acked publishes whose time is up: no room in time, or no outcome in time. */
  expire(nowMs: number): void {
    this.#deadlines.expire(nowMs, this.#expired);
    if (this.#admission.freed) this.pump();
    this.#raiseFault();
  }

  #run(): void {
    this.#pumping = true;
    try {
      do {
        for (let lane = this.#queue.next(); lane !== null; lane = this.#queue.next()) {
          this.#runLane(lane);
        }
      } while (this.#admission.letIn(this.#admit) > 0);
    } finally {
      this.#pumping = false;
    }
  }

  #enqueue(publish: QueuedPublish): void {
    publish.state = QUEUED;
    this.#queue.push(publish.lane, publish);
  }

  #noRoom(publish: QueuedPublish, missing: Room, nowMs: number): Submitted {
    const { job } = publish;
    const { queueWaitMs, ingressWait } = this.#settings;
    if (missing === "queue") this.#counters.queueFull++;
    else if (missing === "process_bytes") this.#counters.bytesFull++;
    else this.#counters.connBytesFull++;
    if (job.acked ? queueWaitMs > 0 : ingressWait) {
      this.#counters.ingressWaited++;
      publish.waited = true;
      this.#admission.wait(publish, missing);
      this.#recent.push(publish);
      if (job.acked) {
        publish.deadlineMs = nowMs + queueWaitMs;
        this.#deadlines.add(publish);
      }
      return "waiting";
    }
    this.#counters.full(job.tenant, job.acked);
    publish.finish();
    publish.settle(job.acked ? OVERLOADED : SHED);
    return "settled";
  }

  readonly #admit = (publish: QueuedPublish): void => {
    this.#enqueue(publish);
    publish.deadlineMs += this.#settings.ackWaitMs;
    try {
      publish.job.onAdmitted?.();
    } catch (error) {
      this.#failed(error);
    }
  };

  readonly #expired = (publish: QueuedPublish): void => {
    if (publish.state === WAITING) {
      this.#counters.full(publish.job.tenant, true);
      this.#giveUp(publish, OVERLOADED);
    } else this.#settle(publish, UNKNOWN);
  };

  #giveUp(publish: QueuedPublish, outcome: PublishOutcome): void {
    this.#admission.giveUp(publish);
    publish.finish();
    this.#settle(publish, outcome);
  }

  #runLane(lane: Lane<QueuedPublish>): void {
    const { shard } = lane.jobs.front!.job;
    if (shard.active && !shard.mayAppend()) {
      this.#queue.park(lane);
      return;
    }
    const claim = this.#claim;
    this.#gather(lane);
    if (claim[0]!.producer !== null && shard.active) {
      this.#runOnce(lane, shard, claim.pop()!);
      return;
    }
    if (shard.log !== null && shard.active && claim[0]!.count > 0) {
      this.#stage(lane, shard, claim.splice(0));
      return;
    }
    const first = shard.tail;
    const failure = shard.active ? this.#append(shard, first) : NOT_FOUND;
    this.#queue.complete(lane);
    this.#finish(claim, first, false, failure);
    claim.length = 0;
  }

  /**
   * A claim of a durable shard: the lane is held until its offsets are taken, not for its flush.
   */
  #stage(lane: Lane<QueuedPublish>, shard: StreamShard, claim: QueuedPublish[]): void {
    this.#counters.claimJobs[claim.length]!++;
    const first = shard.log!.tail;
    this.#staged += claim.length;
    const held = shard.stage(claim, (failure) => {
      this.#staged -= claim.length;
      this.#finish(claim, first, true, failure === null ? null : this.#lost(shard, failure));
      if (this.#admission.freed) this.#askForPump();
    });
    // The log and the envelope have copies: what the client sent is not needed any more.
    for (const publish of claim) publish.letGo();
    this.#release(lane, held);
  }

  /**
   * A numbered batch of an idempotent producer: the lane is held until it is judged and its offsets
   * are taken.
   */
  #runOnce(lane: Lane<QueuedPublish>, shard: StreamShard, publish: QueuedPublish): void {
    const { tail } = shard;
    let held: Promise<void> | null = null;
    this.#counters.claimJobs[1]!++;
    this.#staged++;
    const done = (outcome: PublishOutcome): void => {
      this.#staged--;
      this.#finish([publish], 0, false, outcome);
      if (this.#admission.freed) this.#askForPump();
    };
    try {
      held = publishOnce(shard, publish, publish.producer!, (verdict) => {
        done(verdict instanceof StorageError ? this.#lost(shard, verdict) : verdict);
      });
    } catch (error) {
      done(this.#threw(shard, tail, error));
    }
    if (publish.state !== DONE) publish.letGo();
    this.#release(lane, held);
  }

  /** Gives a lane back, at once or when `held` resolves. */
  #release(lane: Lane<QueuedPublish>, held: Promise<void> | null): void {
    if (held === null) return this.#queue.complete(lane);
    held.then(() => {
      this.#queue.complete(lane);
      this.#askForPump();
    });
  }

  /** The outcome of publishes that the log refused or may have lost. */
  #lost(shard: StreamShard, failure: StorageError): PublishOutcome {
    this.onStorageFailure?.(shard, failure);
    return refused(failure);
  }

  /**
   * Answers the publishes of a claim that begins at `first`; `failure` is what they get instead.
   */
  #finish(
    claim: readonly QueuedPublish[],
    first: number,
    durable: boolean,
    failure: PublishOutcome | null,
  ): void {
    let offset = first;
    for (let at = 0; at < claim.length; at++) {
      const publish = claim[at]!;
      this.#admission.leave(publish);
      publish.finish();
      if (!publish.settled) this.#settle(publish, failure ?? { kind: "written", offset, durable });
      offset += publish.count;
    }
  }

  /** Takes the first publish of `lane` and those behind it that one claim may hold. */
  #gather(lane: Lane<QueuedPublish>): void {
    const claim = this.#claim;
    const queue = this.#queue;
    const first = queue.take(lane);
    claim.push(first);
    if (first.count === 0 || first.producer !== null) return;
    let bytesBehind = 0;
    while (claim.length < MAX_CLAIM_JOBS) {
      const next = queue.behind(lane);
      if (next === undefined || next.count === 0 || next.producer !== null) return;
      bytesBehind += next.bytes;
      if (bytesBehind > MAX_CLAIM_BYTES_BEHIND) return;
      claim.push(queue.takeMore(lane));
    }
  }

  /** Appends the claim; answers what its publishes get instead of `written`, or `null`. */
  #append(shard: StreamShard, first: number): PublishOutcome | null {
    const claim = this.#claim;
    if (claim[0]!.count === 0) return null;
    this.#counters.claimJobs[claim.length]!++;
    try {
      shard.append(claim);
      return null;
    } catch (error) {
      return this.#threw(shard, first, error);
    }
  }

  /** The outcome of an append that threw; `tail` is where it began. */
  #threw(shard: StreamShard, tail: number, error: unknown): PublishOutcome {
    this.#failed(error);
    // Once sequences are taken the records exist, whatever failed behind that.
    return shard.tail !== tail ? UNKNOWN : APPEND_FAILED;
  }

  #settle(publish: QueuedPublish, outcome: PublishOutcome): void {
    try {
      publish.settle(outcome);
    } catch (error) {
      this.#failed(error);
    }
  }

  #failed(error: unknown): void {
    this.#counters.workerRestarts++;
    if (this.onFault !== null) this.onFault(error);
    else this.#fault ??= { error };
  }

  #raiseFault(): void {
    if (this.#fault === null || this.#pumping) return;
    const { error } = this.#fault;
    this.#fault = null;
    throw error;
  }

  #askForPump(): void {
    if (!this.#pumping && this.onRunnable !== null) this.onRunnable();
  }
}
