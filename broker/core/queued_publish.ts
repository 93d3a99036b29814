// One publish inside the pipeline: its job, its body (a view of a read buffer until it has to
// outlive the read), what it is charged, and how far it has come. One object per publish, one shape
// for all.

import { invariant } from "./core_error.ts";
import type { Lane, QueuedJob } from "./fair_queue.ts";
import type { ProducerStamp } from "./idempotent_publish.ts";
import type { PublishJob, PublishOutcome } from "./publish_job.ts";
import type { RecordBatch } from "./record_batch.ts";

/** How far a publish has come. */
export const ADMITTING = 0;
/** It has no room yet. */
export const WAITING = 1;
/** It stands in its lane. */
export const QUEUED = 2;
/** It has left the pipeline. */
export const DONE = 3;

const NO_BYTES = new Uint8Array(0);

/** A publish in the pipeline. */
export class QueuedPublish implements RecordBatch, QueuedJob {
  body: Uint8Array;
  readonly count: number;
  readonly payloadBytes: number;
  readonly producer: ProducerStamp | null;
  /** Its cost in the fair queue: payload bytes, but a record costs 1 or more. */
  readonly cost: number;
  /** Its bytes, the lengths in front of records included: else empty records were free. */
  readonly bytes: number;
  /** How far it has come. */
  state: 0 | 1 | 2 | 3 = ADMITTING;
  /** The job has had its outcome. */
  settled = false;
  /** It had to wait for room. */
  waited = false;
  /** `body` is the pipeline's own copy. */
  owned = false;
  /** When an acked job is answered without an outcome; `Infinity` = never. */
  deadlineMs: number;

  /** A job bound for `lane`. */
  constructor(
    readonly job: PublishJob,
    readonly lane: Lane<QueuedPublish>,
    deadlineMs: number,
  ) {
    const { batch } = job;
    this.body = batch.body;
    this.count = batch.count;
    this.payloadBytes = batch.payloadBytes;
    this.producer = job.producer ?? null;
    this.bytes = batch.body.length;
    this.cost = Math.max(1, batch.payloadBytes, batch.count);
    this.deadlineMs = deadlineMs;
  }

  /** Copies the body, which so far is a view of somebody's read buffer. */
  own(): void {
    this.owned = true;
    this.body = this.body.slice();
  }

  /** Lets go of the body; its records have been copied. */
  letGo(): void {
    this.owned = true;
    this.body = NO_BYTES;
  }

  /** Leaves the pipeline and lets go of the body. */
  finish(): void {
    this.state = DONE;
    this.body = NO_BYTES;
  }

  /** Gives the job its outcome, once. */
  settle(outcome: PublishOutcome): void {
    invariant(!this.settled, "B10: a job gets one outcome");
    this.settled = true;
    this.job.settle(outcome);
  }
}
