// A record batch: `count` records back to back, each a big-endian u32 length and that many bytes.
// It is what a publish carries and what an event frame carries, so it is copied, never re-encoded.

/** Bytes in front of every record of a body: its length. */
export const RECORD_PREFIX_BYTES = 4;

/** Records of one publish. */
export interface RecordBatch {
  /** The records back to back, lengths included (spec/wire.md §5.1). */
  readonly body: Uint8Array;
  /** Records in `body`; 0 or more. */
  readonly count: number;
  /** Sum of the records' own bytes: `body.length - 4 * count`. */
  readonly payloadBytes: number;
}

/** A batch of `payloads`, in a buffer of its own. */
export function recordBatchOf(payloads: readonly Uint8Array[]): RecordBatch {
  let payloadBytes = 0;
  for (const payload of payloads) payloadBytes += payload.length;
  const body = new Uint8Array(payloadBytes + RECORD_PREFIX_BYTES * payloads.length);
  const view = new DataView(body.buffer);
  let at = 0;
  for (const payload of payloads) {
    view.setUint32(at, payload.length);
    body.set(payload, at + RECORD_PREFIX_BYTES);
    at += RECORD_PREFIX_BYTES + payload.length;
  }
  return { body, count: payloads.length, payloadBytes };
}

/** Where the record `skip` places after the one at `at` begins. */
export function skipRecords(bytes: Uint8Array, at: number, skip: number): number {
  for (let left = skip; left > 0; left--) {
    const length = ((bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) |
      bytes[at + 3]!) >>> 0;
    at += RECORD_PREFIX_BYTES + length;
  }
  return at;
}

/** Views of the `count` records that begin at `at`. */
export function recordsAt(bytes: Uint8Array, at: number, count: number): Uint8Array[] {
  const records: Uint8Array[] = [];
  for (let left = count; left > 0; left--) {
    const next = skipRecords(bytes, at, 1);
    records.push(bytes.subarray(at + RECORD_PREFIX_BYTES, next));
    at = next;
  }
  return records;
}

/** Whether a record of `batch` is longer than `bytes`. */
export function hasRecordOver({ body }: RecordBatch, bytes: number): boolean {
  const view = new DataView(body.buffer, body.byteOffset, body.byteLength);
  for (let at = 0; at < body.length;) {
    const length = view.getUint32(at);
    if (length > bytes) return true;
    at += RECORD_PREFIX_BYTES + length;
  }
  return false;
}
