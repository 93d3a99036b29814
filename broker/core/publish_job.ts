// What the publish pipeline is given and what it answers: a job per publish, exactly one outcome
// per job (B10), and the byte budget that the jobs of one connection share.

import type { ProducerStamp, SequenceRefusal } from "./idempotent_publish.ts";
import type { RecordBatch } from "./record_batch.ts";
import type { StreamShard } from "./stream_shard.ts";

/** What became of a publish (spec/semantics.md §3.1, §2.1). */
export type PublishOutcome =
  /** Appended and fanned out; `offset` = sequence of the job's first record. */
  | { readonly kind: "written"; readonly offset: number; readonly durable: boolean }
  /** Nothing was appended: there was no room, or not in time. */
  | {
    readonly kind: "refused";
    readonly code: "overloaded";
    readonly reason: "publish_queue_full";
    readonly retryAfterMs: number;
  }
  /** Nothing was appended: the stream has been removed. */
  | { readonly kind: "refused"; readonly code: "not_found" }
  /** Nothing was appended: a producer's batch whose number does not fit. */
  | SequenceRefusal
  /** An unacked publish was dropped; nothing was appended. */
  | { readonly kind: "shed" }
  /** It may be appended, or may yet be: the answer did not come in time. */
  | { readonly kind: "unknown"; readonly code: "unacknowledged" }
  /** The append failed; nothing was appended. */
  | { readonly kind: "failed"; readonly code: "internal"; readonly message: string }
  /** The log refused it, and nothing was appended, or `unsure`: its flush failed. */
  | {
    readonly kind: "failed";
    readonly code: "storage";
    readonly message: string;
    readonly unsure: boolean;
  };

/** One publish on its way to one shard. */
export interface PublishJob {
  /** The shard's tenant. */
  readonly tenant: string;
  readonly shard: StreamShard;
  /** Read until the job is settled or `ownPending` returned; may be a view of a read buffer. */
  readonly batch: RecordBatch;
  /** Budget of the connection that it came on. */
  readonly budget: ConnectionBudget;
  /** The batch is one of an idempotent producer's and holds a record or more; `null`: it is not. */
  readonly producer?: ProducerStamp | null;
  /** Somebody waits for the outcome. */
  readonly acked: boolean;
  /** Called exactly once, possibly within `submit` or `pump`. */
  settle(outcome: PublishOutcome): void;
  /** Called when a job that had to wait has found room and is queued. */
  onAdmitted?(): void;
}

/** Bytes of publishes of one connection that are queued or being processed. */
export class ConnectionBudget {
  /** Bytes charged now. */
  used = 0;
  /** Jobs of this connection that wait for its bytes; the pipeline's own. */
  waiting = 0;
  /** The connection is gone. */
  closed = false;

  /** Made by `PublishPipeline.createBudget`. */
  constructor(readonly limitBytes: number) {}
}

/** Bounds and waits of the publish pipeline (spec/operations.md §3.3). */
export interface PipelineSettings {
  /** Lanes that may be held at once; with `queueDepth` the capacity of the queue. */
  readonly executors: number;
  /** Slots that each tenant can count on. */
  readonly queueDepth: number;
  /** Bytes queued or being processed in the whole process. */
  readonly inflightBytes: number;
  /** The same of one connection. */
  readonly connectionInflightBytes: number;
  /** Unacked publishes wait for room instead of being shed. */
  readonly ingressWait: boolean;
  /** How long an acked publish waits for room; 0 = it is refused at once. */
  readonly queueWaitMs: number;
  /** How long a queued acked publish may stay unanswered. */
  readonly ackWaitMs: number;
}
