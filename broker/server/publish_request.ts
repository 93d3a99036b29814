// One publish on its way through the pipeline, as its stream knows it, and what its client is told
// when it was not written. One object per publish: it is the job, and later the answer.

import type {
  ConnectionBudget,
  ProducerStamp,
  PublishJob,
  PublishOutcome,
  RecordBatch,
  SequenceRefusal,
  StreamShard,
} from "../core/mod.ts";
import type { Answer } from "./publish_answer.ts";
import { streamNotFound } from "./refusal.ts";
import type { Refusal } from "./refusal.ts";

/** Who is told about a request. */
export interface RequestOwner {
  readonly peer: { readonly tenant: string };
  /** The pipeline's verdict; once per request. */
  settled(request: PublishRequest, outcome: PublishOutcome): void;
  /** A request that had to wait has found room. */
  admitted(): void;
}

/** One acked or unacked publish. */
export class PublishRequest implements PublishJob, Answer {
  refusal: Refusal | null = null;
  offset = -1;
  settled = false;
  readonly tenant: string;

  /** `producer` is `null` unless the batch is numbered. */
  constructor(
    readonly owner: RequestOwner,
    readonly requestId: bigint,
    readonly binary: boolean,
    readonly acked: boolean,
    readonly shard: StreamShard,
    readonly batch: RecordBatch,
    readonly budget: ConnectionBudget,
    readonly startedMs: number,
    readonly producer: ProducerStamp | null,
  ) {
    this.tenant = owner.peer.tenant;
  }

  settle(outcome: PublishOutcome): void {
    this.owner.settled(this, outcome);
  }

  onAdmitted(): void {
    this.owner.admitted();
  }
}

/** How an outcome that is no success is said. */
export function refusalOf(
  outcome: Exclude<PublishOutcome, { kind: "written" }>,
  request: PublishRequest,
): Refusal {
  switch (outcome.kind) {
    case "refused":
      if (outcome.code === "not_found") {
        const { tenant, namespace, stream } = request.shard.stream.definition;
        return streamNotFound(tenant, namespace, stream);
      }
      return {
        code: "overloaded",
        message: "publish queue full; retry in 10 ms",
        reason: outcome.reason,
        retryAfterMs: outcome.retryAfterMs,
      };
    case "unknown":
      return { code: "unacknowledged", message: "the outcome of the publish did not come in time" };
    case "failed":
      if (outcome.code === "internal") return { code: "internal", message: outcome.message };
      return {
        code: "storage",
        message: outcome.message,
        ...(outcome.unsure ? {} : { retry: "retry" }),
      };
    case "sequence_refused":
      return sequenceRefusal(outcome, request);
    case "shed":
      return { code: "overloaded", message: "server overloaded" };
  }
}

function sequenceRefusal(outcome: SequenceRefusal, { producer }: PublishRequest): Refusal {
  const batch = `sequence ${producer?.sequence} of producer ${producer?.producerId}`;
  const code = "invalid_request";
  switch (outcome.reason) {
    case "sequence_gap": {
      const { expected } = outcome;
      const refused = { sequence_gap: { expected } };
      return { code, message: `${batch}: expected ${expected}`, refused };
    }
    case "sequence_reused":
      return { code, message: `${batch} was used for other records`, refused: outcome.reason };
    case "sequence_expired":
      return { code, message: `${batch} is no longer remembered`, refused: outcome.reason };
    case "unknown_producer":
      return { code, message: `${batch}: the producer is not known`, refused: outcome.reason };
  }
}
