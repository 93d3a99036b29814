// What a shard knows of its idempotent producers (spec/storage.md §5.4, spec/semantics.md §5.1),
// and what follows for a batch that is offered. Rule: the state is a fold of the records of the log
// and of nothing else, so the broker that appended and the one that recovers decide alike.

import { BatchDigest, batchDigest } from "../format/crc64.ts";
import { MAX_PRODUCER_BATCHES, MAX_PRODUCERS } from "../format/producer_snapshot.ts";
import type { OpenBatch, ProducerSnapshot } from "../format/producer_snapshot.ts";
import { type BatchTag, RecordKind } from "../format/record.ts";
import { StorageError } from "../storage_error.ts";
import { BatchWindow } from "./batch_window.ts";

/** A batch as its producer sends it. */
export interface OfferedBatch {
  /** u64. */
  readonly producerId: bigint;
  /** Number of the batch, per producer and shard from 0; u64. */
  readonly sequence: bigint;
  /** Of its records, 1 or more. They are read only when something has to be compared. */
  readonly payloads: readonly Uint8Array[];
}

/** What is to be done with an offered batch (spec/semantics.md §5.1). */
export type Admission =
  /** Append it whole. */
  | { readonly kind: "append" }
  /**
   * Its first `held` records end the log: append the others, as continuations, if nothing was
   * appended meanwhile; the answer names `first`.
   */
  | { readonly kind: "resume"; readonly first: number; readonly held: number }
  /** Append nothing; answer as the first time, once `first + length` is durable (and committed). */
  | { readonly kind: "duplicate"; readonly first: number; readonly length: number }
  /**
   * The sequence was used for other payloads. Append nothing; refuse, or answer as a duplicate
   * where the client does not know the refusal. `held` is below `length` when the log ends with a
   * part of the batch.
   */
  | {
    readonly kind: "sequence_reused";
    readonly first: number;
    readonly length: number;
    readonly held: number;
  }
  /** Refuse: batches between are missing; `expected` is the next. */
  | { readonly kind: "sequence_gap"; readonly expected: bigint }
  /** Refuse: older than what is remembered. */
  | { readonly kind: "sequence_expired" }
  /** Refuse: nothing is remembered of the producer, so it has to begin at 0 with a new id. */
  | { readonly kind: "unknown_producer" };

/** The parts of a record that the table looks at. `LogRecord` and `NewRecord` have them. */
export interface ObservedRecord {
  readonly kind?: RecordKind;
  readonly tag?: BatchTag | null;
  readonly payload: Uint8Array;
}

/** Bounds of a table. */
export interface ProducerLimits {
  /** Producers remembered; 1 or more. */
  readonly producers: number;
  /** Batches remembered of each; 1 to 64. */
  readonly batches: number;
}

/** 4096 producers, 64 batches of each (spec/storage.md §5.4). */
export const PRODUCER_LIMITS: ProducerLimits = {
  producers: MAX_PRODUCERS,
  batches: MAX_PRODUCER_BATCHES,
};

/** A batch of which records are still to come. */
interface Opened {
  readonly tag: BatchTag;
  readonly first: number;
  held: number;
  /** `null`: restored without one. */
  readonly digest: BatchDigest | null;
}

/**
 * The idempotent producers of one shard. Feed it every record that carries a producer mark, in
 * offset order, when it is appended and when it is recovered; other records may be left out.
 */
export class ProducerTable {
  /** In order of the newest batch, oldest first. */
  readonly #producers = new Map<bigint, BatchWindow>();
  #opened: Opened | null = null;
  /** Every record below has been seen. */
  #seenBelow = 0;

  constructor(private readonly limits: ProducerLimits = PRODUCER_LIMITS) {}

  /** Producers remembered. */
  get size(): number {
    return this.#producers.size;
  }

  /** Whether no mark has left anything, so that there is nothing to save. */
  get isEmpty(): boolean {
    return this.#producers.size === 0 && this.#opened === null;
  }

  /**
   * Takes in the record at `offset`. Records below what was seen before are passed over, so a
   * restored table may be fed from any offset at or below its snapshot's.
   */
  observe(offset: number, record: ObservedRecord): void {
    if (offset < this.#seenBelow) return;
    this.#seenBelow = offset + 1;
    const tag = record.tag ?? null;
    if (tag !== null) {
      this.#opened = { tag, first: offset, held: 0, digest: new BatchDigest() };
    } else if (record.kind !== RecordKind.batchContinuation) {
      this.#opened = null;
    }
    const opened = this.#opened;
    if (opened === null) return;
    if (opened.first + opened.held !== offset) {
      this.#opened = null;
      return;
    }
    opened.held++;
    opened.digest?.add(record.payload);
    if (opened.held < opened.tag.length) return;
    this.#opened = null;
    this.#remember(opened);
  }

  /**
   * What to do with a batch when the log ends before offset `tail`. Changes nothing: it is
   * `observe` that remembers, once the records are in the log.
   *
   * @throws {StorageError} `invalid_range` when the batch has no records.
   */
  admit({ producerId, sequence, payloads }: OfferedBatch, tail: number): Admission {
    if (payloads.length === 0) throw new StorageError("invalid_range", "a batch without records");
    const known = this.#producers.get(producerId);
    const expected = known === undefined ? 0n : known.lastSequence + 1n;
    const open = this.openBatch(tail);
    if (open !== null && open.producerId === producerId && open.sequence === sequence) {
      return admitOpen(open, payloads);
    }
    if (sequence === expected) return { kind: "append" };
    if (known === undefined) return { kind: "unknown_producer" };
    if (sequence > expected) return { kind: "sequence_gap", expected };
    const batch = known.find(sequence);
    if (batch === null) return { kind: "sequence_expired" };
    const { first, length, digest } = batch;
    return length === payloads.length && (digest === null || digest === batchDigest(payloads))
      ? { kind: "duplicate", first, length }
      : { kind: "sequence_reused", first, length, held: length };
  }

  /**
   * The batch whose first records are the last of a log that ends before offset `tail`; `null`
   * when the log ends with anything else. Only the batch returned may be continued.
   */
  openBatch(tail: number): OpenBatch | null {
    const opened = this.#opened;
    if (opened === null || opened.first + opened.held !== tail) return null;
    const { tag: { producerId, sequence, length }, first, held, digest } = opened;
    return { producerId, sequence, first, length, held, digest: digest?.value ?? null };
  }

  /**
   * Forgets the batches that begin below offset `base`, where the log now begins, and the producers
   * of whose batches none is left. The state is then what the records from `base` on lead to.
   */
  forgetBelow(base: number): void {
    for (const [producerId, window] of this.#producers) {
      window.forgetBelow(base);
      if (window.size === 0) this.#producers.delete(producerId);
    }
    if (this.#opened !== null && this.#opened.first < base) this.#opened = null;
  }

  /** The state as of `asOf`, the offset before which the log ends: every mark below was fed. */
  snapshot(asOf: number): ProducerSnapshot {
    const producers = Array.from(this.#producers, ([producerId, window]) => {
      return { producerId, lastSequence: window.lastSequence, batches: window.batches() };
    });
    return { asOf, open: this.openBatch(asOf), producers };
  }

  /**
   * A table with the state of a snapshot that fits the log (`snapshotFits`). Feed it the records
   * from `snapshot.asOf` on, then `forgetBelow` the log's base: retention may have gone further.
   */
  static restore(
    snapshot: ProducerSnapshot,
    limits: ProducerLimits = PRODUCER_LIMITS,
  ): ProducerTable {
    const table = new ProducerTable(limits);
    const newest = (index: number) => snapshot.producers[index]!.batches.at(-1)?.first ?? 0;
    const order = snapshot.producers.map((_, index) => index).sort((a, b) => newest(a) - newest(b));
    for (const index of order.slice(-limits.producers)) {
      const { producerId, lastSequence, batches } = snapshot.producers[index]!;
      const kept = batches.slice(-limits.batches);
      if (kept.length === 0) continue;
      const window = new BatchWindow(lastSequence - BigInt(kept.length - 1), limits.batches);
      for (const { first, length, digest } of kept) window.push(first, length, digest);
      table.#producers.set(producerId, window);
    }
    const { open } = snapshot;
    if (open !== null) {
      const { producerId, sequence, length, first, held, digest } = open;
      const going = digest === null ? null : new BatchDigest(digest);
      table.#opened = { tag: { producerId, sequence, length }, first, held, digest: going };
    }
    table.#seenBelow = snapshot.asOf;
    return table;
  }

  /** A batch is held: all its records are in the log. */
  #remember({ tag: { producerId, sequence }, first, held, digest }: Opened): void {
    let window = this.#producers.get(producerId);
    // A sequence that does not follow was admitted from a state in which the producer was unknown.
    if (window === undefined || window.lastSequence + 1n !== sequence) {
      window = new BatchWindow(sequence, this.limits.batches);
    }
    window.push(first, held, digest?.value ?? null);
    this.#producers.delete(producerId);
    this.#producers.set(producerId, window);
    if (this.#producers.size <= this.limits.producers) return;
    for (const oldest of this.#producers.keys()) {
      this.#producers.delete(oldest);
      return;
    }
  }
}

/** A batch offered again of which the log holds the first records, and ends with them. */
function admitOpen(open: OpenBatch, payloads: readonly Uint8Array[]): Admission {
  const { first, length, held, digest } = open;
  const same = length === payloads.length &&
    (digest === null || digest === batchDigest(payloads.slice(0, held)));
  return same ? { kind: "resume", first, held } : { kind: "sequence_reused", first, length, held };
}
