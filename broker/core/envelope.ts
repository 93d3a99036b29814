// An envelope: the records of one claim, in memory of its own with free room in front, shared by
// the ring and by every subscriber's queue. It never changes, and each of its frames is encoded at
// most once, by whoever needs it first (spec/semantics.md §4.1).

import { skipRecords } from "./record_batch.ts";

/** Free bytes in front of an envelope's body: an event frame's header is written there in place. */
export const HEADROOM_BYTES = 32;

/** Which frame of an envelope: with or without the offset of its first record. */
export type FrameShape = "plain" | "offsets";

/**
 * Encodes one frame of an envelope. It may write into the first `HEADROOM_BYTES` of `storage` and
 * answer a view of it, for one shape only; the body is never written to.
 */
export type FrameEncoder = (envelope: Envelope, shape: FrameShape) => Uint8Array;

/** Counts encoding (a test and a metric show that a batch is encoded once). */
export interface EncodeStats {
  /** Frames encoded. */
  encodes: number;
  /** Frames that were wanted again and shared (`felix_sub_shared_batch_handles_total`). */
  shares: number;
}

/** The records that one subscriber is to get of one envelope: those from `from` to its end. */
export interface Delivery {
  /** The envelope they lie in. */
  readonly envelope: Envelope;
  /** Index of the first record in the envelope; 0 = the envelope as a whole. */
  readonly from: number;
  /** Where in `envelope.storage` that record's length begins. */
  readonly bodyStart: number;
  /** Sequence of that record. */
  readonly base: number;
  /** Records from there on. */
  readonly count: number;
  /** Bytes of those records without their lengths. */
  readonly payloadBytes: number;
}

/** One claim's records. */
export class Envelope implements Delivery {
  /** The frame of each shape, once somebody wanted it. */
  private plainFrame: Uint8Array | null = null;
  private offsetsFrame: Uint8Array | null = null;

  /** `storage`: `HEADROOM_BYTES` free bytes, then `count` records to its end. */
  constructor(
    readonly base: number,
    readonly count: number,
    readonly payloadBytes: number,
    readonly storage: Uint8Array,
    private readonly stats: EncodeStats,
  ) {}

  /** The envelope itself: a whole envelope is its own delivery. */
  get envelope(): Envelope {
    return this;
  }

  /** 0: a whole envelope begins at its first record. */
  get from(): number {
    return 0;
  }

  /** Where the body begins in `storage`. */
  get bodyStart(): number {
    return HEADROOM_BYTES;
  }

  /** Whether somebody wanted the frame of `shape` before. */
  hasFrame(shape: FrameShape): boolean {
    return (shape === "plain" ? this.plainFrame : this.offsetsFrame) !== null;
  }

  /** The frame of `shape`, encoded at the first call for it and shared ever after. */
  frame(shape: FrameShape, encoder: FrameEncoder): Uint8Array {
    const known = shape === "plain" ? this.plainFrame : this.offsetsFrame;
    if (known !== null) {
      this.stats.shares++;
      return known;
    }
    const frame = encoder(this, shape);
    this.stats.encodes++;
    if (shape === "plain") this.plainFrame = frame;
    else this.offsetsFrame = frame;
    return frame;
  }
}

/** An envelope without its first records: where a backlog begins inside a batch. */
export class EnvelopeTail implements Delivery {
  readonly bodyStart: number;
  readonly base: number;
  readonly count: number;
  readonly payloadBytes: number;

  /** The records of `envelope` from index `from` (1 or more) on. */
  constructor(readonly envelope: Envelope, readonly from: number) {
    const { storage } = envelope;
    this.bodyStart = skipRecords(storage, HEADROOM_BYTES, from);
    this.base = envelope.base + from;
    this.count = envelope.count - from;
    this.payloadBytes = storage.length - this.bodyStart - 4 * this.count;
  }
}
