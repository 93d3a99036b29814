// Reads what a broker answers to acked publishes, in binary or JSON. The common case, written or
// queued without further ado, is read in place.

import { decodeMessage, decodePublishAck, FLAG_BINARY_PUBLISH_ACK } from "@felix/wire";
import { FLAG_BINARY_PUBLISH_ACK_OFFSET } from "@felix/wire";
import type { RefusedReason } from "@felix/wire";
import { errorFromRefusal } from "../failure/broker_failure.ts";
import type { BrokerRefusal } from "../failure/broker_failure.ts";
import { ProtocolError } from "../failure/classes.ts";
import { refusalOf } from "../link/refusal.ts";

/** An answer to one publish. */
export interface PublishAnswer {
  /** Number of the publish on its stream. */
  readonly id: number;
  /** Offset of its first record; `null` when not told. */
  readonly offset: bigint | null;
  /** Why it was refused. */
  readonly refusal?: BrokerRefusal;
  /** Why a producer's batch was refused; `refusal` then says it in words. */
  readonly refused?: RefusedReason;
  /** The owner that the batch was forwarded to. */
  readonly owner?: {
    readonly nodeId: string;
    readonly addr: string | null;
    readonly generation: bigint;
  };
}

const WRITTEN = FLAG_BINARY_PUBLISH_ACK | FLAG_BINARY_PUBLISH_ACK_OFFSET;

function u32(bytes: Uint8Array, at: number): number {
  return ((bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!) >>>
    0;
}

function u64(bytes: Uint8Array, at: number): bigint {
  const high = u32(bytes, at);
  const low = u32(bytes, at + 4);
  return high < 0x20_0000
    ? BigInt(high * 0x1_0000_0000 + low)
    : (BigInt(high) << 32n) | BigInt(low);
}

/** Reads one answer. @throws {ProtocolError} it is none */
export function readAnswer(flags: number, payload: Uint8Array, broker: string): PublishAnswer {
  const plain = flags === WRITTEN ? 19 : flags === FLAG_BINARY_PUBLISH_ACK ? 11 : -1;
  if (
    payload.length === plain && payload[0] === 0 && payload[9] === 0 && payload[10] === 0 &&
    u32(payload, 1) < 0x20_0000
  ) {
    const id = u32(payload, 1) * 0x1_0000_0000 + u32(payload, 5);
    return { id, offset: plain === 19 ? u64(payload, 11) : null };
  }
  if ((flags & FLAG_BINARY_PUBLISH_ACK) !== 0) return readBinary(flags, payload);
  if (flags === 0) return readJson(payload, broker);
  throw new ProtocolError({
    message: `frame flags ${flags} on a publish stream`,
    operation: "publish",
    broker,
  });
}

function readBinary(flags: number, payload: Uint8Array): PublishAnswer {
  const ack = decodePublishAck(flags, payload);
  const after = ack.error?.retryAfterMs;
  return {
    id: Number(ack.requestId),
    offset: ack.offset ?? null,
    ...(ack.error === undefined ? {} : {
      refusal: {
        message: ack.error.message,
        code: ack.error.code,
        retry: ack.error.retry,
        reason: ack.error.reason,
        retryAfterMs: after === undefined ? undefined : Number(after),
      },
    }),
    ...(ack.owner === undefined ? {} : { owner: ack.owner }),
  };
}

function readJson(payload: Uint8Array, broker: string): PublishAnswer {
  const message = decodeMessage(payload);
  switch (message.type) {
    case "publish_ok":
      return { id: Number(message.request_id), offset: message.offset ?? null };
    case "publish_error":
      return { id: Number(message.request_id), offset: null, refusal: refusalOf(message) };
    case "publish_refused": {
      const { reason: refused, message: text } = message;
      const refusal = { message: text, code: "invalid_request", retry: "fatal" };
      return { id: Number(message.request_id), offset: null, refusal, refused };
    }
    case "error":
      // It names no publish, so all that are unanswered are in doubt; the stream is over.
      throw errorFromRefusal(refusalOf(message), { operation: "publish", broker });
    default:
      throw new ProtocolError({
        message: `${message.type} on a publish stream`,
        operation: "publish",
        broker,
      });
  }
}
