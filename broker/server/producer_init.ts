// Ids for idempotent producers (spec/semantics.md §5.1). Rule: an id is random and nothing is kept
// for it, so it is good on every shard and every broker, and a client learns it exactly in any
// language: it is below 2^53.

import { encodeMessage } from "@felix/wire";
import type { ProducerInitMessage } from "@felix/wire";
import type { Outbox } from "./outbox.ts";

const MASK = 0x1F_FFFF_FFFF_FFFFn;

/** A random id in [1, 2^53 - 1]. */
export function newProducerId(): bigint {
  const words = new BigUint64Array(1);
  for (;;) {
    const id = crypto.getRandomValues(words)[0]! & MASK;
    if (id !== 0n) return id;
  }
}

/** Answers `producer_init`. */
export function answerProducerInit({ request_id }: ProducerInitMessage, outbox: Outbox): void {
  const producer_id = newProducerId();
  encodeMessage({ type: "producer_init_ok", request_id, producer_id }, outbox.writer);
}
