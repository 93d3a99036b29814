// The settings of the traffic that this build applies: publishing, limits, streams, caches and
// delivery (spec/operations.md §3.3 to §3.5). A row here has a member in `BrokerSettings`;
// `load.ts` copies it there.

import {
  BOOLEAN,
  BYTES,
  COUNT,
  COUNT_OR_ZERO,
  MILLISECONDS,
  MILLISECONDS_OR_ZERO,
  POLICY,
} from "./kinds.ts";
import type { Setting } from "./setting.ts";

/** The publish path (spec/operations.md §3.3). */
export const PUBLISH_SETTINGS: readonly Setting[] = [
  {
    name: "FELIX_BROKER_PUB_WORKERS_PER_CONN",
    key: "pub_workers_per_conn",
    kind: { type: "integer", min: 1, max: 1024 },
    default: "4",
    effect: "applied",
    summary: "Executors of the publish scheduler, for the whole process despite the name.",
  },
  {
    name: "FELIX_BROKER_PUB_QUEUE_DEPTH",
    key: "pub_queue_depth",
    kind: COUNT,
    default: "512",
    effect: "applied",
    summary: "Publish queue slots guaranteed per tenant; the queue holds this times the executors.",
  },
  {
    name: "FELIX_BROKER_PUBLISH_INFLIGHT_BYTES",
    key: "pub_inflight_bytes",
    kind: BYTES,
    default: "67108864",
    effect: "applied",
    summary: "Process-wide budget of queued or processing publish bytes.",
  },
  {
    name: "FELIX_BROKER_PUBLISH_CONN_INFLIGHT_BYTES",
    key: "pub_conn_inflight_bytes",
    kind: BYTES,
    default: "16777216",
    effect: "applied",
    summary: "Share of that budget of one identity on one connection.",
  },
  {
    name: "FELIX_BROKER_PUBLISH_WINDOW",
    key: "publish_window",
    kind: { type: "integer", min: 0, max: 65535 },
    default: "256",
    effect: "applied",
    summary: "Acked publishes one stream may have unanswered; 0: no pipelining.",
  },
  {
    name: "FELIX_PUB_INGRESS_WAIT",
    key: "pub_ingress_wait",
    kind: BOOLEAN,
    default: "false",
    effect: "applied",
    summary: "Unacked publishes wait for room instead of being shed.",
  },
  {
    name: "FELIX_PUBLISH_QUEUE_WAIT_MS",
    key: "publish_queue_wait_timeout_ms",
    kind: MILLISECONDS,
    default: "2000",
    effect: "applied",
    summary: "Milliseconds a commit-acked publish waits for room before it is refused.",
  },
  {
    name: "FELIX_ACK_ON_COMMIT",
    key: "ack_on_commit",
    kind: BOOLEAN,
    default: "true",
    effect: "applied",
    summary: "Ack after the write; `false`: on enqueue.",
  },
  {
    name: "FELIX_ACK_WAIT_TIMEOUT_MS",
    key: "ack_wait_timeout_ms",
    kind: MILLISECONDS,
    default: "2000",
    effect: "applied",
    summary: "Milliseconds an answer may wait for a commit.",
  },
  {
    name: "FELIX_MAX_FRAME_BYTES",
    key: "max_frame_bytes",
    kind: { type: "bytes", min: 1024, max: 2 ** 32 - 1, zeroIsDefault: true },
    default: "16777216",
    effect: "applied",
    summary: "Largest frame payload accepted or sent; 0: the default.",
  },
  {
    name: "FELIX_BROKER_PUB_CONN_RECV_WINDOW",
    key: "pub_conn_recv_window",
    kind: BYTES,
    default: "the larger of `pub_conn_inflight_bytes` and `max_frame_bytes`",
    derive: (number) =>
      Math.max(
        number("FELIX_BROKER_PUBLISH_CONN_INFLIGHT_BYTES"),
        number("FELIX_MAX_FRAME_BYTES"),
      ),
    effect: "applied",
    summary: "Unread publish bytes of one connection at which its reading stops; " +
      "the QUIC window itself only under the quiche engine.",
  },
  {
    name: "FELIX_BROKER_PUB_STREAM_RECV_WINDOW",
    key: "pub_stream_recv_window",
    kind: BYTES,
    default: "the smaller of `pub_conn_recv_window` and `pub_conn_inflight_bytes`, " +
      "at least `max_frame_bytes`",
    derive: (number) =>
      Math.max(
        number("FELIX_MAX_FRAME_BYTES"),
        Math.min(
          number("FELIX_BROKER_PUB_CONN_RECV_WINDOW"),
          number("FELIX_BROKER_PUBLISH_CONN_INFLIGHT_BYTES"),
        ),
      ),
    effect: "applied",
    summary: "The same for one stream.",
  },
];

/** Limits before authentication and per connection (spec/operations.md §3.4). */
export const LIMIT_SETTINGS: readonly Setting[] = [
  {
    name: "FELIX_PREAUTH_MAX_FRAME_BYTES",
    key: "preauth_max_frame_bytes",
    kind: { type: "bytes", min: 1024, max: 2 ** 32 - 1 },
    default: "65536",
    effect: "applied",
    summary: "Largest frame payload before authentication; never above `max_frame_bytes`.",
  },
  {
    name: "FELIX_PREAUTH_MAX_STREAMS_PER_CONN",
    key: "preauth_max_streams_per_conn",
    kind: { type: "integer", min: 1, max: 1024 },
    default: "16",
    effect: "applied",
    summary: "Unauthenticated streams of one connection that are read at once.",
  },
  {
    name: "FELIX_AUTH_TIMEOUT_MS",
    key: "auth_timeout_ms",
    kind: MILLISECONDS_OR_ZERO,
    default: "10000",
    effect: "applied",
    summary: "Milliseconds until a connection without an authenticated stream is closed; 0: never.",
  },
  {
    name: "FELIX_MAX_CLIENT_CONNECTIONS",
    key: "max_client_connections",
    kind: COUNT,
    default: "8192",
    effect: "applied",
    summary: "Client connections; further ones are refused before the handshake.",
  },
  {
    name: "FELIX_MAX_CONNECTIONS_PER_IP",
    key: "limits.max_connections_per_ip",
    kind: COUNT_OR_ZERO,
    default: "512",
    effect: "applied",
    summary: "Client connections of one source address; 0: unlimited.",
  },
  {
    name: "FELIX_MAX_SUBSCRIPTIONS_PER_CONN",
    key: "max_subscriptions_per_conn",
    kind: COUNT,
    default: "4096",
    effect: "applied",
    summary: "Subscriptions of one identity on one connection.",
  },
  {
    name: "FELIX_TENANT_METRICS_MAX",
    kind: { type: "integer", min: 0, max: 10_000 },
    default: "100",
    effect: "applied",
    summary: "Tenants with a metric label of their own; later ones share `_overflow`.",
  },
];

/** Streams, caches and delivery (spec/operations.md §3.5, ours). */
export const DELIVERY_SETTINGS: readonly Setting[] = [
  {
    name: "FELIX_EVENT_BATCH_MAX_EVENTS",
    key: "event_batch_max_events",
    kind: COUNT,
    default: "64",
    effect: "applied",
    summary: "Most events in one delivery frame.",
  },
  {
    name: "FELIX_EVENT_BATCH_MAX_BYTES",
    key: "event_batch_max_bytes",
    kind: BYTES,
    default: "65536",
    effect: "applied",
    summary: "Most payload bytes in one delivery frame.",
  },
  {
    name: "FELIX_EVENT_BATCH_MAX_DELAY_US",
    key: "event_batch_max_delay_us",
    kind: { type: "integer", min: 0, max: 10_000_000 },
    default: "250",
    effect: "applied",
    summary:
      "Microseconds a delivery batch may wait to fill; below 1000 it waits for one turn of " +
      "the event loop, 0: not at all.",
  },
  {
    name: "FELIX_SUBSCRIBER_QUEUE_CAPACITY",
    aliases: ["FELIX_SUB_QUEUE_CAPACITY"],
    key: "subscriber_queue_capacity",
    kind: COUNT,
    default: "512",
    effect: "applied",
    summary: "Queue of one subscriber, in published batches.",
  },
  {
    name: "FELIX_SUBSCRIBER_QUEUE_CAPACITY_MAX",
    key: "subscriber_queue_capacity_max",
    kind: COUNT,
    default: "4096",
    effect: "applied",
    summary: "Most batches a client may ask for with `queue_capacity`.",
  },
  {
    name: "FELIX_SUBSCRIBER_QUEUE_BYTES",
    key: "subscriber_queue_bytes",
    kind: BYTES,
    default: "16777216",
    effect: "applied",
    summary: "Queue of one subscriber, in payload bytes.",
  },
  {
    name: "FELIX_SUB_QUEUE_POLICY",
    key: "subscriber_queue_policy",
    kind: POLICY,
    default: "drop_new",
    effect: "applied",
    summary: "What a full subscriber queue does with the next batch.",
  },
  {
    name: "FELIX_SUB_FLUSH_MAX_ITEMS",
    key: "subscriber_flush_max_items",
    kind: COUNT,
    default: "16",
    effect: "applied",
    summary: "Most frames coalesced into one write.",
  },
  {
    name: "FELIX_SUB_MAX_BYTES_PER_WRITE",
    key: "subscriber_max_bytes_per_write",
    kind: BYTES,
    default: "65536",
    effect: "applied",
    summary: "Most bytes in one write call.",
  },
  {
    name: "FELIX_STREAM_RING_RECORDS",
    key: "stream_ring_records",
    kind: COUNT,
    default: "1024",
    effect: "applied",
    summary: "Most recent records that a stream shard keeps in memory.",
  },
  {
    name: "FELIX_STREAM_RING_BYTES",
    key: "stream_ring_bytes",
    kind: BYTES,
    default: "8388608",
    effect: "applied",
    summary: "Most bytes of records that a stream shard keeps in memory.",
  },
  {
    name: "FELIX_CACHE_MEMORY_BYTES",
    key: "cache_memory_bytes",
    kind: BYTES,
    default: "268435456",
    effect: "applied",
    summary: "Memory of all caches together; past it the least recently used entries go.",
  },
];
