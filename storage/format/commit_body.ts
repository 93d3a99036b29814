// The payload of a commit record (spec/storage.md §3.3): one event and the state changes that
// happen with it, all or nothing; big-endian. Rule: every length and count is held against the
// bytes that are there before it is used, and the body ends where its last operation ends.

import { decodeUtf8, encodeUtf8 } from "./utf8.ts";

const VERSION = 1;
const PUT = 0;
const DELETE = 1;
/** Version byte and the event's length. */
const HEADER_BYTES = 5;
/** Smallest operation: its kind and the length of an empty key. */
const MIN_OPERATION_BYTES = 5;

/** One change of an entity's state; of two on one key the later holds. */
export type CommitOperation =
  | { readonly op: "put"; readonly key: string; readonly value: Uint8Array }
  | { readonly op: "delete"; readonly key: string };

/** What a commit record says. After a decode `event` and values are views of the bytes decoded. */
export interface CommitBody {
  /** The payload that readers of the stream see. */
  readonly event: Uint8Array;
  /** In the order in which they apply. */
  readonly operations: readonly CommitOperation[];
}

/** Why a payload is not a commit body. */
export type CommitBodyFault =
  | "truncated"
  | "unknown_version"
  | "unknown_op"
  | "key_not_utf8"
  | "trailing_bytes";

/** The payload of a commit. */
export function encodeCommitBody({ event, operations }: CommitBody): Uint8Array {
  const keys = operations.map(({ key }) => encodeUtf8(key));
  let size = HEADER_BYTES + event.length + 4;
  operations.forEach((operation, index) => {
    size += MIN_OPERATION_BYTES + keys[index]!.length;
    if (operation.op === "put") size += 4 + operation.value.length;
  });
  const bytes = new Uint8Array(size);
  const view = new DataView(bytes.buffer);
  let at = 0;
  const writeBlock = (block: Uint8Array) => {
    view.setUint32(at, block.length);
    bytes.set(block, at + 4);
    at += 4 + block.length;
  };
  bytes[at++] = VERSION;
  writeBlock(event);
  view.setUint32(at, operations.length);
  at += 4;
  operations.forEach((operation, index) => {
    bytes[at++] = operation.op === "put" ? PUT : DELETE;
    writeBlock(keys[index]!);
    if (operation.op === "put") writeBlock(operation.value);
  });
  return bytes;
}

/** Reads a payload. */
export function decodeCommitBody(bytes: Uint8Array): CommitBody | CommitBodyFault {
  const reader = new BlockReader(bytes);
  const version = reader.u8();
  if (version === null) return "truncated";
  if (version !== VERSION) return "unknown_version";
  const event = reader.block();
  const count = reader.u32();
  if (event === null || count === null) return "truncated";
  if (count * MIN_OPERATION_BYTES > reader.left) return "truncated";
  const operations: CommitOperation[] = [];
  for (let index = 0; index < count; index++) {
    const operation = readOperation(reader);
    if (typeof operation === "string") return operation;
    operations.push(operation);
  }
  return reader.left === 0 ? { event, operations } : "trailing_bytes";
}

/** Reads only the event of a commit, the part that readers of the stream see; a view of `bytes`. */
export function decodeCommitEvent(bytes: Uint8Array): Uint8Array | CommitBodyFault {
  const reader = new BlockReader(bytes);
  const version = reader.u8();
  if (version === null) return "truncated";
  if (version !== VERSION) return "unknown_version";
  return reader.block() ?? "truncated";
}

function readOperation(reader: BlockReader): CommitOperation | CommitBodyFault {
  const op = reader.u8();
  if (op === null) return "truncated";
  if (op !== PUT && op !== DELETE) return "unknown_op";
  const keyBytes = reader.block();
  if (keyBytes === null) return "truncated";
  const key = decodeUtf8(keyBytes);
  if (key === null) return "key_not_utf8";
  if (op === DELETE) return { op: "delete", key };
  const value = reader.block();
  return value === null ? "truncated" : { op: "put", key, value };
}

/** Takes integers and length-prefixed blocks off the front; `null` when they are not all there. */
class BlockReader {
  readonly #view: DataView;
  #at = 0;

  constructor(private readonly bytes: Uint8Array) {
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  }

  get left(): number {
    return this.bytes.length - this.#at;
  }

  u8(): number | null {
    return this.left < 1 ? null : this.#view.getUint8(this.#at++);
  }

  u32(): number | null {
    if (this.left < 4) return null;
    this.#at += 4;
    return this.#view.getUint32(this.#at - 4);
  }

  block(): Uint8Array | null {
    const length = this.u32();
    if (length === null || length > this.left) return null;
    this.#at += length;
    return this.bytes.subarray(this.#at - length, this.#at);
  }
}
