// Publishing in JSON and idempotent producers (spec/wire.md §4.4).
// Members carry their names on the wire; integers of 64 bits are `bigint`.

import type { ErrorDetail, RefusedReason } from "./message_values.ts";
import type { RoutingMapping } from "./routing.ts";

/** Publishes one record. */
export interface PublishMessage {
  /** Tells the messages apart. */
  readonly type: "publish";
  /** Tenant. */
  readonly tenant_id: string;
  /** Namespace. */
  readonly namespace: string;
  /** Stream. */
  readonly stream: string;
  /** The record's bytes. */
  readonly payload: Uint8Array;
  /** Key. */
  readonly key?: Uint8Array;
  /** Shard index. */
  readonly shard?: number;
  /** Request id, chosen by the client and echoed. */
  readonly request_id?: bigint;
  /** Ack mode; absent = acked. */
  readonly ack?: "none" | "per_message" | "per_batch";
}

/** Publishes records that get contiguous offsets. */
export interface PublishBatchMessage {
  /** Tells the messages apart. */
  readonly type: "publish_batch";
  /** Tenant. */
  readonly tenant_id: string;
  /** Namespace. */
  readonly namespace: string;
  /** Stream. */
  readonly stream: string;
  /** The records' bytes. */
  readonly payloads: readonly Uint8Array[];
  /** Key. */
  readonly key?: Uint8Array;
  /** Shard index. */
  readonly shard?: number;
  /** Request id, chosen by the client and echoed. */
  readonly request_id?: bigint;
  /** Ack mode; absent = acked. */
  readonly ack?: "none" | "per_message" | "per_batch";
}

/** States the width that keyed batches which follow were routed by; never answered. */
export interface PublishWidthMessage {
  /** Tells the messages apart. */
  readonly type: "publish_width";
  /** Tenant. */
  readonly tenant_id: string;
  /** Namespace. */
  readonly namespace: string;
  /** Stream. */
  readonly stream: string;
  /** Width in shards. */
  readonly shards: number;
  /** How keys pick a shard; absent = modulo. */
  readonly routing?: RoutingMapping;
}

/** Accepts a publish. */
export interface PublishOkMessage {
  /** Tells the messages apart. */
  readonly type: "publish_ok";
  /** Request id, chosen by the client and echoed. */
  readonly request_id: bigint;
  /** Log offset. */
  readonly offset?: bigint;
}

/** Refuses a publish. */
export interface PublishErrorMessage {
  /** Tells the messages apart. */
  readonly type: "publish_error";
  /** Request id, chosen by the client and echoed. */
  readonly request_id: bigint;
  /** Prose. */
  readonly message: string;
  /** Error code. */
  readonly code?: string;
  /** Retry class. */
  readonly retry?: string;
  /** Detail. */
  readonly detail?: ErrorDetail;
}

/** Asks for a producer id. */
export interface ProducerInitMessage {
  /** Tells the messages apart. */
  readonly type: "producer_init";
  /** Request id, chosen by the client and echoed. */
  readonly request_id: bigint;
}

/** A producer id. */
export interface ProducerInitOkMessage {
  /** Tells the messages apart. */
  readonly type: "producer_init_ok";
  /** Request id, chosen by the client and echoed. */
  readonly request_id: bigint;
  /** Producer id, 64 random bits. */
  readonly producer_id: bigint;
}

/** Publishes a numbered batch of a producer. */
export interface PublishIdempotentMessage {
  /** Tells the messages apart. */
  readonly type: "publish_idempotent";
  /** Tenant. */
  readonly tenant_id: string;
  /** Namespace. */
  readonly namespace: string;
  /** Stream. */
  readonly stream: string;
  /** The records' bytes. */
  readonly payloads: readonly Uint8Array[];
  /** Key. */
  readonly key?: Uint8Array;
  /** Shard index. */
  readonly shard?: number;
  /** Request id, chosen by the client and echoed. */
  readonly request_id: bigint;
  /** Producer id, 64 random bits. */
  readonly producer_id: bigint;
  /** Number of the batch of this producer on this shard, from 0. */
  readonly sequence: bigint;
}

/** Refuses an idempotent or conditional publish. */
export interface PublishRefusedMessage {
  /** Tells the messages apart. */
  readonly type: "publish_refused";
  /** Request id, chosen by the client and echoed. */
  readonly request_id: bigint;
  /** Why. */
  readonly reason: RefusedReason;
  /** Prose. */
  readonly message: string;
}

/** Publishes only at an expected offset. */
export interface PublishIfMessage {
  /** Tells the messages apart. */
  readonly type: "publish_if";
  /** Tenant. */
  readonly tenant_id: string;
  /** Namespace. */
  readonly namespace: string;
  /** Stream. */
  readonly stream: string;
  /** The records' bytes. */
  readonly payloads: readonly Uint8Array[];
  /** Key. */
  readonly key?: Uint8Array;
  /** Shard index. */
  readonly shard?: number;
  /** Next offset that the shard must have. */
  readonly expected_offset: bigint;
  /** Request id, chosen by the client and echoed. */
  readonly request_id: bigint;
}
