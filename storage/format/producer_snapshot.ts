// The bytes of `producers` (spec/storage.md §5.4): what a shard's log says about its idempotent
// producers, as of an offset. Rule: it is derived, so whatever does not verify or could not be true
// of a log reads as absent, and the state is rebuilt from the records.

import { crc32 } from "./crc32.ts";
import { getU64, setU64 } from "./integers.ts";

/** `FLPS`. */
const MAGIC = 0x464C_5053;
/** Written. */
const VERSION = 2;
/** Also read: the same without digests. */
const VERSION_WITHOUT_DIGESTS = 1;
const HEADER_BYTES = 24;
const OPEN_BYTES = 32;
const PRODUCER_BYTES = 18;
const BATCH_BYTES = 12;
const DIGEST_BYTES = 9;

/** Most producers remembered in a shard; the one whose newest batch is oldest goes first. */
export const MAX_PRODUCERS = 4096;
/** Most batches remembered of one producer: the newest. */
export const MAX_PRODUCER_BATCHES = 64;

/** A producer's batch of which every record is in the log. */
export interface RememberedBatch {
  /** Offset of its first record. */
  readonly first: number;
  /** Records, 1 to 2^32 - 1. */
  readonly length: number;
  /** `batchDigest` of its payloads; `null`: not known, so nothing can be held against it. */
  readonly digest: bigint | null;
}

/** A batch at the end of the log of which only the first records are there. */
export interface OpenBatch {
  /** u64. */
  readonly producerId: bigint;
  /** u64. */
  readonly sequence: bigint;
  /** Offset of its first record. */
  readonly first: number;
  /** Records of the whole batch, 2 to 2^32 - 1. */
  readonly length: number;
  /** Records that are there, 1 to `length - 1`. */
  readonly held: number;
  /** `batchDigest` of the payloads that are there; `null`: not known. */
  readonly digest: bigint | null;
}

/** One producer. */
export interface ProducerState {
  /** u64. */
  readonly producerId: bigint;
  /** Sequence of the newest batch, u64; the batches before it have the sequences before it. */
  readonly lastSequence: bigint;
  /** 1 to 64 batches, oldest first. */
  readonly batches: readonly RememberedBatch[];
}

/** All producers of a shard. */
export interface ProducerSnapshot {
  /** The state covers every record below this offset. */
  readonly asOf: number;
  readonly open: OpenBatch | null;
  /** At most 4096; the one whose newest batch is oldest first. */
  readonly producers: readonly ProducerState[];
}

/** The bytes of a snapshot, version 2. */
export function encodeProducerSnapshot(snapshot: ProducerSnapshot): Uint8Array {
  const { asOf, open, producers } = snapshot;
  const batchCount = producers.reduce((sum, { batches }) => sum + batches.length, 0);
  const bytes = new Uint8Array(
    HEADER_BYTES + 1 + (open === null ? 0 : OPEN_BYTES + DIGEST_BYTES) +
      producers.length * PRODUCER_BYTES + batchCount * (BATCH_BYTES + DIGEST_BYTES),
  );
  const view = new DataView(bytes.buffer);
  view.setUint32(0, MAGIC);
  view.setUint16(4, VERSION);
  setU64(view, 8, asOf);
  view.setUint32(16, producers.length);
  let at = HEADER_BYTES;
  bytes[at++] = open === null ? 0 : 1;
  if (open !== null) at = writeOpen(view, at, open);
  for (const { producerId, lastSequence, batches } of producers) {
    view.setBigUint64(at, producerId);
    view.setBigUint64(at + 8, lastSequence);
    view.setUint16(at + 16, batches.length);
    at += PRODUCER_BYTES;
    for (const { first, length, digest } of batches) {
      setU64(view, at, first);
      view.setUint32(at + 8, length);
      at = writeDigest(view, at + BATCH_BYTES, digest);
    }
  }
  view.setUint32(20, crc32(bytes, HEADER_BYTES, bytes.length));
  return bytes;
}

function writeOpen(view: DataView, at: number, open: OpenBatch): number {
  view.setBigUint64(at, open.producerId);
  view.setBigUint64(at + 8, open.sequence);
  view.setUint32(at + 16, open.length);
  setU64(view, at + 20, open.first);
  view.setUint32(at + 28, open.held);
  return writeDigest(view, at + OPEN_BYTES, open.digest);
}

function writeDigest(view: DataView, at: number, digest: bigint | null): number {
  view.setUint8(at, digest === null ? 0 : 1);
  view.setBigUint64(at + 1, digest ?? 0n);
  return at + DIGEST_BYTES;
}

/**
 * Reads a snapshot, version 2 or 1; `null` when it is another version, does not verify, or says
 * what no log could have led to. Whether it fits the log at hand is `snapshotFits`.
 */
export function decodeProducerSnapshot(bytes: Uint8Array): ProducerSnapshot | null {
  if (bytes.length <= HEADER_BYTES) return null;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const version = view.getUint16(4);
  if (view.getUint32(0) !== MAGIC) return null;
  if (version !== VERSION && version !== VERSION_WITHOUT_DIGESTS) return null;
  if (view.getUint32(20) !== crc32(bytes, HEADER_BYTES, bytes.length)) return null;
  const asOf = getU64(view, 8);
  const count = view.getUint32(16);
  if (asOf < 0 || count > MAX_PRODUCERS) return null;
  const reader = new SnapshotReader(view, version === VERSION, asOf);
  const open = reader.open();
  if (open === undefined) return null;
  const producers: ProducerState[] = [];
  const known = new Set<bigint>();
  for (let index = 0; index < count; index++) {
    const producer = reader.producer();
    if (producer === null || known.has(producer.producerId)) return null;
    known.add(producer.producerId);
    producers.push(producer);
  }
  return reader.left === 0 ? { asOf, open, producers } : null;
}

/** Whether a snapshot speaks of a log that begins at `base` and ends before `tail`. */
export function snapshotFits(snapshot: ProducerSnapshot, base: number, tail: number): boolean {
  return base <= snapshot.asOf && snapshot.asOf <= tail;
}

/** Takes the parts of a snapshot off the front, each only when all of it is there and plausible. */
class SnapshotReader {
  #at = HEADER_BYTES;

  constructor(
    private readonly view: DataView,
    private readonly withDigests: boolean,
    private readonly asOf: number,
  ) {}

  get left(): number {
    return this.view.byteLength - this.#at;
  }

  /** `undefined`: damaged; `null`: no batch is open. */
  open(): OpenBatch | null | undefined {
    const present = this.view.getUint8(this.#at++);
    if (present === 0) return null;
    if (present !== 1 || this.left < OPEN_BYTES) return undefined;
    const { view } = this;
    const at = this.#take(OPEN_BYTES);
    const batch = {
      producerId: view.getBigUint64(at),
      sequence: view.getBigUint64(at + 8),
      first: getU64(view, at + 20),
      length: view.getUint32(at + 16),
      held: view.getUint32(at + 28),
    };
    const digest = this.#digest();
    if (digest === undefined || batch.first < 0) return undefined;
    if (batch.held < 1 || batch.held >= batch.length) return undefined;
    return batch.first + batch.held === this.asOf ? { ...batch, digest } : undefined;
  }

  producer(): ProducerState | null {
    if (this.left < PRODUCER_BYTES) return null;
    const at = this.#take(PRODUCER_BYTES);
    const producerId = this.view.getBigUint64(at);
    const lastSequence = this.view.getBigUint64(at + 8);
    const count = this.view.getUint16(at + 16);
    if (count < 1 || count > MAX_PRODUCER_BATCHES || lastSequence < BigInt(count - 1)) return null;
    const batches: RememberedBatch[] = [];
    let end = 0;
    for (let index = 0; index < count; index++) {
      const batch = this.#batch();
      if (batch === null || batch.first < end) return null;
      end = batch.first + batch.length;
      batches.push(batch);
    }
    return end <= this.asOf ? { producerId, lastSequence, batches } : null;
  }

  #batch(): RememberedBatch | null {
    if (this.left < BATCH_BYTES) return null;
    const at = this.#take(BATCH_BYTES);
    const first = getU64(this.view, at);
    const length = this.view.getUint32(at + 8);
    const digest = this.#digest();
    return first < 0 || length < 1 || digest === undefined ? null : { first, length, digest };
  }

  /** `undefined`: damaged; `null`: not known. */
  #digest(): bigint | null | undefined {
    if (!this.withDigests) return null;
    if (this.left < DIGEST_BYTES) return undefined;
    const at = this.#take(DIGEST_BYTES);
    const present = this.view.getUint8(at);
    if (present > 1) return undefined;
    return present === 1 ? this.view.getBigUint64(at + 1) : null;
  }

  #take(count: number): number {
    this.#at += count;
    return this.#at - count;
  }
}
