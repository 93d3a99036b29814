// Words that every part of the public API uses. Offsets are 64 bits wide, so they are `bigint`
// throughout.

/** Bytes as the caller has them; a string is encoded as UTF-8. */
export type BytesLike = Uint8Array | ArrayBuffer | string;

/** Position in a shard's log. */
export type Offset = bigint;

/**
 * When a publish resolves: `none`, once the client's queue took it; `perMessage` and `perBatch`,
 * once the broker acknowledged the frame (spec/client.md §5.1).
 */
export type AckMode = "none" | "perMessage" | "perBatch";

/** Where a subscription starts; an offset is the first record wanted. */
export type StartPosition = "latest" | "earliest" | Offset;

/** What every call takes. */
export interface CallOptions {
  /** Gives the call up. Before anything was sent it rejects with the signal's reason. */
  readonly signal?: AbortSignal;
  /** Milliseconds for the call, retries included. Default: the client's `requestTimeoutMs`. */
  readonly timeoutMs?: number;
}

/** A broker that a client may use. */
export interface BrokerInfo {
  /** Name of the node in its cluster. */
  readonly nodeId: string;
  /** Client-facing address as `host:port`. */
  readonly addr: string;
}

/** Who owns a shard. */
export interface ShardOwner {
  /** Shard number from 0. */
  readonly shard: number;
  /** Name of the owning node; empty when nobody can serve the shard. */
  readonly nodeId: string;
  /** Its client address; `null` when not told. */
  readonly addr: string | null;
  /** Assignment epoch. */
  readonly generation: bigint;
}

/** What a connection is used for. */
export type ConnectionRole = "event" | "cache" | "publish" | "shared";

/** One QUIC connection of a client. */
export interface ConnectionInfo {
  /** Address as `host:port`. */
  readonly broker: string;
  /** What it is used for. */
  readonly role: ConnectionRole;
  /** Streams and subscriptions it carries. */
  readonly streams: number;
  /** `draining`: finishes what it carries and takes nothing new. */
  readonly state: "open" | "draining" | "closed";
  /** When the handshake was done. */
  readonly openedAt: Date;
}

/** Width of a stream and how keys map to its shards. */
export interface StreamRouting {
  /** Number of shards. */
  readonly shards: number;
  /** How a key picks one. */
  readonly mapping: "modulo" | "jumpHash";
}
