// Caches, watches and counters (spec/wire.md §4.6).
// Members carry their names on the wire; integers of 64 bits are `bigint`.

import type { CacheCondition } from "./message_values.ts";

/** Stores a value. */
export interface CachePutMessage {
  /** Tells the messages apart. */
  readonly type: "cache_put";
  /** Tenant. */
  readonly tenant_id: string;
  /** Namespace. */
  readonly namespace: string;
  /** Cache. */
  readonly cache: string;
  /** Key. */
  readonly key: string;
  /** The value. */
  readonly value: Uint8Array;
  /** Request id, chosen by the client and echoed. */
  readonly request_id?: bigint;
  /** Life in milliseconds; none = for ever. */
  readonly ttl_ms: bigint | null;
}

/** Reads a value. */
export interface CacheGetMessage {
  /** Tells the messages apart. */
  readonly type: "cache_get";
  /** Tenant. */
  readonly tenant_id: string;
  /** Namespace. */
  readonly namespace: string;
  /** Cache. */
  readonly cache: string;
  /** Key. */
  readonly key: string;
  /** Request id, chosen by the client and echoed. */
  readonly request_id?: bigint;
}

/** Removes a value and answers it. */
export interface CacheDeleteMessage {
  /** Tells the messages apart. */
  readonly type: "cache_delete";
  /** Tenant. */
  readonly tenant_id: string;
  /** Namespace. */
  readonly namespace: string;
  /** Cache. */
  readonly cache: string;
  /** Key. */
  readonly key: string;
  /** Request id, chosen by the client and echoed. */
  readonly request_id?: bigint;
}

/** Accepts a put, and settles of group records. */
export interface CacheOkMessage {
  /** Tells the messages apart. */
  readonly type: "cache_ok";
  /** Request id, chosen by the client and echoed. */
  readonly request_id: bigint;
}

/** A value; `null` = none. */
export interface CacheValueMessage {
  /** Tells the messages apart. */
  readonly type: "cache_value";
  /** Tenant. */
  readonly tenant_id: string;
  /** Namespace. */
  readonly namespace: string;
  /** Cache. */
  readonly cache: string;
  /** Key. */
  readonly key: string;
  /** The value. */
  readonly value: Uint8Array | null;
  /** Request id, chosen by the client and echoed. */
  readonly request_id?: bigint;
  /** Version of the value. */
  readonly version?: bigint;
}

/** Stores a value on a condition. */
export interface CachePutIfMessage {
  /** Tells the messages apart. */
  readonly type: "cache_put_if";
  /** Tenant. */
  readonly tenant_id: string;
  /** Namespace. */
  readonly namespace: string;
  /** Cache. */
  readonly cache: string;
  /** Key. */
  readonly key: string;
  /** The value. */
  readonly value: Uint8Array;
  /** Life in milliseconds; none = for ever. */
  readonly ttl_ms?: bigint;
  /** When to write. */
  readonly condition: CacheCondition;
  /** Request id, chosen by the client and echoed. */
  readonly request_id: bigint;
}

/** Removes a value of one version. */
export interface CacheDeleteIfMessage {
  /** Tells the messages apart. */
  readonly type: "cache_delete_if";
  /** Tenant. */
  readonly tenant_id: string;
  /** Namespace. */
  readonly namespace: string;
  /** Cache. */
  readonly cache: string;
  /** Key. */
  readonly key: string;
  /** Version of the value. */
  readonly version: bigint;
  /** Request id, chosen by the client and echoed. */
  readonly request_id: bigint;
}

/** Whether a conditional write was applied. */
export interface CacheConditionResultMessage {
  /** Tells the messages apart. */
  readonly type: "cache_condition_result";
  /** Whether it was written. */
  readonly applied: boolean;
  /** Version of the value. */
  readonly version?: bigint;
  /** Request id, chosen by the client and echoed. */
  readonly request_id: bigint;
}

/** Watches a key or a prefix. */
export interface CacheWatchMessage {
  /** Tells the messages apart. */
  readonly type: "cache_watch";
  /** Tenant. */
  readonly tenant_id: string;
  /** Namespace. */
  readonly namespace: string;
  /** Cache. */
  readonly cache: string;
  /** Key. */
  readonly key?: string;
  /** Prefix of the keys to watch. */
  readonly prefix?: string;
  /** Shard index. */
  readonly shard?: number;
  /** First change not seen. */
  readonly from_offset?: bigint;
  /** Whether current values come first. */
  readonly retained: boolean;
  /** Subscription id. */
  readonly subscription_id?: bigint;
}

/** Accepts a watch. */
export interface CacheWatchStartedMessage {
  /** Tells the messages apart. */
  readonly type: "cache_watch_started";
  /** Subscription id. */
  readonly subscription_id: bigint;
  /** Where the watch begins. */
  readonly resume_offset: bigint;
  /** Whether history was compacted away and current values come first. */
  readonly resnapshot: boolean;
  /** How many current values come first. */
  readonly retained_count?: bigint;
}

/** One change; `value` absent = removed. */
export interface CacheEventMessage {
  /** Tells the messages apart. */
  readonly type: "cache_event";
  /** Key. */
  readonly key: string;
  /** The value. */
  readonly value?: Uint8Array;
  /** Log offset. */
  readonly offset: bigint;
  /** Expiry, milliseconds since the Unix epoch; 0 = never. */
  readonly expires_at_millis: bigint;
}

/** Last frame of a watch: changes were dropped. */
export interface CacheWatchLaggedMessage {
  /** Tells the messages apart. */
  readonly type: "cache_watch_lagged";
  /** Offset to go on from. */
  readonly resume_from: bigint;
}

/** Adds to a counter. */
export interface CounterAddMessage {
  /** Tells the messages apart. */
  readonly type: "counter_add";
  /** Tenant. */
  readonly tenant_id: string;
  /** Namespace. */
  readonly namespace: string;
  /** Cache. */
  readonly cache: string;
  /** Key. */
  readonly key: string;
  /** What to add. */
  readonly delta: bigint;
  /** Request id, chosen by the client and echoed. */
  readonly request_id: bigint;
}

/** Reads a counter. */
export interface CounterGetMessage {
  /** Tells the messages apart. */
  readonly type: "counter_get";
  /** Tenant. */
  readonly tenant_id: string;
  /** Namespace. */
  readonly namespace: string;
  /** Cache. */
  readonly cache: string;
  /** Key. */
  readonly key: string;
  /** Request id, chosen by the client and echoed. */
  readonly request_id: bigint;
}

/** A counter; absent = never written. */
export interface CounterValueMessage {
  /** Tells the messages apart. */
  readonly type: "counter_value";
  /** The value. */
  readonly value?: bigint;
  /** Request id, chosen by the client and echoed. */
  readonly request_id: bigint;
}
