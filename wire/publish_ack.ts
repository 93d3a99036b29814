// The answer to an acked binary publish (spec/wire.md §5.5). The plain success, which is nearly
// every ack, is written without looking at anything else.

import {
  FLAG_BINARY_PUBLISH_ACK,
  FLAG_BINARY_PUBLISH_ACK_CODE,
  FLAG_BINARY_PUBLISH_ACK_DETAIL,
  FLAG_BINARY_PUBLISH_ACK_OFFSET,
  FLAG_BINARY_PUBLISH_ACK_OWNER,
} from "./flags.ts";
import type { ByteWriter } from "./byte_writer.ts";
import { codeName, codeNumber, retryByte, retryFromByte } from "./error_codes.ts";
import type { RetryClass } from "./error_codes.ts";
import { beginFrame, endFrame, writeFrameHeader } from "./frame.ts";
import { WireError } from "./wire_error.ts";

/** Why a publish failed. */
export interface PublishAckError {
  /** Text; cut to 65,535 bytes on a character boundary. */
  readonly message: string;
  /** Code and class go together; without them only the text is sent. */
  readonly code?: string;
  /** Retry class. */
  readonly retry?: RetryClass;
  /** Detail; sent only with a code. */
  readonly reason?: string;
  /** Milliseconds to wait; 0 = not said. */
  readonly retryAfterMs?: bigint;
}

/** Who appended a forwarded batch. */
export interface PublishAckOwner {
  /** Its id. */
  readonly nodeId: string;
  /** Its client address; `null` = none published. */
  readonly addr: string | null;
  /** Assignment epoch. */
  readonly generation: bigint;
}

/** An answer to one acked publish. */
export interface PublishAck {
  /** Request id of the publish. */
  readonly requestId: bigint;
  /** Offset of the first record; only on success and where there is a log. */
  readonly offset?: bigint;
  /** Present = the publish failed. */
  readonly error?: PublishAckError;
  /** Present = the batch was forwarded. */
  readonly owner?: PublishAckOwner;
}

const SERVED_FLAGS = FLAG_BINARY_PUBLISH_ACK | FLAG_BINARY_PUBLISH_ACK_CODE |
  FLAG_BINARY_PUBLISH_ACK_DETAIL | FLAG_BINARY_PUBLISH_ACK_OWNER | FLAG_BINARY_PUBLISH_ACK_OFFSET;
const MAX_TEXT_BYTES = 0xffff;
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Appends one ack. */
export function encodePublishAck(out: ByteWriter, ack: PublishAck): void {
  const { error, owner, offset } = ack;
  if (error === undefined && owner === undefined && offset === undefined) {
    writeFrameHeader(out, FLAG_BINARY_PUBLISH_ACK, 11);
    out.u8(0);
    out.u64(ack.requestId);
    out.u16(0);
    return;
  }
  const coded = error?.code !== undefined;
  const detailed = coded && (error.reason !== undefined || error.retryAfterMs !== undefined);
  const hasOffset = error === undefined && offset !== undefined;
  const start = beginFrame(
    out,
    FLAG_BINARY_PUBLISH_ACK | (coded ? FLAG_BINARY_PUBLISH_ACK_CODE : 0) |
      (detailed ? FLAG_BINARY_PUBLISH_ACK_DETAIL : 0) |
      (owner === undefined ? 0 : FLAG_BINARY_PUBLISH_ACK_OWNER) |
      (hasOffset ? FLAG_BINARY_PUBLISH_ACK_OFFSET : 0),
  );
  out.u8(error === undefined ? 0 : 1);
  out.u64(ack.requestId);
  text(out, error?.message ?? "");
  if (coded) {
    out.u16(codeNumber(error.code!) ?? codeNumber("internal")!);
    out.u8(retryByte(error.retry ?? "fatal"));
  }
  if (detailed) {
    text(out, error.reason ?? "");
    out.u64(error.retryAfterMs ?? 0n);
  }
  if (owner !== undefined) {
    text(out, owner.nodeId);
    text(out, owner.addr ?? "");
    out.u64(owner.generation);
  }
  if (hasOffset) out.u64(offset);
  endFrame(out, start);
}

/** Appends a length and text, cut to what the length can say on a character boundary. */
function text(out: ByteWriter, value: string): void {
  const at = out.length;
  out.u16(0);
  let bytes = out.utf8(value);
  if (bytes > MAX_TEXT_BYTES) {
    bytes = MAX_TEXT_BYTES;
    while ((out.buffer[at + 2 + bytes]! & 0xc0) === 0x80) bytes--;
    out.length = at + 2 + bytes;
  }
  out.buffer[at] = bytes >> 8;
  out.buffer[at + 1] = bytes & 0xff;
}

/**
 * Decodes one ack. Text on a success is passed over unread.
 * @throws {WireError} `incomplete`, `malformed`
 */
export function decodePublishAck(flags: number, payload: Uint8Array): PublishAck {
  const has = (flag: number): boolean => (flags & flag) !== 0;
  if (!has(FLAG_BINARY_PUBLISH_ACK) || has(~SERVED_FLAGS)) throw malformed("not a publish ack");
  if (has(FLAG_BINARY_PUBLISH_ACK_DETAIL) && !has(FLAG_BINARY_PUBLISH_ACK_CODE)) {
    throw malformed("an ack with detail and no code");
  }
  const fields = new Fields(payload);
  const status = fields.u8();
  if (status > 1) throw malformed(`ack status ${status}`);
  const failed = status === 1;
  if (failed && has(FLAG_BINARY_PUBLISH_ACK_OFFSET)) throw malformed("a failed ack with an offset");
  if (!failed && has(FLAG_BINARY_PUBLISH_ACK_CODE)) throw malformed("a code on a success");
  const requestId = fields.u64();
  const message = fields.text(failed);
  let error: PublishAckError | undefined = failed ? { message } : undefined;
  if (has(FLAG_BINARY_PUBLISH_ACK_CODE)) {
    const code = codeName(fields.u16());
    error = { message, code, retry: retryFromByte(fields.u8()) };
  }
  if (has(FLAG_BINARY_PUBLISH_ACK_DETAIL)) {
    error = { ...error!, reason: fields.text(true), retryAfterMs: fields.u64() };
  }
  let owner: PublishAckOwner | undefined;
  if (has(FLAG_BINARY_PUBLISH_ACK_OWNER)) {
    const nodeId = fields.text(true);
    const addr = fields.text(true);
    owner = { nodeId, addr: addr === "" ? null : addr, generation: fields.u64() };
  }
  const offset = has(FLAG_BINARY_PUBLISH_ACK_OFFSET) ? fields.u64() : undefined;
  return {
    requestId,
    ...(error === undefined ? {} : { error }),
    ...(owner === undefined ? {} : { owner }),
    ...(offset === undefined ? {} : { offset }),
  };
}

/** Reads fields off a payload in order. */
class Fields {
  #at = 0;
  readonly #view: DataView;

  constructor(private readonly bytes: Uint8Array) {
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  u8(): number {
    return this.#view.getUint8(this.#take(1));
  }

  u16(): number {
    return this.#view.getUint16(this.#take(2));
  }

  u64(): bigint {
    return this.#view.getBigUint64(this.#take(8));
  }

  text(read: boolean): string {
    const length = this.u16();
    const at = this.#take(length);
    if (!read || length === 0) return "";
    try {
      return utf8.decode(this.bytes.subarray(at, at + length));
    } catch {
      throw malformed("a text that is not UTF-8");
    }
  }

  #take(bytes: number): number {
    const at = this.#at;
    this.#at = at + bytes;
    if (this.#at > this.bytes.length) throw new WireError("incomplete", "the ack is cut short");
    return at;
  }
}

function malformed(what: string): WireError {
  return new WireError("malformed", what);
}
