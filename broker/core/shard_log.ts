// The log under a durable shard: claims on their way to the device, in order, and history read
// back. Rules: a claim is handed on only when the log's promise for it is kept and every claim
// before it has been handed on (B12); a claim that the log refused or may have lost never is.

import { decodeCommitEvent, RecordKind, StorageError } from "@felix/storage";
import type { LogRecord, ProducerTable, SegmentLog } from "@felix/storage";
import { invariant } from "./core_error.ts";
import { Envelope, HEADROOM_BYTES } from "./envelope.ts";
import type { EncodeStats } from "./envelope.ts";
import { markedRecords } from "./idempotent_publish.ts";
import type { BatchPart } from "./idempotent_publish.ts";
import { RECORD_PREFIX_BYTES, recordsAt } from "./record_batch.ts";
import { Ring } from "./ring.ts";

/** Claims of one shard that may wait for their flush (spec/semantics.md §3.3). */
const MAX_FLUSHING = 32;
/** Bytes of history read at once. */
const PAGE_BYTES = 1024 * 1024;
/** Bounds of an envelope of history: what one delivery frame holds. */
const ENVELOPE_RECORDS = 64;
const ENVELOPE_BYTES = 65_536;

/** What became of a claim. */
export type ClaimDone = (failure: StorageError | null) => void;

interface Claim {
  readonly envelope: Envelope;
  readonly done: ClaimDone;
  kept: boolean;
}

/** History of a shard. */
export interface HistoryPage {
  /** In order; a break in offsets lies between two, never inside one. */
  readonly envelopes: readonly Envelope[];
  /** Offset to go on from. */
  readonly next: number;
}

/** What a shard's log calls. */
export interface ShardLogOwner {
  /** Whether a claim may be handed on now. */
  mayPublish(): boolean;
  /** Makes a claim visible to readers. */
  publish(envelope: Envelope): void;
  /** Appending has become possible again. */
  onRoom(): void;
}

/** The log of one durable shard. */
export class ShardLog {
  readonly #log: SegmentLog;
  readonly #owner: ShardLogOwner;
  readonly #encodeStats: EncodeStats;
  /** Staged and not handed on, oldest first. */
  readonly #claims = new Ring<Claim>();

  /** `log` is open; nobody else appends to it. */
  constructor(log: SegmentLog, owner: ShardLogOwner, encodeStats: EncodeStats) {
    this.#log = log;
    this.#owner = owner;
    this.#encodeStats = encodeStats;
  }

  /** The oldest offset that is held. */
  get base(): number {
    return this.#log.base;
  }

  /** Offset of the next record that is appended. */
  get tail(): number {
    return this.#log.tail;
  }

  /** What the log knows of idempotent producers. */
  get producers(): ProducerTable {
    const { producers } = this.#log;
    invariant(producers !== null, "B13: the log of a stream keeps account of its producers");
    return producers;
  }

  /** Whether another claim may be staged. */
  get hasRoom(): boolean {
    return this.#claims.length < MAX_FLUSHING;
  }

  /**
   * Writes a claim, whose base is `tail`. `done` is called once: when it has been handed on, or
   * with why it was not. `null`: the next claim may be staged; else when the promise resolves,
   * which does not reject. `part`: its records belong to a batch of an idempotent producer.
   */
  stage(
    envelope: Envelope,
    done: ClaimDone,
    part: BatchPart | null = null,
  ): Promise<void> | null {
    invariant(envelope.base === this.#log.tail, "B12: a claim begins where the log ends");
    const payloads = recordsAt(envelope.storage, HEADROOM_BYTES, envelope.count);
    try {
      const records = part === null
        ? payloads.map((payload) => ({ payload }))
        : markedRecords(payloads, part);
      const staged = this.#log.stage(records);
      if (!(staged instanceof Promise)) {
        this.#commit(envelope, done);
        return null;
      }
      return staged.then(
        () => this.#commit(envelope, done),
        (error) => done(storageError(error)),
      );
    } catch (error) {
      done(storageError(error));
      return null;
    }
  }

  /** Calls `done` once the log's promise for everything below `next` is kept, or cannot be. */
  whenKept(next: number, done: ClaimDone): void {
    if (next <= this.#log.durable) return done(null);
    this.#log.commit({ next }).then(() => done(null), (error) => done(storageError(error)));
  }

  /** Hands on what waits for nothing but its readers' room. */
  resume(): void {
    const claims = this.#claims;
    const full = !this.hasRoom;
    for (let first = claims.front; first !== undefined && first.kept; first = claims.front) {
      if (!this.#owner.mayPublish()) break;
      claims.shift();
      this.#owner.publish(first.envelope);
      first.done(null);
    }
    if (full && this.hasRoom) this.#owner.onRoom();
  }

  /** Reads history from `from` on, at most to `until`; `TrimmedError` when it is gone. */
  async read(from: number, until: number): Promise<HistoryPage> {
    const { records, next } = await this.#log.read(from, { maxBytes: PAGE_BYTES, until });
    return { envelopes: this.#envelopesOf(records), next };
  }

  #commit(envelope: Envelope, done: ClaimDone): void {
    const claim: Claim = { envelope, done, kept: false };
    this.#claims.push(claim);
    this.#log.commit({ next: envelope.base + envelope.count }).then(
      () => {
        claim.kept = true;
        this.resume();
      },
      (error) => this.#lost(storageError(error)),
    );
  }

  /** The log failed: whether any of these is on the device is known only after a restart. */
  #lost(failure: StorageError): void {
    const unsure: Claim[] = [];
    for (let claim = this.#claims.shift(); claim !== undefined; claim = this.#claims.shift()) {
      unsure.push(claim);
    }
    // What was kept before the failure is handed on all the same, in its order.
    while (unsure.length > 0 && unsure[0]!.kept) this.#claims.push(unsure.shift()!);
    for (const { done } of unsure) done(failure);
    this.resume();
    this.#owner.onRoom();
  }

  #envelopesOf(records: readonly LogRecord[]): Envelope[] {
    const envelopes: Envelope[] = [];
    for (let from = 0; from < records.length;) {
      if (records[from]!.kind === RecordKind.generationStart) {
        from++;
        continue;
      }
      let end = from;
      let bytes = 0;
      while (end < records.length && end - from < ENVELOPE_RECORDS) {
        const record = records[end]!;
        if (record.kind === RecordKind.generationStart) break;
        if (end > from && bytes + record.payload.length > ENVELOPE_BYTES) break;
        bytes += record.payload.length;
        end++;
      }
      envelopes.push(this.#envelopeOf(records.slice(from, end)));
      from = end;
    }
    return envelopes;
  }

  #envelopeOf(records: readonly LogRecord[]): Envelope {
    const payloads = records.map(visiblePayload);
    let bytes = 0;
    for (const payload of payloads) bytes += payload.length;
    const size = HEADROOM_BYTES + bytes + RECORD_PREFIX_BYTES * payloads.length;
    const storage = new Uint8Array(size);
    const view = new DataView(storage.buffer);
    let at = HEADROOM_BYTES;
    for (const payload of payloads) {
      view.setUint32(at, payload.length);
      storage.set(payload, at + RECORD_PREFIX_BYTES);
      at += RECORD_PREFIX_BYTES + payload.length;
    }
    const { offset } = records[0]!;
    return new Envelope(offset, payloads.length, bytes, storage, this.#encodeStats);
  }
}

/** What a reader sees of a record: of a commit only its event (spec/storage.md §3.3). */
function visiblePayload({ kind, offset, payload }: LogRecord): Uint8Array {
  if (kind !== RecordKind.commit) return payload;
  const event = decodeCommitEvent(payload);
  if (typeof event !== "string") return event;
  throw new StorageError("corruption", `offset ${offset} is no readable commit: ${event}`);
}

function storageError(error: unknown): StorageError {
  if (error instanceof StorageError) return error;
  return new StorageError("io", error instanceof Error ? error.message : String(error), {
    cause: error,
  });
}
