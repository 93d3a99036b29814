// The settings that this build knows and does not apply. Each is validated; what happens when one
// is set is in its `effect`: named at start as without effect (`accepted`: this runtime has no such
// lever; `absent`: its feature is not in this build), or the start is refused.

import {
  BOOLEAN,
  BYTES,
  BYTES_OR_ZERO,
  COUNT,
  COUNT_OR_ZERO,
  MILLISECONDS,
  MILLISECONDS_OR_ZERO,
  PATH,
  POLICY,
  TEXT,
} from "./kinds.ts";
import type { Setting, SettingEffect, SettingKind } from "./setting.ts";

const ADDRESS: SettingKind = { type: "address" };
const HOST_PORT: SettingKind = { type: "host_port" };
const PERCENT: SettingKind = { type: "integer", min: 1, max: 100 };

/** Settings whose presence refuses the start. */
export const REFUSED_SETTINGS: readonly Setting[] = [
  refused(
    "FELIX_NODE_ID",
    TEXT,
    "this build runs as a single broker and cannot join a cluster; unset it to run alone",
    "Stable identity of a cluster member.",
    { key: "node.id" },
  ),
  refused(
    "FELIX_KAFKA_LISTEN",
    TEXT,
    "this build has no Kafka listener; unset it",
    "Kafka-protocol listener.",
  ),
  refused(
    "FELIX_TLS_CLIENT_CA",
    PATH,
    "client certificates cannot be required on the client listener; unset it and rely on tokens",
    "CA that client certificates must come from.",
  ),
  refused(
    "FELIX_TLS_CLIENT_CERT_BIND_SUBJECT",
    BOOLEAN,
    "binding tokens to client certificates needs FELIX_TLS_CLIENT_CA, which cannot be honoured",
    "Bind tokens to client certificates.",
    { default: "false", harmless: [false] },
  ),
  refused(
    "FELIX_NODE_REFRESH_TOKEN",
    TEXT,
    "a refresh token is never taken by value, a restart would replay a spent one; " +
      "use FELIX_NODE_REFRESH_TOKEN_FILE",
    "Refused: a refresh token by value.",
    { secret: true },
  ),
];

/** Settings without a lever in this runtime (tier A of spec/operations.md §3). */
export const ACCEPTED_SETTINGS: readonly Setting[] = [
  accepted("FELIX_QUIC_LISTENERS", { type: "integer", min: 1, max: 64 }, "1"),
  accepted("FELIX_CORE_SHARDS", COUNT_OR_ZERO, "0", "core_shards"),
  accepted("FELIX_FANOUT_BATCH", COUNT, "64", "fanout_batch_size"),
  accepted("FELIX_SUB_WRITER_LANES", COUNT, "4", "subscriber_writer_lanes", [
    "FELIX_SUB_EGRESS_LANES",
  ]),
  accepted("FELIX_MAX_SUB_WRITER_LANES", COUNT, "8", "max_subscriber_writer_lanes"),
  accepted("FELIX_SUB_LANE_QUEUE_DEPTH", COUNT, "64", "subscriber_lane_queue_depth", [
    "FELIX_SUB_QUEUE_BOUND",
  ]),
  accepted("FELIX_SUB_QUEUE_MODE", POLICY, "drop_new", "subscriber_lane_queue_policy", [], [
    "FELIX_SUB_LANE_QUEUE_POLICY",
  ]),
  accepted(
    "FELIX_CONTROL_STREAM_DRAIN_TIMEOUT_MS",
    MILLISECONDS,
    "50",
    "control_stream_drain_timeout_ms",
  ),
  accepted("FELIX_CONN_STATS_MS", MILLISECONDS_OR_ZERO),
  accepted(
    "FELIX_SUB_LANE_SHARD",
    {
      type: "choice",
      values: ["auto", "subscriber_id_hash", "connection_id_hash", "round_robin_pin"],
    },
    "auto",
    "subscriber_lane_shard",
  ),
  accepted(
    "FELIX_SUB_SINGLE_WRITER_PER_CONN",
    BOOLEAN,
    "false",
    "subscriber_single_writer_per_conn",
  ),
  accepted("FELIX_SUB_FLUSH_MAX_DELAY_US", COUNT_OR_ZERO, "0", "subscriber_flush_max_delay_us"),
  accepted("FELIX_SUB_STREAMS_PER_CONN", COUNT, "4", "sub_streams_per_conn"),
  accepted(
    "FELIX_SUB_STREAM_MODE",
    { type: "choice", values: ["per_subscriber", "hashed_pool"] },
    "per_subscriber",
    "sub_stream_mode",
  ),
  accepted("FELIX_SUB_DEDICATED_THREAD", TEXT),
  accepted("FELIX_SUB_DEDICATED_QUEUE_CAPACITY", COUNT_OR_ZERO),
  accepted("FELIX_SUB_DELIVERY_SHAPING", TEXT),
  accepted("FELIX_SUB_EGRESS_CONNS", COUNT_OR_ZERO),
  accepted("FELIX_PUMP_COLOCATE", TEXT),
  accepted("FELIX_WORKER_THREADS", COUNT_OR_ZERO),
  accepted("FELIX_EVENT_CONN_RECV_WINDOW", BYTES, "268435456"),
  accepted("FELIX_EVENT_STREAM_RECV_WINDOW", BYTES, "67108864"),
  accepted("FELIX_EVENT_SEND_WINDOW", BYTES, "268435456"),
  accepted("FELIX_CACHE_CONN_RECV_WINDOW", BYTES, "268435456", "cache_conn_recv_window"),
  accepted("FELIX_CACHE_STREAM_RECV_WINDOW", BYTES, "67108864", "cache_stream_recv_window"),
  accepted("FELIX_CACHE_SEND_WINDOW", BYTES, "268435456", "cache_send_window"),
  accepted("FELIX_MTU_UPPER_BOUND", { type: "integer", min: 1200, max: 65527 }, "4096"),
  accepted("FELIX_INITIAL_MTU", { type: "integer", min: 1200, max: 65527 }, "1200"),
  accepted("FELIX_MTU_BLACK_HOLE_COOLDOWN_MS", MILLISECONDS_OR_ZERO, "2000"),
  accepted("FELIX_INITIAL_CWND", BYTES),
  accepted("FELIX_UDP_SEND_BUFFER", BYTES, "8388608"),
  accepted("FELIX_UDP_RECV_BUFFER", BYTES, "8388608"),
  accepted("FELIX_MAX_UDP_PAYLOAD", { type: "integer", min: 1200, max: 65527 }, "65527"),
  accepted("FELIX_IO_RUNTIME_THREADS", COUNT_OR_ZERO),
  accepted("FELIX_ACK_ELICITING_THRESHOLD", COUNT_OR_ZERO, "20"),
  accepted("FELIX_ACK_FREQ_DISABLE", BOOLEAN, "false"),
  accepted("FELIX_DISABLE_TIMINGS", BOOLEAN, "false", "disable_timings"),
  accepted("FELIX_TIMING_SAMPLE_EVERY", COUNT_OR_ZERO),
  accepted("FELIX_STORAGE_IO_URING", BOOLEAN, "0"),
];

/** Settings of features that this build does not have. */
export const ABSENT_SETTINGS: readonly Setting[] = [
  absent("FELIX_CONTROLPLANE_SYNC_INTERVAL_MS", MILLISECONDS, "2000", {
    key: "controlplane_sync_interval_ms",
    aliases: ["FELIX_CP_SYNC_INTERVAL_MS"],
  }),
  absent("FELIX_BROKER_PUBLISH_CONN_TOTAL_INFLIGHT_BYTES", BYTES, null, {
    key: "pub_conn_total_inflight_bytes",
  }),
  absent("FELIX_BROKER_PUB_FLUSH_CONCURRENCY", COUNT, "32"),
  absent("FELIX_RECORD_PUBLISHERS", BOOLEAN, "false", { key: "record_publishers" }),
  absent("FELIX_MAX_SUBSCRIPTIONS_PER_CONN_TOTAL", COUNT, null, {
    key: "max_subscriptions_per_conn_total",
  }),
  absent("FELIX_TENANT_PUBLISH_BYTES_PER_SEC", BYTES_OR_ZERO, "0"),
  absent("FELIX_TENANT_PUBLISH_MSGS_PER_SEC", COUNT_OR_ZERO, "0"),
  absent("FELIX_TENANT_PUBLISH_QUOTAS", TEXT),
  absent("FELIX_TENANT_PUBLISH_BURST_MS", MILLISECONDS_OR_ZERO, "1000"),
  // Durable storage
  absent("FELIX_DURABLE_PREALLOCATE", BOOLEAN, "true"),
  absent("FELIX_DURABLE_ROLLOVER_THRESHOLD_PERCENT", PERCENT, "100"),
  absent("FELIX_DURABLE_MAX_OVERSHOOT_PERCENT", PERCENT, "100"),
  absent("FELIX_DURABLE_OFFLOAD_DIR", PATH),
  // Groups
  absent("FELIX_GROUP_VISIBILITY_TIMEOUT_MS", MILLISECONDS, "30000", {
    key: "groups.visibility_timeout_ms",
  }),
  absent("FELIX_GROUP_MAX_ATTEMPTS", COUNT, "5", { key: "groups.max_attempts" }),
  absent("FELIX_GROUP_MAX_WAIT_MS", MILLISECONDS_OR_ZERO, "30000", { key: "groups.max_wait_ms" }),
  absent("FELIX_GROUP_MAX_IN_FLIGHT", COUNT, "10000", { key: "groups.max_in_flight" }),
  absent("FELIX_GROUP_MAX_VISIBILITY_MS", MILLISECONDS, "43200000", {
    key: "groups.max_visibility_ms",
  }),
  // Cluster membership, peers, replication, moves
  absent("FELIX_NODE_ADVERTISE_ADDR", HOST_PORT, null, { key: "node.advertise_addr" }),
  absent("FELIX_NODE_ZONE", TEXT, null, { key: "node.zone" }),
  absent("FELIX_REGION_BRIDGES", TEXT),
  absent("FELIX_NODE_TOKEN", TEXT, null, { secret: true }),
  absent("FELIX_NODE_TOKEN_FILE", PATH, null, { key: "node.token_file" }),
  absent("FELIX_NODE_REFRESH_TOKEN_FILE", PATH, null, { key: "node.refresh_token_file" }),
  absent("FELIX_NODE_HEARTBEAT_INTERVAL_MS", MILLISECONDS, "5000", {
    key: "node.heartbeat_interval_ms",
  }),
  absent("FELIX_INTERNAL_BIND", ADDRESS, "0.0.0.0:5001", { key: "internal.bind" }),
  absent("FELIX_INTERNAL_TLS_CERT", PATH, null, { key: "internal.tls.cert" }),
  absent("FELIX_INTERNAL_TLS_KEY", PATH, null, { key: "internal.tls.key" }),
  absent("FELIX_INTERNAL_TLS_CA", PATH, null, { key: "internal.tls.ca" }),
  absent("FELIX_INTERNAL_ALLOW_UNAUTHENTICATED", BOOLEAN, "false", {
    key: "internal.allow_unauthenticated",
  }),
  absent("FELIX_INTERNAL_CONNS_PER_PEER", COUNT, "1"),
  absent("FELIX_INTERNAL_STREAMS_PER_CONN", COUNT, "4"),
  absent("FELIX_INTERNAL_MAX_INFLIGHT", COUNT, "1024"),
  absent("FELIX_INTERNAL_REQUEST_TIMEOUT_MS", MILLISECONDS, "5000"),
  absent("FELIX_INTERNAL_HANDSHAKE_TIMEOUT_MS", MILLISECONDS, "2000"),
  absent("FELIX_INTERNAL_IDLE_TIMEOUT_MS", MILLISECONDS, "60000"),
  absent("FELIX_INTERNAL_RECONNECT_BASE_MS", MILLISECONDS, "50"),
  absent("FELIX_INTERNAL_RECONNECT_MAX_MS", MILLISECONDS, "5000"),
  absent("FELIX_INTERNAL_MAX_INBOUND_CONNECTIONS", COUNT, "512"),
  absent("FELIX_INTERNAL_MAX_INBOUND_PER_SOURCE", COUNT, "16"),
  absent("FELIX_INTERNAL_FENCE", BOOLEAN, "true"),
  absent("FELIX_LEADER_SUSPECT_AFTER_MS", MILLISECONDS_OR_ZERO, "5000"),
  absent("FELIX_PUBLISH_QUORUM_TIMEOUT_MS", MILLISECONDS, "5000"),
  absent("FELIX_QUORUM_READS", { type: "choice", values: ["majority", "lease"] }, "majority"),
  absent(
    "FELIX_LEASE_POLICY",
    { type: "choice", values: ["available", "strict"] },
    "available",
  ),
  absent("FELIX_REPLICATION_REBUILD_MAX_CONCURRENT", COUNT_OR_ZERO, "1"),
  absent("FELIX_REPLICATION_REBUILD_BYTES_PER_SEC", BYTES_OR_ZERO, "0"),
  absent("FELIX_SHARD_MOVE_HOLD_MS", MILLISECONDS_OR_ZERO, "2000"),
  absent("FELIX_SHARD_MOVE_HOLD_MAX", COUNT_OR_ZERO, "1024"),
  absent("FELIX_SHARD_MOVE_BYTES_PER_SEC", BYTES_OR_ZERO, "0"),
  absent("FELIX_SHUTDOWN_HANDOFF_TIMEOUT_MS", MILLISECONDS_OR_ZERO, "30000", {
    key: "shutdown_handoff_timeout_ms",
  }),
  // Telemetry, Kafka
  absent("FELIX_SERVICE_INSTANCE_ID", TEXT),
  absent("FELIX_KAFKA_ADVERTISE_ADDR", HOST_PORT),
  absent("FELIX_KAFKA_TLS", BOOLEAN, "true"),
  absent("FELIX_KAFKA_ANONYMOUS_TENANT", TEXT),
  absent("FELIX_KAFKA_DEFAULT_NAMESPACE", TEXT),
  absent("FELIX_KAFKA_MAX_CONNECTIONS", COUNT, "1024"),
  absent("FELIX_KAFKA_MAX_CONNECTIONS_PER_IP", COUNT, "128"),
  absent("FELIX_KAFKA_AUTH_TIMEOUT_MS", MILLISECONDS, "10000"),
];

type Extra = Partial<Pick<Setting, "key" | "aliases" | "secret" | "harmless">> & {
  readonly default?: string;
};

function refused(
  name: string,
  kind: SettingKind,
  refusal: string,
  summary: string,
  extra: Extra = {},
): Setting {
  return { default: null, ...extra, name, kind, effect: "refused", refusal, summary };
}

function accepted(
  name: string,
  kind: SettingKind,
  value: string | null = null,
  key?: string,
  preferredAliases: readonly string[] = [],
  aliases: readonly string[] = [],
): Setting {
  const names = { preferredAliases, aliases };
  return row(name, kind, value, "accepted", key === undefined ? names : { ...names, key });
}

function absent(
  name: string,
  kind: SettingKind,
  value: string | null = null,
  extra: Extra = {},
): Setting {
  return row(name, kind, value, "absent", extra);
}

function row(
  name: string,
  kind: SettingKind,
  value: string | null,
  effect: SettingEffect,
  extra: Partial<Setting>,
): Setting {
  return { ...extra, name, kind, default: value, effect, summary: "" };
}
