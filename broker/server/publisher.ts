// The publishes of one stream: decoded, checked, handed to the pipeline, and answered. Every acked
// publish gets exactly one answer with its request id; with a granted window the answers leave in
// the order the stream carried the publishes (spec/wire.md §8).

import {
  decodePublish,
  FEATURE_ACK_ON_COMMIT,
  FEATURE_SEQUENCE_REUSED,
  FLAG_BINARY_PUBLISH_ACK_OFFSET,
  shardForKey,
  WireError,
} from "@felix/wire";
import type {
  PublishBatchMessage,
  PublishFrame,
  PublishIdempotentMessage,
  PublishMessage,
} from "@felix/wire";
import { hasRecordOver, recordBatchOf } from "../core/mod.ts";
import type { ConnectionBudget, ProducerStamp, PublishOutcome, RecordBatch } from "../core/mod.ts";
import type { TenantRow } from "../metrics/tenant_counters.ts";
import type { BrokerContext } from "./context.ts";
import { offers } from "./negotiation.ts";
import type { Peer } from "./negotiation.ts";
import type { Outbox } from "./outbox.ts";
import { encodeAnswer } from "./publish_answer.ts";
import type { Answer } from "./publish_answer.ts";
import { PublishRequest, refusalOf } from "./publish_request.ts";
import { encodeError, REFUSAL, streamNotFound } from "./refusal.ts";
import type { Refusal } from "./refusal.ts";
import { PublishScopes } from "./publish_scopes.ts";
import type { PublishScope } from "./publish_scopes.ts";

/** Largest single record (spec/wire.md §1.7). */
export const MAX_RECORD_BYTES = 8 * 1024 * 1024;

/** What became of a publish frame, for the stream that carried it. */
export type PublishVerdict = "taken" | "end";

/** Publishes of one authenticated stream. */
export class Publisher {
  readonly peer: Peer;
  readonly #context: BrokerContext;
  readonly #budget: ConnectionBudget;
  readonly #outbox: Outbox | null;
  readonly #scopes: PublishScopes;
  readonly #acksFollowWrite: boolean;
  readonly #tellsOffsets: boolean;
  readonly #tenant: TenantRow;
  /** Acked publishes in the order they came; only kept under a window. */
  readonly #order: Answer[] = [];
  #orderHead = 0;
  #unanswered = 0;
  #waiting = false;
  #roomWaiter: (() => void) | null = null;
  #answeredWaiter: (() => void) | null = null;
  /** While a turn runs its end flushes; answers at other times ask for a flush. */
  inTurn = false;

  /** `outbox` is `null` on a stream that only the client writes: nothing is answered there. */
  constructor(
    context: BrokerContext,
    peer: Peer,
    budget: ConnectionBudget,
    outbox: Outbox | null,
  ) {
    this.#context = context;
    this.peer = peer;
    this.#budget = budget;
    this.#outbox = outbox;
    this.#scopes = new PublishScopes(context.catalog.streams, peer);
    this.#tenant = context.metrics.tenants.row(peer.tenant);
    this.#tellsOffsets = (peer.flags & FLAG_BINARY_PUBLISH_ACK_OFFSET) !== 0;
    this.#acksFollowWrite = context.settings.ackOnCommit || offers(peer, FEATURE_ACK_ON_COMMIT);
  }

  /** Acked publishes that have not been answered. */
  get unanswered(): number {
    return this.#unanswered;
  }

  /** Whether the stream must not be read on: the window is used up, or a publish waits for room. */
  get full(): boolean {
    const window = this.peer.publishWindow || this.#context.settings.publishWindow || 256;
    return this.#waiting || this.#unanswered >= window;
  }

  /** Resolves when `full` has become false. */
  room(): Promise<void> {
    if (!this.full) return Promise.resolve();
    return new Promise((resolve) => {
      this.#roomWaiter = resolve;
    });
  }

  /** Resolves when every acked publish has been answered. */
  async allAnswered(): Promise<void> {
    while (this.#unanswered > 0) {
      await new Promise<void>((resolve) => {
        this.#answeredWaiter = resolve;
      });
    }
  }

  /** Takes one binary publish frame. */
  frame(flags: number, payload: Uint8Array): PublishVerdict {
    let publish: PublishFrame;
    try {
      publish = decodePublish(flags, payload);
    } catch (error) {
      return this.#undecodable(error);
    }
    const acked = publish.ack !== 0;
    if (acked && this.#outbox === null) return "end";
    const scope = this.#scopes.ofFrame(publish);
    if (scope.refusal !== null) {
      if (!acked) return "end";
      this.#refuse(publish.requestId, true, REFUSAL.forbidden);
      return "taken";
    }
    const { key, requestId, producerId, sequence } = publish;
    if (producerId === undefined) {
      this.#submit(scope, key, undefined, publish, requestId, true, acked, null);
    } else {
      // Its answers are JSON, whatever form it came in (spec/wire.md §5.4).
      const stamp = { producerId, sequence: sequence! };
      this.#submit(scope, key, undefined, publish, requestId, false, true, stamp);
    }
    return "taken";
  }

  /** Takes one JSON publish; `end` after a refusal that ends the stream. */
  message(
    message: PublishMessage | PublishBatchMessage | PublishIdempotentMessage,
  ): PublishVerdict {
    this.#context.metrics.publish.json(message.type);
    const single = message.type === "publish";
    const stamp = message.type === "publish_idempotent"
      ? { producerId: message.producer_id, sequence: message.sequence }
      : null;
    const unacked = "ack" in message && message.ack === "none";
    const acked = !unacked && this.#outbox !== null;
    const requestId = message.request_id;
    const scope = this.#scopes.ofNames(message.tenant_id, message.namespace, message.stream);
    if (scope.refusal !== null) {
      if (this.#outbox === null) return "end";
      const tenantMismatch = scope.refusal === REFUSAL.tenantMismatch;
      if (acked && requestId !== undefined && !tenantMismatch) {
        this.#refuse(requestId, false, scope.refusal);
      } else encodeError(scope.refusal, this.peer.readsCodes, this.#outbox.writer);
      return "end";
    }
    if (acked && requestId === undefined) {
      const refusal = single ? REFUSAL.noRequestId : REFUSAL.noRequestIdBatch;
      encodeError(refusal, this.peer.readsCodes, this.#outbox!.writer);
      return "taken";
    }
    const batch = recordBatchOf(single ? [message.payload] : message.payloads);
    const { key, shard } = message;
    this.#submit(scope, key ?? null, shard, batch, requestId ?? 0n, false, acked, stamp);
    return "taken";
  }

  #undecodable(error: unknown): PublishVerdict {
    if (!(error instanceof WireError)) throw error;
    this.#context.metrics.wire.malformedFrames++;
    const body = error.code === "malformed_body" && error.requestId !== undefined;
    if (!body || this.#outbox === null) return "end";
    this.#refuse(error.requestId, true, REFUSAL.malformedBatch);
    return "taken";
  }

  #submit(
    scope: PublishScope,
    key: Uint8Array | null,
    explicitShard: number | undefined,
    publish: Pick<PublishFrame, "records" | "count" | "payloadBytes"> | RecordBatch,
    requestId: bigint,
    binary: boolean,
    acked: boolean,
    stamp: ProducerStamp | null,
  ): void {
    const stream = scope.stream();
    if (stream === undefined) {
      this.#drop(
        requestId,
        binary,
        acked,
        streamNotFound(scope.tenant, scope.namespace, scope.name),
      );
      return;
    }
    const { shards, routing } = stream.definition;
    const index = explicitShard ?? (shards === 1 ? 0 : shardForKey(key, shards, routing));
    const shard = stream.shards[index];
    if (shard === undefined) {
      this.#drop(requestId, binary, acked, REFUSAL.shardRange);
      return;
    }
    const batch: RecordBatch = "body" in publish
      ? publish
      : { body: publish.records, count: publish.count, payloadBytes: publish.payloadBytes };
    if (batch.payloadBytes > MAX_RECORD_BYTES && hasRecordOver(batch, MAX_RECORD_BYTES)) {
      this.#drop(requestId, binary, acked, REFUSAL.recordTooLarge);
      return;
    }
    if (stamp !== null && batch.count === 0) {
      this.#refuse(requestId, binary, REFUSAL.emptyBatch);
      return;
    }
    const now = this.#context.nowMs();
    const request = new PublishRequest(
      this,
      requestId,
      binary,
      acked,
      shard,
      batch,
      this.#budget,
      now,
      stamp,
    );
    if (acked) this.#expect(request);
    const submitted = this.#context.pipeline.submit(request, now);
    if (submitted === "waiting") this.#waiting = true;
    else if (acked && stamp === null && !this.#acksFollowWrite && !request.settled) {
      request.settled = true;
      this.#accepted("ok", request);
      this.#context.metrics.publish.latency(this.#context.nowMs() - now, "enqueue");
      this.#answerReady(request);
    }
  }

  /** A publish refused before the pipeline: answered when acked, else dropped and counted. */
  #drop(requestId: bigint, binary: boolean, acked: boolean, refusal: Refusal): void {
    if (acked) this.#refuse(requestId, binary, refusal);
    else this.#context.metrics.publish.result("dropped", 0);
  }

  #refuse(requestId: bigint, binary: boolean, refusal: Refusal): void {
    const answer: Answer = { requestId, binary, refusal, offset: -1, settled: true };
    this.#context.metrics.publish.result("error", 0);
    this.#expect(answer);
    this.#answerReady(answer);
  }

  #expect(answer: Answer): void {
    this.#unanswered++;
    if (this.peer.publishWindow > 0) this.#order.push(answer);
  }

  /** A waiting publish found room (called by the pipeline). */
  admitted(): void {
    this.#waiting = false;
    this.#wakeReader();
  }

  /** The pipeline's verdict on a request (called by the pipeline, once per request). */
  settled(request: PublishRequest, outcome: PublishOutcome): void {
    this.#waiting = false;
    const { publish } = this.#context.metrics;
    if (!request.acked) {
      if (outcome.kind === "written") this.#accepted("accepted", request);
      else publish.result("dropped", 0);
      this.#wakeReader();
      return;
    }
    if (request.settled) return this.#afterEnqueueAck(outcome);
    request.settled = true;
    if (outcome.kind === "written") {
      if (outcome.durable && this.#tellsOffsets) request.offset = outcome.offset;
      this.#accepted("ok", request);
      publish.latency(this.#context.nowMs() - request.startedMs);
    } else this.#refused(request, outcome);
    this.#answerReady(request);
  }

  #refused(request: PublishRequest, outcome: Exclude<PublishOutcome, { kind: "written" }>): void {
    if (outcome.kind === "sequence_refused" && outcome.reason === "sequence_reused") {
      // To a client that knows no such refusal it is a duplicate; nothing is written either way.
      if (!offers(this.peer, FEATURE_SEQUENCE_REUSED)) {
        if (outcome.durable && this.#tellsOffsets) request.offset = outcome.offset;
        this.#context.metrics.publish.result("ok", 0);
        return;
      }
    }
    this.#context.metrics.publish.result("error", 0);
    request.refusal = refusalOf(outcome, request);
  }

  #accepted(result: "ok" | "accepted", { batch }: PublishRequest): void {
    this.#context.metrics.publish.result(result, batch.payloadBytes);
    this.#tenant.publishedMessages += batch.count;
    this.#tenant.publishedBytes += batch.payloadBytes;
  }

  /** The client has its answer; one that turned out wrong is counted (spec/semantics.md §2.1). */
  #afterEnqueueAck(outcome: PublishOutcome): void {
    if (outcome.kind === "written") return;
    const reason = outcome.kind === "refused" ? "not_found" : "internal";
    this.#context.metrics.publish.ackedDropped[reason]++;
  }

  #answerReady(answer: Answer): void {
    if (this.peer.publishWindow === 0) {
      this.#write(answer);
    } else {
      const order = this.#order;
      if (order[this.#orderHead] !== answer) return;
      while (this.#orderHead < order.length && order[this.#orderHead]!.settled) {
        this.#write(order[this.#orderHead++]!);
      }
      if (this.#orderHead === order.length) {
        order.length = 0;
        this.#orderHead = 0;
      } else if (this.#orderHead >= 1024) {
        order.splice(0, this.#orderHead);
        this.#orderHead = 0;
      }
    }
    if (!this.inTurn) this.#context.turn.flushLater(this.#outbox!);
    this.#wakeReader();
  }

  #write(answer: Answer): void {
    this.#unanswered--;
    encodeAnswer(answer, this.peer, this.#outbox!.writer);
  }

  #wakeReader(): void {
    if (this.#unanswered === 0 && this.#answeredWaiter !== null) {
      this.#answeredWaiter();
      this.#answeredWaiter = null;
    }
    const wake = this.#roomWaiter;
    if (wake === null || this.full) return;
    this.#roomWaiter = null;
    wake();
  }
}
