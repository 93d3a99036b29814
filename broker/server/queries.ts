// Questions about topology and shards, answered for a broker that stands alone: it owns every
// shard of every stream and cache it knows (spec/wire.md §4.3).

import { encodeMessage } from "@felix/wire";
import type {
  CacheShardsMessage,
  ShardOwnersMessage,
  StreamShardsMessage,
  TopologyMessage,
} from "@felix/wire";
import type { BrokerContext } from "./context.ts";
import type { Outbox } from "./outbox.ts";

/** A question that names no other tenant than the stream's own (checked by the session). */
export type Query =
  | TopologyMessage
  | StreamShardsMessage
  | CacheShardsMessage
  | ShardOwnersMessage;

/** Answers one question. */
export function answerQuery(context: BrokerContext, query: Query, outbox: Outbox): void {
  const out = outbox.writer;
  const { streams, caches } = context.catalog;
  switch (query.type) {
    case "topology": {
      const addr = context.advertisedAddress;
      const brokers = addr === null ? [] : [{ node_id: "standalone", addr }];
      return encodeMessage({ type: "topology_view", brokers }, out);
    }
    case "stream_shards": {
      const { tenant_id, namespace, stream, request_id } = query;
      const found = streams.find(tenant_id, namespace, stream)?.definition;
      const shards = found?.shards ?? 0;
      const jump = found?.routing === "jump_hash" ? { routing: "jump_hash" as const } : {};
      return encodeMessage({ type: "stream_shards_view", shards, request_id, ...jump }, out);
    }
    case "cache_shards": {
      const { tenant_id, namespace, cache, request_id } = query;
      const shards = caches.find(tenant_id, namespace, cache)?.definition.shards ?? 0;
      return encodeMessage({ type: "cache_shards_view", shards, request_id }, out);
    }
    case "shard_owners": {
      const { tenant_id, namespace, name, kind, request_id } = query;
      const found = kind === "stream"
        ? streams.find(tenant_id, namespace, name)
        : caches.find(tenant_id, namespace, name);
      const owners = Array.from(
        { length: found?.definition.shards ?? 0 },
        (_, shard) => ({ shard, generation: 0n }),
      );
      return encodeMessage({ type: "shard_owners_view", owners, request_id }, out);
    }
  }
}
