// Publishing in JSON and idempotent producers (spec/wire.md §4.4). Members stand in the order in
// which they are written.

import { BYTES, list, message, optional, required, TEXT, U32, U64 } from "./json_schema.ts";
import type { MessageSchema } from "./json_schema.ts";
import { ACK, ERROR_DETAIL, REFUSED_REASON, ROUTING } from "./value_shapes.ts";

/** Tables of the messages in messages_publish.ts. */
export const PUBLISH_MESSAGES: readonly MessageSchema[] = [
  message(
    "publish",
    required("tenant_id", TEXT),
    required("namespace", TEXT),
    required("stream", TEXT),
    required("payload", BYTES),
    optional("key", BYTES),
    optional("shard", U32),
    optional("request_id", U64),
    optional("ack", ACK),
  ),
  message(
    "publish_batch",
    required("tenant_id", TEXT),
    required("namespace", TEXT),
    required("stream", TEXT),
    required("payloads", list(BYTES)),
    optional("key", BYTES),
    optional("shard", U32),
    optional("request_id", U64),
    optional("ack", ACK),
  ),
  message(
    "publish_width",
    required("tenant_id", TEXT),
    required("namespace", TEXT),
    required("stream", TEXT),
    required("shards", U32),
    optional("routing", ROUTING),
  ),
  message("publish_ok", required("request_id", U64), optional("offset", U64)),
  message(
    "publish_error",
    required("request_id", U64),
    required("message", TEXT),
    optional("code", TEXT),
    optional("retry", TEXT),
    optional("detail", ERROR_DETAIL),
  ),
  message("producer_init", required("request_id", U64)),
  message("producer_init_ok", required("request_id", U64), required("producer_id", U64)),
  message(
    "publish_idempotent",
    required("tenant_id", TEXT),
    required("namespace", TEXT),
    required("stream", TEXT),
    required("payloads", list(BYTES)),
    optional("key", BYTES),
    optional("shard", U32),
    required("request_id", U64),
    required("producer_id", U64),
    required("sequence", U64),
  ),
  message(
    "publish_refused",
    required("request_id", U64),
    required("reason", REFUSED_REASON),
    required("message", TEXT),
  ),
  message(
    "publish_if",
    required("tenant_id", TEXT),
    required("namespace", TEXT),
    required("stream", TEXT),
    required("payloads", list(BYTES)),
    optional("key", BYTES),
    optional("shard", U32),
    required("expected_offset", U64),
    required("request_id", U64),
  ),
];
