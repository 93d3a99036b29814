// Session and generic answers (spec/wire.md §3, §4.2).
// Members carry their names on the wire; integers of 64 bits are `bigint`.

import type { BrokerAddress, ErrorDetail, ShardOwner } from "./message_values.ts";
import type { RoutingMapping } from "./routing.ts";

/** Authenticates a stream; the first message of every stream (§3.1). */
export interface AuthMessage {
  /** Tells the messages apart. */
  readonly type: "auth";
  /** Tenant. */
  readonly tenant_id: string;
  /** Felix token. */
  readonly token: string;
  /** Flag bits that the client can read, 16 bits. */
  readonly client_flags?: number;
  /** Feature bits that the client offers, first word. */
  readonly client_features?: number;
  /** Second word of the client's features. */
  readonly client_features_hi?: number;
}

/** Accepts an `auth` that brought `client_flags` (§3.2). */
export interface AuthOkMessage {
  /** Tells the messages apart. */
  readonly type: "auth_ok";
  /** Flag bits that the broker understands, 16 bits. */
  readonly server_flags: number;
  /** Feature bits that the broker serves, first word. */
  readonly server_features?: number;
  /** Second word of the broker's features. */
  readonly server_features_hi?: number;
  /** All client ports of the broker. */
  readonly listener_ports?: readonly number[];
  /** Acked publishes that may be unanswered. */
  readonly publish_window?: number;
}

/** Accepts an `auth` without flags, and a `cache_put` without a request id. */
export interface OkMessage {
  /** Tells the messages apart. */
  readonly type: "ok";
}

/** Refuses the oldest unanswered request of its stream that is no publish. */
export interface ErrorMessage {
  /** Tells the messages apart. */
  readonly type: "error";
  /** Prose. */
  readonly message: string;
  /** Error code. */
  readonly code?: string;
  /** Retry class. */
  readonly retry?: string;
  /** Detail. */
  readonly detail?: ErrorDetail;
}

/** Answers a request of a type that the broker does not know. */
export interface UnsupportedMessage {
  /** Tells the messages apart. */
  readonly type: "unsupported";
  /** Type of the request. */
  readonly request_type: string;
  /** Name of the extension. */
  readonly extension?: string;
  /** Request id, chosen by the client and echoed. */
  readonly request_id?: bigint;
}

/** Reserved: always answered `unsupported`. */
export interface ExtensionMessage {
  /** Tells the messages apart. */
  readonly type: "extension";
  /** Name. */
  readonly name: string;
  /** Request id, chosen by the client and echoed. */
  readonly request_id?: bigint;
  /** Any JSON value. */
  readonly body: unknown;
}

/** Asks for the brokers that a client may use (§4.3). */
export interface TopologyMessage {
  /** Tells the messages apart. */
  readonly type: "topology";
}

/** Brokers that serve and have a client address. */
export interface TopologyViewMessage {
  /** Tells the messages apart. */
  readonly type: "topology_view";
  /** The brokers. */
  readonly brokers: readonly BrokerAddress[];
}

/** Asks for a stream's width. */
export interface StreamShardsMessage {
  /** Tells the messages apart. */
  readonly type: "stream_shards";
  /** Tenant. */
  readonly tenant_id: string;
  /** Namespace. */
  readonly namespace: string;
  /** Stream. */
  readonly stream: string;
  /** Request id, chosen by the client and echoed. */
  readonly request_id: bigint;
}

/** A stream's width; 0 = unknown here. */
export interface StreamShardsViewMessage {
  /** Tells the messages apart. */
  readonly type: "stream_shards_view";
  /** Width in shards. */
  readonly shards: number;
  /** Request id, chosen by the client and echoed. */
  readonly request_id: bigint;
  /** How keys pick a shard; absent = modulo. */
  readonly routing?: RoutingMapping;
}

/** Asks for a cache's width. */
export interface CacheShardsMessage {
  /** Tells the messages apart. */
  readonly type: "cache_shards";
  /** Tenant. */
  readonly tenant_id: string;
  /** Namespace. */
  readonly namespace: string;
  /** Cache. */
  readonly cache: string;
  /** Request id, chosen by the client and echoed. */
  readonly request_id: bigint;
}

/** A cache's width; 0 = unknown here. */
export interface CacheShardsViewMessage {
  /** Tells the messages apart. */
  readonly type: "cache_shards_view";
  /** Width in shards. */
  readonly shards: number;
  /** Request id, chosen by the client and echoed. */
  readonly request_id: bigint;
}

/** Asks who owns the shards of a stream or cache. */
export interface ShardOwnersMessage {
  /** Tells the messages apart. */
  readonly type: "shard_owners";
  /** Tenant. */
  readonly tenant_id: string;
  /** Namespace. */
  readonly namespace: string;
  /** Name. */
  readonly name: string;
  /** What the name names. */
  readonly kind: "stream" | "cache";
  /** Request id, chosen by the client and echoed. */
  readonly request_id: bigint;
}

/** One entry per shard in order; none = unknown. */
export interface ShardOwnersViewMessage {
  /** Tells the messages apart. */
  readonly type: "shard_owners_view";
  /** One entry per shard. */
  readonly owners: readonly ShardOwner[];
  /** Request id, chosen by the client and echoed. */
  readonly request_id: bigint;
}

/** Redirects to the broker that leads the shard (§4.10). */
export interface NotLeaderMessage {
  /** Tells the messages apart. */
  readonly type: "not_leader";
  /** Broker's id. */
  readonly node_id: string;
  /** Client address, `host:port`. */
  readonly addr?: string;
  /** Assignment epoch. */
  readonly generation: bigint;
}
