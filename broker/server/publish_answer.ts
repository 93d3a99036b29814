// The answer to one publish as its client can read it: in the form the publish came in, and with a
// producer's refusals only to clients that know them (spec/wire.md §4.4, §5.5).

import { encodeMessage, encodePublishAck, FEATURE_IDEMPOTENT_PRODUCER } from "@felix/wire";
import type { ByteWriter } from "@felix/wire";
import { offers } from "./negotiation.ts";
import type { Peer } from "./negotiation.ts";
import { ackError, publishErrorMessage } from "./refusal.ts";
import type { Refusal } from "./refusal.ts";

/** An answer that waits for its turn: a publish in the pipeline, or a refusal that needed none. */
export interface Answer {
  /** Offset of the first record on a durable stream; -1: none. */
  readonly offset: number;
  readonly requestId: bigint;
  readonly binary: boolean;
  refusal: Refusal | null;
  settled: boolean;
}

/** Appends the answer. */
export function encodeAnswer(answer: Answer, peer: Peer, out: ByteWriter): void {
  const { refusal, requestId } = answer;
  if (refusal === null) {
    const offset = answer.offset < 0 ? {} : { offset: BigInt(answer.offset) };
    if (answer.binary) encodePublishAck(out, { requestId, ...offset });
    else encodeMessage({ type: "publish_ok", request_id: requestId, ...offset }, out);
    return;
  }
  const { refused: reason, message } = refusal;
  if (answer.binary) {
    encodePublishAck(out, { requestId, error: ackError(refusal, peer.flags) });
  } else if (reason !== undefined && offers(peer, FEATURE_IDEMPOTENT_PRODUCER)) {
    encodeMessage({ type: "publish_refused", request_id: requestId, reason, message }, out);
  } else {
    encodeMessage(publishErrorMessage(requestId, refusal, peer.readsCodes), out);
  }
}
