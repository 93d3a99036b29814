// Values that several messages share (spec/wire.md §4): members are named as on the wire, integers
// of 64 bits are `bigint`, an optional member is absent when unset.

/** Where a subscription or group begins; `offset` = first record not yet seen. */
export type SubscribeStart = "latest" | "earliest" | { readonly offset: bigint };

/** Condition of a conditional put: no live entry, or exactly this version. */
export type CacheCondition = "absent" | { readonly version: bigint };

/** Why an idempotent or conditional publish was refused (spec/wire.md §4.4). */
export type RefusedReason =
  | "unknown_producer"
  | "sequence_expired"
  | "sequence_reused"
  | { readonly sequence_gap: { readonly expected: bigint } }
  | { readonly offset_mismatch: { readonly tail: bigint } }
  | { readonly not_leader: { readonly node_id: string; readonly addr?: string } };

/** One change of keyed state in a commit. */
export type StateChange =
  | { readonly op: "put"; readonly key: string; readonly value: Uint8Array }
  | { readonly op: "delete"; readonly key: string };

/** Detail of an error; both members are optional. */
export interface ErrorDetail {
  /** Why. */
  readonly reason?: string;
  /** Milliseconds to wait. */
  readonly retry_after_ms?: bigint;
}

/** A broker that a client may use. */
export interface BrokerAddress {
  /** Broker's id. */
  readonly node_id: string;
  /** Client address, `host:port`. */
  readonly addr: string;
}

/** Who owns one shard. */
export interface ShardOwner {
  /** Shard index. */
  readonly shard: number;
  /** Broker's id. */
  readonly node_id?: string;
  /** Client address, `host:port`. */
  readonly addr?: string;
  /** Assignment epoch. */
  readonly generation: bigint;
  /** Why nobody serves the shard. */
  readonly unavailable?: string;
}

/** A record of a page. */
export interface StreamRecord {
  /** Log offset. */
  readonly offset: bigint;
  /** The record's bytes. */
  readonly payload: Uint8Array;
  /** Publishing principal. */
  readonly publisher?: string;
  /** Append time, microseconds since the Unix epoch. */
  readonly timestamp_micros: bigint;
}

/** A claimed record. */
export interface GroupRecord {
  /** Log offset. */
  readonly offset: bigint;
  /** The record's bytes. */
  readonly payload: Uint8Array;
  /** Deliveries of the record so far. */
  readonly attempts: number;
  /** Offsets just before that hold no record. */
  readonly skipped_before: bigint;
  /** Publishing principal. */
  readonly publisher?: string;
  /** Append time, microseconds since the Unix epoch. */
  readonly timestamp_micros?: bigint;
}

/** Who a shard is assigned to. */
export interface ShardAssignment {
  /** Assignment epoch. */
  readonly generation: bigint;
  /** Leading broker. */
  readonly leader: string;
  /** Replicas. */
  readonly replicas: readonly string[];
  /** Whether it is being drained. */
  readonly draining: boolean;
  /** Who takes over. */
  readonly successor?: string;
}

/** Progress of a fence. */
export interface ShardFence {
  /** Replicas that took the fence. */
  readonly took: readonly string[];
  /** Replicas that have not. */
  readonly pending: readonly string[];
  /** Tries so far. */
  readonly attempts: number;
  /** Milliseconds until the next try. */
  readonly retry_in_ms?: bigint;
}

/** The lease of a shard. */
export interface ShardLease {
  /** Whether it is held. */
  readonly held: boolean;
  /** Milliseconds left. */
  readonly remaining_ms?: bigint;
}

/** One replica of a shard. */
export interface ShardReplica {
  /** Broker's id. */
  readonly node_id: string;
  /** Role. */
  readonly role: string;
  /** Where the next page begins. */
  readonly next_offset?: bigint;
  /** Records behind. */
  readonly lag?: bigint;
  /** Whether the fence stands. */
  readonly fence: boolean;
  /** State. */
  readonly state: string;
  /** Why it halted. */
  readonly halted?: string;
}

/** A shard as its broker sees it. */
export interface ShardView {
  /** Broker's id. */
  readonly node_id: string;
  /** Width in shards. */
  readonly shards: number;
  /** Role. */
  readonly role: string;
  /** Phase. */
  readonly phase: string;
  /** Whether it serves. */
  readonly serving: boolean;
  /** Why. */
  readonly reason?: string;
  /** Detail. */
  readonly detail?: string;
  /** Assignment epoch. */
  readonly generation?: bigint;
  /** Assignment. */
  readonly assignment?: ShardAssignment;
  /** Whether the fence stands. */
  readonly fence?: ShardFence;
  /** Lease. */
  readonly lease?: ShardLease;
  /** Next offset. */
  readonly tail?: bigint;
  /** Committed offset. */
  readonly committed?: bigint;
  /** Newest generation accepted. */
  readonly accepted_generation?: bigint;
  /** Replicas. */
  readonly replicas: readonly ShardReplica[];
}

/** Which subscriptions to list. */
export interface SubscriptionFilter {
  /** Tenant. */
  readonly tenant_id?: string;
  /** Namespace. */
  readonly namespace?: string;
  /** Stream. */
  readonly stream?: string;
  /** Shard index. */
  readonly shard?: number;
  /** Principal. */
  readonly principal?: string;
  /** Only those that drop. */
  readonly dropping: boolean;
}

/** Where a list goes on. */
export interface SubscriptionCursor {
  /** Tenant. */
  readonly tenant_id: string;
  /** Namespace. */
  readonly namespace: string;
  /** Stream. */
  readonly stream: string;
  /** Shard index. */
  readonly shard: number;
  /** Subscriber id within the shard. */
  readonly subscriber_id: bigint;
}

/** One subscription. */
export interface SubscriptionInfo {
  /** Tenant. */
  readonly tenant_id: string;
  /** Namespace. */
  readonly namespace: string;
  /** Stream. */
  readonly stream: string;
  /** Shard index. */
  readonly shard: number;
  /** Subscriber id within the shard. */
  readonly subscriber_id: bigint;
  /** Subscription id. */
  readonly subscription_id?: bigint;
  /** Connection number. */
  readonly connection?: bigint;
  /** Client address. */
  readonly peer?: string;
  /** Principal. */
  readonly principal?: string;
  /** Queue policy. */
  readonly policy: string;
  /** Batches queued. */
  readonly depth: bigint;
  /** Batches that fit. */
  readonly capacity: bigint;
  /** Records dropped. */
  readonly dropped: bigint;
  /** Last offset delivered. */
  readonly position?: bigint;
  /** Next offset. */
  readonly tail: bigint;
  /** Milliseconds since it began. */
  readonly age_ms: bigint;
}
