// Shapes of the values that several messages share; their types, of the same names, are in
// message_values.ts. Members stand in the order in which they are written.

import {
  BOOL,
  BYTES,
  list,
  NONE,
  object,
  omitted,
  optional,
  required,
  TEXT,
  U32,
  U64,
  word,
} from "./json_schema.ts";
import type { JsonShape } from "./json_schema.ts";

/** How a key picks its shard. */
export const ROUTING: JsonShape = word("modulo", "jump_hash");
/** What a name names. */
export const KIND: JsonShape = word("stream", "cache");
/** Ack mode. */
export const ACK: JsonShape = word("none", "per_message", "per_batch");
/** Why a start cannot be read. */
export const CURSOR_REASON: JsonShape = word("too_old", "in_future");
/** `SubscribeStart`. */
export const START: JsonShape = {
  kind: "choice",
  words: ["latest", "earliest"],
  members: [required("offset", U64)],
};
/** `CacheCondition`. */
export const CONDITION: JsonShape = {
  kind: "choice",
  words: ["absent"],
  members: [required("version", U64)],
};
/** `RefusedReason`. */
export const REFUSED_REASON: JsonShape = {
  kind: "choice",
  words: ["unknown_producer", "sequence_expired", "sequence_reused"],
  members: [
    required("sequence_gap", object(required("expected", U64))),
    required("offset_mismatch", object(required("tail", U64))),
    required("not_leader", object(required("node_id", TEXT), optional("addr", TEXT))),
  ],
};
/** `StateChange`. */
export const STATE_CHANGE: JsonShape = {
  kind: "tagged",
  tag: "op",
  variants: {
    put: [required("key", TEXT), required("value", BYTES)],
    delete: [required("key", TEXT)],
  },
};
/** `ErrorDetail`. */
export const ERROR_DETAIL: JsonShape = object(
  optional("reason", TEXT),
  optional("retry_after_ms", U64),
);
/** `BrokerAddress`. */
export const BROKER_ADDRESS: JsonShape = object(
  required("node_id", TEXT),
  required("addr", TEXT),
);
/** `ShardOwner`. */
export const SHARD_OWNER: JsonShape = object(
  required("shard", U32),
  optional("node_id", TEXT),
  optional("addr", TEXT),
  required("generation", U64),
  optional("unavailable", TEXT),
);
/** `StreamRecord`. */
export const STREAM_RECORD: JsonShape = object(
  required("offset", U64),
  required("payload", BYTES),
  optional("publisher", TEXT),
  required("timestamp_micros", U64),
);
/** `GroupRecord`. */
export const GROUP_RECORD: JsonShape = object(
  required("offset", U64),
  required("payload", BYTES),
  required("attempts", U32),
  omitted("skipped_before", U64, 0n),
  optional("publisher", TEXT),
  optional("timestamp_micros", U64),
);
/** `ShardAssignment`. */
export const SHARD_ASSIGNMENT: JsonShape = object(
  required("generation", U64),
  required("leader", TEXT),
  omitted("replicas", list(TEXT), NONE),
  omitted("draining", BOOL, false),
  optional("successor", TEXT),
);
/** `ShardFence`. */
export const SHARD_FENCE: JsonShape = object(
  required("took", list(TEXT)),
  required("pending", list(TEXT)),
  required("attempts", U32),
  optional("retry_in_ms", U64),
);
/** `ShardLease`. */
export const SHARD_LEASE: JsonShape = object(
  required("held", BOOL),
  optional("remaining_ms", U64),
);
/** `ShardReplica`. */
export const SHARD_REPLICA: JsonShape = object(
  required("node_id", TEXT),
  required("role", TEXT),
  optional("next_offset", U64),
  optional("lag", U64),
  omitted("fence", BOOL, false),
  required("state", TEXT),
  optional("halted", TEXT),
);
/** `ShardView`. */
export const SHARD_VIEW: JsonShape = object(
  required("node_id", TEXT),
  required("shards", U32),
  required("role", TEXT),
  required("phase", TEXT),
  required("serving", BOOL),
  optional("reason", TEXT),
  optional("detail", TEXT),
  optional("generation", U64),
  optional("assignment", SHARD_ASSIGNMENT),
  optional("fence", SHARD_FENCE),
  optional("lease", SHARD_LEASE),
  optional("tail", U64),
  optional("committed", U64),
  optional("accepted_generation", U64),
  omitted("replicas", list(SHARD_REPLICA), NONE),
);
/** `SubscriptionFilter`. */
export const SUBSCRIPTION_FILTER: JsonShape = object(
  optional("tenant_id", TEXT),
  optional("namespace", TEXT),
  optional("stream", TEXT),
  optional("shard", U32),
  optional("principal", TEXT),
  omitted("dropping", BOOL, false),
);
/** `SubscriptionCursor`. */
export const SUBSCRIPTION_CURSOR: JsonShape = object(
  required("tenant_id", TEXT),
  required("namespace", TEXT),
  required("stream", TEXT),
  required("shard", U32),
  required("subscriber_id", U64),
);
/** `SubscriptionInfo`. */
export const SUBSCRIPTION_INFO: JsonShape = object(
  required("tenant_id", TEXT),
  required("namespace", TEXT),
  required("stream", TEXT),
  required("shard", U32),
  required("subscriber_id", U64),
  optional("subscription_id", U64),
  optional("connection", U64),
  optional("peer", TEXT),
  optional("principal", TEXT),
  required("policy", TEXT),
  required("depth", U64),
  required("capacity", U64),
  required("dropped", U64),
  optional("position", U64),
  required("tail", U64),
  required("age_ms", U64),
);
