// Subscribing, event streams, commits, bounded reads (spec/wire.md §4.5, §4.8, §4.9).
// Members carry their names on the wire; integers of 64 bits are `bigint`.

import type { StateChange, StreamRecord, SubscribeStart } from "./message_values.ts";

/** Opens a subscription to one shard. */
export interface SubscribeMessage {
  /** Tells the messages apart. */
  readonly type: "subscribe";
  /** Tenant. */
  readonly tenant_id: string;
  /** Namespace. */
  readonly namespace: string;
  /** Stream. */
  readonly stream: string;
  /** Subscription id. */
  readonly subscription_id?: bigint;
  /** Where to begin. */
  readonly start?: SubscribeStart;
  /** Shard index. */
  readonly shard?: number;
  /** Broker-side queue, in published batches. */
  readonly queue_capacity?: number;
}

/** Accepts a subscribe. */
export interface SubscribedMessage {
  /** Tells the messages apart. */
  readonly type: "subscribed";
  /** Subscription id. */
  readonly subscription_id: bigint;
  /** First offset delivered. */
  readonly start_offset?: bigint;
  /** Tail at registration. */
  readonly live_offset?: bigint;
  /** Broker-side queue, in published batches. */
  readonly queue_capacity?: number;
}

/** Refuses a start that cannot be read. */
export interface SubscribeCursorErrorMessage {
  /** Tells the messages apart. */
  readonly type: "subscribe_cursor_error";
  /** Why. */
  readonly reason: "too_old" | "in_future";
  /** Offset that was asked for. */
  readonly requested: bigint;
  /** Nearest offset that can be read. */
  readonly available: bigint;
  /** Headers of the trim that hid the offset. */
  readonly trim_headers?: Uint8Array;
}

/** First frame of an event stream. */
export interface EventStreamHelloMessage {
  /** Tells the messages apart. */
  readonly type: "event_stream_hello";
  /** Subscription id. */
  readonly subscription_id: bigint;
}

/** One event, JSON form. */
export interface EventMessage {
  /** Tells the messages apart. */
  readonly type: "event";
  /** Tenant. */
  readonly tenant_id: string;
  /** Namespace. */
  readonly namespace: string;
  /** Stream. */
  readonly stream: string;
  /** The record's bytes. */
  readonly payload: Uint8Array;
  /** Log offset. */
  readonly offset?: bigint;
}

/** Events, JSON form. */
export interface EventBatchMessage {
  /** Tells the messages apart. */
  readonly type: "event_batch";
  /** Tenant. */
  readonly tenant_id: string;
  /** Namespace. */
  readonly namespace: string;
  /** Stream. */
  readonly stream: string;
  /** The records' bytes. */
  readonly payloads: readonly Uint8Array[];
  /** Offset of the first event. */
  readonly base_offset?: bigint;
}

/** Last frame of an event stream: the shard is served elsewhere. */
export interface ShardMovedMessage {
  /** Tells the messages apart. */
  readonly type: "shard_moved";
  /** Subscription id. */
  readonly subscription_id: bigint;
  /** Offset to go on from. */
  readonly resume_from?: bigint;
  /** Broker's id. */
  readonly node_id?: string;
  /** Client address, `host:port`. */
  readonly addr?: string;
  /** Assignment epoch. */
  readonly generation: bigint;
}

/** Last frame of an event stream: the stream is gone. */
export interface StreamDeletedMessage {
  /** Tells the messages apart. */
  readonly type: "stream_deleted";
  /** Subscription id. */
  readonly subscription_id: bigint;
}

/** Last frame of an event stream: records were dropped. */
export interface SubscriptionLaggedMessage {
  /** Tells the messages apart. */
  readonly type: "subscription_lagged";
  /** Subscription id. */
  readonly subscription_id: bigint;
  /** Offset to go on from. */
  readonly resume_from: bigint;
}

/** Writes an event and state changes as one record. */
export interface CommitMessage {
  /** Tells the messages apart. */
  readonly type: "commit";
  /** Tenant. */
  readonly tenant_id: string;
  /** Namespace. */
  readonly namespace: string;
  /** Stream. */
  readonly stream: string;
  /** Key of the entity; picks the shard. */
  readonly entity_key: Uint8Array;
  /** The event's bytes. */
  readonly event: Uint8Array;
  /** State changes. */
  readonly changes: readonly StateChange[];
  /** Request id, chosen by the client and echoed. */
  readonly request_id: bigint;
  /** Next offset that the shard must have. */
  readonly expected_offset?: bigint;
  /** Shard index. */
  readonly shard?: number;
}

/** Accepts a commit. */
export interface CommitOkMessage {
  /** Tells the messages apart. */
  readonly type: "commit_ok";
  /** Request id, chosen by the client and echoed. */
  readonly request_id: bigint;
  /** Log offset. */
  readonly offset: bigint;
}

/** Reads state written by commits. */
export interface StateGetMessage {
  /** Tells the messages apart. */
  readonly type: "state_get";
  /** Tenant. */
  readonly tenant_id: string;
  /** Namespace. */
  readonly namespace: string;
  /** Stream. */
  readonly stream: string;
  /** Key of the entity; picks the shard. */
  readonly entity_key: Uint8Array;
  /** Key. */
  readonly key: string;
  /** Request id, chosen by the client and echoed. */
  readonly request_id: bigint;
  /** Shard index. */
  readonly shard?: number;
}

/** State; `null` = none. */
export interface StateValueMessage {
  /** Tells the messages apart. */
  readonly type: "state_value";
  /** The value. */
  readonly value: Uint8Array | null;
  /** Version of the value. */
  readonly version?: bigint;
  /** Offset of the last commit reflected. */
  readonly as_of?: bigint;
  /** Request id, chosen by the client and echoed. */
  readonly request_id: bigint;
}

/** Reads a page of records. */
export interface StreamReadMessage {
  /** Tells the messages apart. */
  readonly type: "stream_read";
  /** Tenant. */
  readonly tenant_id: string;
  /** Namespace. */
  readonly namespace: string;
  /** Stream. */
  readonly stream: string;
  /** Shard index. */
  readonly shard: number;
  /** First offset wanted. */
  readonly from: bigint;
  /** First offset not wanted. */
  readonly end?: bigint;
  /** Most records in the answer. */
  readonly max_records: number;
  /** Most payload bytes in the answer; 0 = the broker's cap. */
  readonly max_bytes: bigint;
  /** Request id, chosen by the client and echoed. */
  readonly request_id: bigint;
}

/** A page of records. */
export interface StreamRecordsMessage {
  /** Tells the messages apart. */
  readonly type: "stream_records";
  /** The records. */
  readonly records: readonly StreamRecord[];
  /** Where the next page begins. */
  readonly next_offset: bigint;
  /** Request id, chosen by the client and echoed. */
  readonly request_id: bigint;
}

/** Asks for the first offset at or after a time. */
export interface OffsetForTimeMessage {
  /** Tells the messages apart. */
  readonly type: "offset_for_time";
  /** Tenant. */
  readonly tenant_id: string;
  /** Namespace. */
  readonly namespace: string;
  /** Stream. */
  readonly stream: string;
  /** Shard index. */
  readonly shard: number;
  /** Time, microseconds since the Unix epoch. */
  readonly at_micros: bigint;
  /** Request id, chosen by the client and echoed. */
  readonly request_id: bigint;
}

/** That offset; absent = nothing that recent. */
export interface OffsetValueMessage {
  /** Tells the messages apart. */
  readonly type: "offset_value";
  /** Log offset. */
  readonly offset?: bigint;
  /** Request id, chosen by the client and echoed. */
  readonly request_id: bigint;
}

/** Hides the records below an offset. */
export interface TrimBeforeMessage {
  /** Tells the messages apart. */
  readonly type: "trim_before";
  /** Tenant. */
  readonly tenant_id: string;
  /** Namespace. */
  readonly namespace: string;
  /** Stream. */
  readonly stream: string;
  /** Shard index. */
  readonly shard: number;
  /** First offset that stays. */
  readonly before: bigint;
  /** Next offset that the shard must have. */
  readonly expected_offset: bigint;
  /** Opaque bytes kept with the trim. */
  readonly headers?: Uint8Array;
  /** Request id, chosen by the client and echoed. */
  readonly request_id: bigint;
}

/** Accepts a trim. */
export interface TrimOkMessage {
  /** Tells the messages apart. */
  readonly type: "trim_ok";
  /** Request id, chosen by the client and echoed. */
  readonly request_id: bigint;
  /** Log offset. */
  readonly offset?: bigint;
  /** Where reads begin now. */
  readonly oldest: bigint;
}
