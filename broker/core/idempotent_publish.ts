// A numbered batch of an idempotent producer meets its shard (spec/semantics.md §5.1): the table
// decides, and what it lets in is appended in the same turn, so nothing comes between. Rules: a
// duplicate is answered only when the original is kept (B13); the table learns of a batch from its
// append and from nothing else, so a failed one changes nothing.

import { RecordKind } from "@felix/storage";
import type { BatchTag, NewRecord, StorageError } from "@felix/storage";
import { RECORD_PREFIX_BYTES, recordsAt, skipRecords } from "./record_batch.ts";
import type { RecordBatch } from "./record_batch.ts";
import type { StreamShard } from "./stream_shard.ts";

/** Whose batch it is and which one. */
export interface ProducerStamp {
  /** u64. */
  readonly producerId: bigint;
  /** Number of the batch, per producer and shard from 0; u64. */
  readonly sequence: bigint;
}

/** Why a batch was not appended. */
export type SequenceRefusal =
  /** Batches between are missing; `expected` is the next. */
  | {
    readonly kind: "sequence_refused";
    readonly reason: "sequence_gap";
    readonly expected: bigint;
  }
  /** Its number was used for other payloads; `offset` is where those begin, and they are kept. */
  | {
    readonly kind: "sequence_refused";
    readonly reason: "sequence_reused";
    readonly offset: number;
    readonly durable: boolean;
  }
  /** It is older than what is remembered, or nothing is remembered of its producer. */
  | {
    readonly kind: "sequence_refused";
    readonly reason: "sequence_expired" | "unknown_producer";
  };

/** What became of a batch. */
export type BatchVerdict =
  /** It is there, now or since before; `offset` = its first record. */
  | { readonly kind: "written"; readonly offset: number; readonly durable: boolean }
  | SequenceRefusal;

/** Called once, with what became of a batch or why the log did not take it or may have lost it. */
export type BatchDone = (verdict: BatchVerdict | StorageError) => void;

/** A part of a batch on its way into the log: all of it but the first `held` records. */
export interface BatchPart {
  readonly tag: BatchTag;
  readonly held: number;
}

/**
 * Appends a batch of a record or more, unless the shard's table says otherwise. Only while
 * `mayAppend()`. `null`: the next claim may be made; else when the promise resolves, which does not
 * reject.
 */
export function publishOnce(
  shard: StreamShard,
  batch: RecordBatch,
  stamp: ProducerStamp,
  done: BatchDone,
): Promise<void> | null {
  const { log, producers } = shard;
  const durable = log !== null;
  const payloads = recordsAt(batch.body, 0, batch.count);
  const admission = producers.admit({ ...stamp, payloads }, log?.tail ?? shard.tail);
  const { kind } = admission;
  switch (kind) {
    case "append":
      return append(shard, batch, { tag: tagOf(stamp, batch), held: 0 }, done);
    case "resume":
      return append(shard, batch, { tag: tagOf(stamp, batch), held: admission.held }, done);
    case "duplicate": {
      const { first, length } = admission;
      answerWhenKept(shard, first + length, { kind: "written", offset: first, durable }, done);
      return null;
    }
    case "sequence_reused": {
      const { first, held } = admission;
      const refusal = { kind: "sequence_refused", reason: kind, offset: first, durable } as const;
      answerWhenKept(shard, first + held, refusal, done);
      return null;
    }
    case "sequence_gap":
      done({ kind: "sequence_refused", reason: kind, expected: admission.expected });
      return null;
    default:
      done({ kind: "sequence_refused", reason: kind });
      return null;
  }
}

/** The records of a part of a batch, marked as such. */
export function markedRecords(
  payloads: readonly Uint8Array[],
  { tag, held }: BatchPart,
): NewRecord[] {
  return payloads.map((payload, at) =>
    held + at === 0 ? { payload, tag } : { payload, kind: RecordKind.batchContinuation }
  );
}

function tagOf(stamp: ProducerStamp, batch: RecordBatch): BatchTag {
  return { ...stamp, length: batch.count };
}

function append(
  shard: StreamShard,
  batch: RecordBatch,
  part: BatchPart,
  done: BatchDone,
): Promise<void> | null {
  const rest = withoutFirst(batch, part.held);
  if (shard.log !== null) {
    const offset = shard.log.tail - part.held;
    return shard.stage([rest], (failure) => {
      done(failure ?? { kind: "written", offset, durable: true });
    }, part);
  }
  const offset = shard.tail;
  try {
    shard.append([rest]);
  } finally {
    // Once sequences are taken the records exist, whatever failed behind that.
    if (shard.tail !== offset) {
      const records = markedRecords(recordsAt(rest.body, 0, rest.count), part);
      records.forEach((record, at) => shard.producers.observe(offset + at, record));
    }
  }
  done({ kind: "written", offset, durable: false });
  return null;
}

/** What is left of a batch without its first records. */
function withoutFirst(batch: RecordBatch, records: number): RecordBatch {
  if (records === 0) return batch;
  const body = batch.body.subarray(skipRecords(batch.body, 0, records));
  const count = batch.count - records;
  return { body, count, payloadBytes: body.length - RECORD_PREFIX_BYTES * count };
}

/** Answers about a batch that is in the log already: not before the log's promise is kept. */
function answerWhenKept(
  { log }: StreamShard,
  next: number,
  verdict: BatchVerdict,
  done: BatchDone,
): void {
  if (log === null) done(verdict);
  else log.whenKept(next, (failure) => done(failure ?? verdict));
}
