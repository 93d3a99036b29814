// Session, topology and generic answers (spec/wire.md §3, §4.2, §4.3). Members stand in the order
// in which they are written.

import {
  JSON_VALUE,
  list,
  message,
  omitted,
  optional,
  required,
  TEXT,
  U16,
  U32,
  U64,
} from "./json_schema.ts";
import type { MessageSchema } from "./json_schema.ts";
import { BROKER_ADDRESS, ERROR_DETAIL, KIND, ROUTING, SHARD_OWNER } from "./value_shapes.ts";

/** Tables of the messages in messages_session.ts. */
export const SESSION_MESSAGES: readonly MessageSchema[] = [
  message(
    "auth",
    required("tenant_id", TEXT),
    required("token", TEXT),
    optional("client_flags", U16),
    optional("client_features", U32),
    optional("client_features_hi", U32),
  ),
  message(
    "auth_ok",
    required("server_flags", U16),
    optional("server_features", U32),
    optional("server_features_hi", U32),
    optional("listener_ports", list(U16)),
    optional("publish_window", U32),
  ),
  message("ok"),
  message(
    "error",
    required("message", TEXT),
    optional("code", TEXT),
    optional("retry", TEXT),
    optional("detail", ERROR_DETAIL),
  ),
  message(
    "unsupported",
    required("request_type", TEXT),
    optional("extension", TEXT),
    optional("request_id", U64),
  ),
  message(
    "extension",
    required("name", TEXT),
    optional("request_id", U64),
    omitted("body", JSON_VALUE, null),
  ),
  message("topology"),
  message("topology_view", required("brokers", list(BROKER_ADDRESS))),
  message(
    "stream_shards",
    required("tenant_id", TEXT),
    required("namespace", TEXT),
    required("stream", TEXT),
    required("request_id", U64),
  ),
  message(
    "stream_shards_view",
    required("shards", U32),
    required("request_id", U64),
    optional("routing", ROUTING),
  ),
  message(
    "cache_shards",
    required("tenant_id", TEXT),
    required("namespace", TEXT),
    required("cache", TEXT),
    required("request_id", U64),
  ),
  message("cache_shards_view", required("shards", U32), required("request_id", U64)),
  message(
    "shard_owners",
    required("tenant_id", TEXT),
    required("namespace", TEXT),
    required("name", TEXT),
    required("kind", KIND),
    required("request_id", U64),
  ),
  message("shard_owners_view", required("owners", list(SHARD_OWNER)), required("request_id", U64)),
  message(
    "not_leader",
    required("node_id", TEXT),
    optional("addr", TEXT),
    required("generation", U64),
  ),
];
