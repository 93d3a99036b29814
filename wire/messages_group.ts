// Consumer groups and operator inspection (spec/wire.md §4.7, §4.11).
// Members carry their names on the wire; integers of 64 bits are `bigint`.

import type {
  GroupRecord,
  ShardView,
  SubscribeStart,
  SubscriptionCursor,
  SubscriptionFilter,
  SubscriptionInfo,
} from "./message_values.ts";

/** Claims records. */
export interface GroupPollMessage {
  /** Tells the messages apart. */
  readonly type: "group_poll";
  /** Tenant. */
  readonly tenant_id: string;
  /** Namespace. */
  readonly namespace: string;
  /** Stream. */
  readonly stream: string;
  /** Shard index. */
  readonly shard: number;
  /** Group. */
  readonly group: string;
  /** Most records in the answer. */
  readonly max_records: number;
  /** Milliseconds to wait for a record. */
  readonly wait_ms: bigint;
  /** Request id, chosen by the client and echoed. */
  readonly request_id: bigint;
  /** Name of the member. */
  readonly consumer?: string;
  /** Whether this member's older claims move to this connection. */
  readonly reclaim: boolean;
  /** Milliseconds that a claim holds; 0 = the broker's default. */
  readonly visibility_ms: bigint;
}

/** Finishes a record. */
export interface GroupAckMessage {
  /** Tells the messages apart. */
  readonly type: "group_ack";
  /** Tenant. */
  readonly tenant_id: string;
  /** Namespace. */
  readonly namespace: string;
  /** Stream. */
  readonly stream: string;
  /** Shard index. */
  readonly shard: number;
  /** Group. */
  readonly group: string;
  /** Log offset. */
  readonly offset: bigint;
  /** Request id, chosen by the client and echoed. */
  readonly request_id: bigint;
}

/** Gives a record back. */
export interface GroupNackMessage {
  /** Tells the messages apart. */
  readonly type: "group_nack";
  /** Tenant. */
  readonly tenant_id: string;
  /** Namespace. */
  readonly namespace: string;
  /** Stream. */
  readonly stream: string;
  /** Shard index. */
  readonly shard: number;
  /** Group. */
  readonly group: string;
  /** Log offset. */
  readonly offset: bigint;
  /** Request id, chosen by the client and echoed. */
  readonly request_id: bigint;
  /** Milliseconds until the record is owed again. */
  readonly delay_ms: bigint;
  /** Deliveries of the record so far. */
  readonly attempts: number;
}

/** Extends a claim. */
export interface GroupExtendMessage {
  /** Tells the messages apart. */
  readonly type: "group_extend";
  /** Tenant. */
  readonly tenant_id: string;
  /** Namespace. */
  readonly namespace: string;
  /** Stream. */
  readonly stream: string;
  /** Shard index. */
  readonly shard: number;
  /** Group. */
  readonly group: string;
  /** Log offset. */
  readonly offset: bigint;
  /** Deliveries of the record so far. */
  readonly attempts: number;
  /** Milliseconds to extend by. */
  readonly extend_ms: bigint;
  /** Request id, chosen by the client and echoed. */
  readonly request_id: bigint;
}

/** Sets a record aside. */
export interface GroupDeadLetterMessage {
  /** Tells the messages apart. */
  readonly type: "group_dead_letter";
  /** Tenant. */
  readonly tenant_id: string;
  /** Namespace. */
  readonly namespace: string;
  /** Stream. */
  readonly stream: string;
  /** Shard index. */
  readonly shard: number;
  /** Group. */
  readonly group: string;
  /** Log offset. */
  readonly offset: bigint;
  /** Request id, chosen by the client and echoed. */
  readonly request_id: bigint;
}

/** Asks for the dead letters. */
export interface GroupDeadLettersMessage {
  /** Tells the messages apart. */
  readonly type: "group_dead_letters";
  /** Tenant. */
  readonly tenant_id: string;
  /** Namespace. */
  readonly namespace: string;
  /** Stream. */
  readonly stream: string;
  /** Shard index. */
  readonly shard: number;
  /** Group. */
  readonly group: string;
  /** Request id, chosen by the client and echoed. */
  readonly request_id: bigint;
}

/** Discards a dead letter. */
export interface GroupDiscardMessage {
  /** Tells the messages apart. */
  readonly type: "group_discard";
  /** Tenant. */
  readonly tenant_id: string;
  /** Namespace. */
  readonly namespace: string;
  /** Stream. */
  readonly stream: string;
  /** Shard index. */
  readonly shard: number;
  /** Group. */
  readonly group: string;
  /** Log offset. */
  readonly offset: bigint;
  /** Request id, chosen by the client and echoed. */
  readonly request_id: bigint;
}

/** Hands a dead letter out again. */
export interface GroupRedriveMessage {
  /** Tells the messages apart. */
  readonly type: "group_redrive";
  /** Tenant. */
  readonly tenant_id: string;
  /** Namespace. */
  readonly namespace: string;
  /** Stream. */
  readonly stream: string;
  /** Shard index. */
  readonly shard: number;
  /** Group. */
  readonly group: string;
  /** Log offset. */
  readonly offset: bigint;
  /** Request id, chosen by the client and echoed. */
  readonly request_id: bigint;
}

/** Moves the group. */
export interface GroupSeekMessage {
  /** Tells the messages apart. */
  readonly type: "group_seek";
  /** Tenant. */
  readonly tenant_id: string;
  /** Namespace. */
  readonly namespace: string;
  /** Stream. */
  readonly stream: string;
  /** Shard index. */
  readonly shard: number;
  /** Group. */
  readonly group: string;
  /** Where to begin. */
  readonly start: SubscribeStart;
  /** Whether to move only a new group. */
  readonly if_new: boolean;
  /** Request id, chosen by the client and echoed. */
  readonly request_id: bigint;
}

/** Asks for the group's state. */
export interface GroupDescribeMessage {
  /** Tells the messages apart. */
  readonly type: "group_describe";
  /** Tenant. */
  readonly tenant_id: string;
  /** Namespace. */
  readonly namespace: string;
  /** Stream. */
  readonly stream: string;
  /** Shard index. */
  readonly shard: number;
  /** Group. */
  readonly group: string;
  /** Request id, chosen by the client and echoed. */
  readonly request_id: bigint;
}

/** Deletes the group. */
export interface GroupDeleteMessage {
  /** Tells the messages apart. */
  readonly type: "group_delete";
  /** Tenant. */
  readonly tenant_id: string;
  /** Namespace. */
  readonly namespace: string;
  /** Stream. */
  readonly stream: string;
  /** Shard index. */
  readonly shard: number;
  /** Group. */
  readonly group: string;
  /** Request id, chosen by the client and echoed. */
  readonly request_id: bigint;
}

/** Claimed records. */
export interface GroupRecordsMessage {
  /** Tells the messages apart. */
  readonly type: "group_records";
  /** The records. */
  readonly records: readonly GroupRecord[];
  /** Request id, chosen by the client and echoed. */
  readonly request_id: bigint;
}

/** A claim's new time. */
export interface GroupExtendedMessage {
  /** Tells the messages apart. */
  readonly type: "group_extended";
  /** Milliseconds granted. */
  readonly visible_ms: bigint;
  /** Request id, chosen by the client and echoed. */
  readonly request_id: bigint;
}

/** Offsets of dead letters, ascending. */
export interface GroupDeadLetterListMessage {
  /** Tells the messages apart. */
  readonly type: "group_dead_letter_list";
  /** Offsets, ascending. */
  readonly offsets: readonly bigint[];
  /** Request id, chosen by the client and echoed. */
  readonly request_id: bigint;
}

/** The group's position. */
export interface GroupPositionMessage {
  /** Tells the messages apart. */
  readonly type: "group_position";
  /** Log offset. */
  readonly offset: bigint;
  /** Whether it moved. */
  readonly moved: boolean;
  /** Request id, chosen by the client and echoed. */
  readonly request_id: bigint;
}

/** The group's state. */
export interface GroupInfoMessage {
  /** Tells the messages apart. */
  readonly type: "group_info";
  /** Committed offset. */
  readonly committed?: bigint;
  /** Next offset. */
  readonly tail: bigint;
  /** Records claimed. */
  readonly in_flight: bigint;
  /** Records owed. */
  readonly owed: bigint;
  /** Dead letters. */
  readonly dead_letters: bigint;
  /** Request id, chosen by the client and echoed. */
  readonly request_id: bigint;
}

/** Whether the group existed. */
export interface GroupDeletedMessage {
  /** Tells the messages apart. */
  readonly type: "group_deleted";
  /** Whether it existed. */
  readonly existed: boolean;
  /** Request id, chosen by the client and echoed. */
  readonly request_id: bigint;
}

/** Asks an operator's question about a shard. */
export interface ShardInspectMessage {
  /** Tells the messages apart. */
  readonly type: "shard_inspect";
  /** Tenant. */
  readonly tenant_id: string;
  /** Namespace. */
  readonly namespace: string;
  /** Name. */
  readonly name: string;
  /** What the name names. */
  readonly kind: "stream" | "cache";
  /** Shard index. */
  readonly shard: number;
  /** Request id, chosen by the client and echoed. */
  readonly request_id: bigint;
}

/** A shard as its broker sees it. */
export interface ShardInspectInfoMessage {
  /** Tells the messages apart. */
  readonly type: "shard_inspect_info";
  /** What the broker sees. */
  readonly view: ShardView;
  /** Request id, chosen by the client and echoed. */
  readonly request_id: bigint;
}

/** Asks for subscriptions. */
export interface SubscriptionsListMessage {
  /** Tells the messages apart. */
  readonly type: "subscriptions_list";
  /** Which ones. */
  readonly filter: SubscriptionFilter;
  /** Most entries. */
  readonly limit?: number;
  /** Where to go on. */
  readonly cursor?: SubscriptionCursor;
  /** Request id, chosen by the client and echoed. */
  readonly request_id: bigint;
}

/** Subscriptions in order. */
export interface SubscriptionsListInfoMessage {
  /** Tells the messages apart. */
  readonly type: "subscriptions_list_info";
  /** Broker's id. */
  readonly node_id: string;
  /** The subscriptions. */
  readonly subscriptions: readonly SubscriptionInfo[];
  /** Where the next page begins. */
  readonly next_cursor?: SubscriptionCursor;
  /** Request id, chosen by the client and echoed. */
  readonly request_id: bigint;
}
