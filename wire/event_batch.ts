// Event batches, broker to client (spec/wire.md §5.6). A broker usually has the records in place
// already and only writes the header in front of them (`writeEventHeader`).

import type { ByteWriter } from "./byte_writer.ts";
import {
  FLAG_BINARY_EVENT_BATCH,
  FLAG_BINARY_EVENT_BATCH_SHARED,
  FLAG_EVENT_BATCH_OFFSETS,
  FLAG_EVENT_BATCH_PUBLISHER,
  FLAG_EVENT_BATCH_SKIPPED,
  FLAG_EVENT_BATCH_TIMESTAMPS,
} from "./flags.ts";
import { abandonFrame, beginFrame, endFrame, HEADER_BYTES, MAGIC, VERSION } from "./frame.ts";
import { WireError } from "./wire_error.ts";

const SERVED_FLAGS = FLAG_BINARY_EVENT_BATCH | FLAG_BINARY_EVENT_BATCH_SHARED |
  FLAG_EVENT_BATCH_OFFSETS | FLAG_EVENT_BATCH_SKIPPED | FLAG_EVENT_BATCH_PUBLISHER |
  FLAG_EVENT_BATCH_TIMESTAMPS;

/** Room that `writeEventHeader` needs in front of a body at most. */
export const EVENT_HEADROOM_BYTES = 32;

/** A batch of events to encode. */
export interface EventBatchInput {
  /** The events. */
  readonly payloads: readonly Uint8Array[];
  /** Offset of the first event. */
  readonly baseOffset?: bigint;
  /** Offsets just below `baseOffset` that hold no event; 0 is not written. */
  readonly skippedBefore?: bigint;
  /** Publishing principal, at most 255 bytes. */
  readonly publisher?: string;
  /** Append time of every event, microseconds since the Unix epoch. */
  readonly timestamps?: readonly bigint[];
  /** Makes it a legacy batch of one subscription. */
  readonly subscriptionId?: bigint;
}

/** What every batch of events says of itself. */
export interface EventBatchHead {
  /** Subscription of a legacy batch. */
  readonly subscriptionId?: bigint;
  /** Offset of the first event; event i lies at `baseOffset + i`. */
  readonly baseOffset?: bigint;
  /** Offsets just below `baseOffset` that hold no event. */
  readonly skippedBefore: bigint;
  /** Publishing principal. */
  readonly publisher?: string;
  /** Events in the batch. */
  readonly count: number;
}

/** A batch of events as it came in; payloads are views. */
export interface EventBatch extends EventBatchHead {
  /** The events, as views. */
  readonly payloads: Uint8Array[];
  /** Append time of every event, microseconds since the Unix epoch. */
  readonly timestamps?: bigint[];
}

/** A batch of events that has not been taken apart. */
export interface EventRecords extends EventBatchHead {
  /** The events back to back: `prefixBytes` bytes, of which the last four are the length, each. */
  readonly records: Uint8Array;
  /** 4, or 12 where every event has its append time in front. */
  readonly prefixBytes: 4 | 12;
  /** Bytes of the events without what is in front of them. */
  readonly payloadBytes: number;
}

/**
 * Appends one event batch.
 * @throws {RangeError} skipped offsets without a base offset, a publisher over 255 bytes, or
 * timestamps that are not one per payload
 */
export function encodeEventBatch(out: ByteWriter, batch: EventBatchInput): void {
  const { payloads, baseOffset, publisher, timestamps, subscriptionId } = batch;
  const skipped = batch.skippedBefore ?? 0n;
  if (skipped > 0n && baseOffset === undefined) throw new RangeError("skipped without an offset");
  if (timestamps !== undefined && timestamps.length !== payloads.length) {
    throw new RangeError("one timestamp per payload");
  }
  const start = beginFrame(
    out,
    (subscriptionId === undefined ? FLAG_BINARY_EVENT_BATCH_SHARED : FLAG_BINARY_EVENT_BATCH) |
      (baseOffset === undefined ? 0 : FLAG_EVENT_BATCH_OFFSETS) |
      (skipped === 0n ? 0 : FLAG_EVENT_BATCH_SKIPPED) |
      (publisher === undefined ? 0 : FLAG_EVENT_BATCH_PUBLISHER) |
      (timestamps === undefined ? 0 : FLAG_EVENT_BATCH_TIMESTAMPS),
  );
  if (subscriptionId !== undefined) out.u64(subscriptionId);
  if (baseOffset !== undefined) out.u64(baseOffset);
  if (skipped > 0n) out.u64(skipped);
  if (publisher !== undefined) {
    const at = out.length;
    out.u8(0);
    const bytes = out.utf8(publisher);
    if (bytes > 0xff) {
      abandonFrame(out, start);
      throw new RangeError("a publisher is longer than 255 bytes");
    }
    out.buffer[at] = bytes;
  }
  out.u32(payloads.length);
  for (let index = 0; index < payloads.length; index++) {
    const payload = payloads[index]!;
    if (timestamps !== undefined) out.u64(timestamps[index]!);
    out.u32(payload.length);
    out.bytes(payload);
  }
  endFrame(out, start);
}

/**
 * Writes the header of a shared event batch directly in front of `bodyBytes` bytes of records that
 * lie at `bodyStart` (each a u32 length and its bytes, as in a publish). Answers where the frame
 * begins; it ends where the body does.
 */
export function writeEventHeader(
  buffer: Uint8Array,
  bodyStart: number,
  bodyBytes: number,
  count: number,
  baseOffset?: number,
): number {
  const prefixBytes = baseOffset === undefined ? 4 : 12;
  const start = bodyStart - prefixBytes - HEADER_BYTES;
  const offsets = baseOffset === undefined ? 0 : FLAG_EVENT_BATCH_OFFSETS;
  write32(buffer, start, MAGIC);
  write32(buffer, start + 4, (VERSION << 16) | FLAG_BINARY_EVENT_BATCH_SHARED | offsets);
  write32(buffer, start + 8, prefixBytes + bodyBytes);
  if (baseOffset !== undefined) {
    write32(buffer, start + 12, Math.floor(baseOffset / 0x1_0000_0000));
    write32(buffer, start + 16, baseOffset >>> 0);
  }
  write32(buffer, bodyStart - 4, count);
  return start;
}

/**
 * Decodes an event batch and leaves its events where they lie: every length is checked, nothing is
 * taken apart.
 * @throws {WireError} `incomplete`, `malformed`, `unknown_flags` (skipped without an offset)
 */
export function decodeEventRecords(flags: number, payload: Uint8Array): EventRecords {
  const has = (flag: number): boolean => (flags & flag) !== 0;
  const legacy = has(FLAG_BINARY_EVENT_BATCH);
  if (legacy === has(FLAG_BINARY_EVENT_BATCH_SHARED) || has(~SERVED_FLAGS)) {
    throw new WireError("malformed", "not an event batch");
  }
  if (has(FLAG_EVENT_BATCH_SKIPPED) && !has(FLAG_EVENT_BATCH_OFFSETS)) {
    throw new WireError("unknown_flags", "skipped offsets without a base offset");
  }
  const view = new DataView(payload.buffer, payload.byteOffset, payload.byteLength);
  let at = 0;
  const take = (bytes: number): number => {
    const from = at;
    at += bytes;
    if (at > payload.length) throw new WireError("incomplete", "the batch is cut short");
    return from;
  };
  const subscriptionId = legacy ? view.getBigUint64(take(8)) : undefined;
  const baseOffset = has(FLAG_EVENT_BATCH_OFFSETS) ? view.getBigUint64(take(8)) : undefined;
  const skippedBefore = has(FLAG_EVENT_BATCH_SKIPPED) ? view.getBigUint64(take(8)) : 0n;
  let publisher: string | undefined;
  if (has(FLAG_EVENT_BATCH_PUBLISHER)) {
    const length = view.getUint8(take(1));
    const from = take(length);
    publisher = decodePublisher(payload.subarray(from, from + length));
  }
  const count = view.getUint32(take(4));
  if (count > (payload.length - at) / 4) {
    throw new WireError("incomplete", "more events than bytes");
  }
  const timed = has(FLAG_EVENT_BATCH_TIMESTAMPS);
  const prefixBytes = timed ? 12 : 4;
  const start = at;
  for (let left = count; left > 0; left--) {
    at += prefixBytes;
    if (at > payload.length) throw new WireError("incomplete", "the batch is cut short");
    at += view.getUint32(at - 4);
  }
  if (at > payload.length) throw new WireError("incomplete", "the batch is cut short");
  return {
    ...(subscriptionId === undefined ? {} : { subscriptionId }),
    ...(baseOffset === undefined ? {} : { baseOffset }),
    skippedBefore,
    ...(publisher === undefined ? {} : { publisher }),
    count,
    records: payload.subarray(start, at),
    prefixBytes,
    payloadBytes: at - start - count * prefixBytes,
  };
}

/**
 * Decodes an event batch, legacy or shared.
 * @throws {WireError} `incomplete`, `malformed`, `unknown_flags` (skipped without an offset)
 */
export function decodeEventBatch(flags: number, payload: Uint8Array): EventBatch {
  const { records, prefixBytes, payloadBytes: _, ...batch } = decodeEventRecords(flags, payload);
  const view = new DataView(records.buffer, records.byteOffset, records.byteLength);
  const payloads: Uint8Array[] = [];
  const timestamps: bigint[] = [];
  for (let at = 0; at < records.length;) {
    if (prefixBytes === 12) timestamps.push(view.getBigUint64(at));
    const from = at + prefixBytes;
    at = from + view.getUint32(from - 4);
    payloads.push(records.subarray(from, at));
  }
  return { ...batch, payloads, ...(prefixBytes === 12 ? { timestamps } : {}) };
}

const strictUtf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function decodePublisher(bytes: Uint8Array): string {
  try {
    return strictUtf8.decode(bytes);
  } catch {
    throw new WireError("malformed", "the publisher is not UTF-8");
  }
}

function write32(bytes: Uint8Array, at: number, value: number): void {
  bytes[at] = value >>> 24;
  bytes[at + 1] = value >>> 16;
  bytes[at + 2] = value >>> 8;
  bytes[at + 3] = value;
}
