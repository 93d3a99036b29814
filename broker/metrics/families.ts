// The metric families of a broker over its counters (spec/operations.md §9.1 to §9.3, §9.6). Names
// are upstream's where upstream has one. Everything is read when somebody scrapes, nothing before.

import type { LogStore } from "@felix/storage";
import { MAX_CLAIM_JOBS } from "../core/mod.ts";
import type { BrokerMetrics } from "./counters.ts";
import { counter, gauge, histogram, info, labelled, samples } from "./family.ts";
import type { Family, Sample } from "./family.ts";
import { COUNT_BOUNDS, Histogram } from "./histogram.ts";
import { storageFamilies } from "./storage_families.ts";

/** What the process knows beside its counters. */
export interface ProcessReadings {
  readonly version: string;
  readonly commit: string;
  /** Start of the process, in seconds since the epoch. */
  readonly startedSeconds: number;
  /** Memory now, in bytes. */
  memory(): { readonly rss: number; readonly heapUsed: number; readonly external: number };
  /** Durable storage; `null`: there is none. */
  readonly store?: LogStore | null;
  /** The memory of all caches. */
  readonly caches?: { readonly bytes: number; readonly evicted: number; readonly expired: number };
}

/** Every family. */
export function brokerFamilies(metrics: BrokerMetrics, process: ProcessReadings): Family[] {
  return [
    ...publishFamilies(metrics),
    ...subscribeFamilies(metrics),
    ...tenantFamilies(metrics),
    ...connectionFamilies(metrics),
    ...cacheFamilies(metrics, process),
    ...authFamilies(metrics),
    ...processFamilies(metrics, process),
    ...(process.store == null ? [] : storageFamilies(process.store)),
  ];
}

function publishFamilies({ publish, pipeline }: BrokerMetrics): Family[] {
  return [
    labelled(
      "felix_publish_requests_total",
      "Publish requests by result; a batch is one",
      "result",
      () => Object.entries(publish.requests),
    ),
    counter("felix_publish_bytes_total", "Payload bytes accepted", () => publish.bytes),
    histogram("felix_publish_latency_ms", "Receipt to answer, in milliseconds", [
      [{ mode: "enqueue" }, publish.latencyEnqueue],
      [{ mode: "commit" }, publish.latencyCommit],
    ]),
    ...ingressFamilies(publish, pipeline),
    samples(
      "felix_tenant_publish_queue_full_total",
      "Publishes of a tenant that found no room",
      () => queueFullSamples(pipeline.tenantQueueFull),
    ),
    labelled(
      "felix_broker_acked_publishes_dropped_total",
      "Publishes acked on enqueue and then not written",
      "reason",
      () => Object.entries(publish.ackedDropped),
    ),
    labelled(
      "felix_broker_json_publishes_total",
      "Publishes that came as JSON",
      "frame",
      () => Object.entries(publish.jsonFrames),
    ),
    counter(
      "felix_broker_publish_worker_restarts_total",
      "Appends that threw; the lane went on",
      () => pipeline.workerRestarts,
    ),
    claimFamily(pipeline.claimJobs),
  ];
}

/** What happened to publishes that found no room. */
function ingressFamilies(
  publish: BrokerMetrics["publish"],
  pipeline: BrokerMetrics["pipeline"],
): Family[] {
  const ingress = "felix_broker_ingress";
  return [
    gauge(`${ingress}_queue_depth`, "Publish jobs waiting", () => publish.queueDepth()),
    counter(`${ingress}_dropped_total`, "Unacked publishes shed", () => pipeline.ingressDropped),
    counter(
      `${ingress}_rejected_total`,
      "Publishes refused for want of room",
      () => pipeline.ingressRejected,
    ),
    counter(
      `${ingress}_waited_total`,
      "Publishes that waited for room",
      () => pipeline.ingressWaited,
    ),
    counter(
      `${ingress}_queue_full_total`,
      "No room in the publish queue",
      () => pipeline.queueFull,
    ),
    counter(
      `${ingress}_bytes_full_total`,
      "No room in the byte budget of the process",
      () => pipeline.bytesFull,
    ),
    counter(
      `${ingress}_conn_bytes_full_total`,
      "No room in the byte budget of a connection",
      () => pipeline.connBytesFull,
    ),
    counter(
      `${ingress}_backpressure_cancelled_total`,
      "Publishes that waited when their connection ended",
      () => pipeline.backpressureCancelled,
    ),
  ];
}

/** Claims counted by their exact size, regrouped into buckets at scrape. */
function claimFamily(claims: Float64Array): Family {
  const name = "felix_broker_publish_claim_jobs";
  const bounds = COUNT_BOUNDS.filter((bound) => bound <= MAX_CLAIM_JOBS);
  return {
    name,
    get: () => {
      const regrouped = new Histogram(bounds);
      claims.forEach((times, jobs) => {
        if (times === 0) return;
        const bucket = bounds.findIndex((bound) => jobs <= bound);
        regrouped.counts[bucket < 0 ? bounds.length : bucket]! += times;
        regrouped.sum += times * jobs;
      });
      return histogram(name, "Publishes claimed as one append", [[{}, regrouped]]).get();
    },
  };
}

function queueFullSamples(
  rows: ReadonlyMap<string, { readonly refused: number; readonly dropped: number }>,
): Sample[] {
  return [...rows].flatMap(([tenant, row]) => [
    { value: row.refused, labels: { tenant, action: "refused" } },
    { value: row.dropped, labels: { tenant, action: "dropped" } },
  ]);
}

function subscribeFamilies({ subscribe, delivery, encodes }: BrokerMetrics): Family[] {
  const queue = "felix_sub_queue";
  return [
    labelled(
      "felix_subscribe_requests_total",
      "Subscribe requests by result",
      "result",
      () => Object.entries(subscribe.requests),
    ),
    counter(
      "felix_subscribe_dropped_total",
      "Events dropped for slow subscribers",
      () => delivery.dropped,
    ),
    counter(
      "felix_subscribe_bytes_total",
      "Payload bytes handed to writers",
      () => subscribe.bytes,
    ),
    counter(
      `${queue}_dropped_total`,
      "Events dropped at subscriber queues",
      () => delivery.dropped,
    ),
    counter(
      `${queue}_drop_old_emulated_total`,
      "Events that drop_old discarded",
      () => delivery.dropOldEmulated,
    ),
    counter(
      `${queue}_enqueued_total`,
      "Batches put into subscriber queues",
      () => delivery.enqueued,
    ),
    counter(
      `${queue}_dequeued_total`,
      "Batches taken out of subscriber queues",
      () => delivery.dequeued,
    ),
    gauge(`${queue}_len`, "Batches queued over all subscribers", () => delivery.queueLength),
    gauge("felix_sub_connection_subscribers", "Subscriptions in all", () => subscribe.active),
    counter(
      "felix_subscriber_disconnect_total",
      "Subscriptions ended by a failed write",
      () => subscribe.disconnects,
    ),
    counter("felix_broker_event_encodes_total", "Delivery frames encoded", () => encodes.encodes),
    counter(
      "felix_sub_shared_batch_handles_total",
      "Deliveries that shared an already encoded frame",
      () => encodes.shares,
    ),
    counter(
      "felix_broker_subscribe_conn_limit_rejected_total",
      "Subscriptions refused: too many on their connection",
      () => subscribe.connectionLimitRejected,
    ),
  ];
}

function tenantFamilies({ tenants }: BrokerMetrics): Family[] {
  const of = (
    name: string,
    help: string,
    member: "publishedMessages" | "publishedBytes" | "deliveredMessages" | "deliveredBytes",
  ): Family =>
    labelled(
      `felix_tenant_${name}_total`,
      help,
      "tenant",
      () => [...tenants.entries()].map(([tenant, row]) => [tenant, row[member]] as const),
    );
  return [
    of("published_messages", "Records published", "publishedMessages"),
    of("published_bytes", "Payload bytes published", "publishedBytes"),
    of("delivered_messages", "Records delivered", "deliveredMessages"),
    of("delivered_bytes", "Payload bytes delivered", "deliveredBytes"),
    counter(
      "felix_tenant_metrics_overflow_total",
      "Lookups of tenants without a label of their own",
      () => tenants.overflowed,
    ),
  ];
}

function connectionFamilies({ connections, wire, auth }: BrokerMetrics): Family[] {
  return [
    gauge("felix_quic_connections", "Client connections open", () => connections.open),
    counter(
      "felix_quic_connections_accepted_total",
      "Handshakes completed",
      () => connections.accepted,
    ),
    counter(
      "felix_quic_handshake_failures_total",
      "Handshakes that failed",
      () => connections.handshakeFailures,
    ),
    labelled(
      "felix_quic_connections_refused_total",
      "Connections refused",
      "reason",
      () => [["limit", connections.refusedLimit], ["per_ip_limit", connections.refusedPerIp]],
    ),
    counter(
      "felix_quic_auth_timeouts_total",
      "Connections closed because no stream authenticated in time",
      () => auth.timeouts,
    ),
    counter("felix_stream_reads_total", "Reads of client streams", () => wire.reads),
    labelled("felix_wire_bad_frames_total", "Frames that could not be served", "reason", () => [
      ["bad_header", wire.badHeaders],
      ["unknown_flags", wire.unknownFlags],
      ["malformed", wire.malformedFrames],
    ]),
  ];
}

function cacheFamilies({ cache }: BrokerMetrics, { caches }: ProcessReadings): Family[] {
  const requests = "felix_cache_requests_total";
  const size = caches === undefined ? [] : [
    gauge("felix_cache_bytes", "Memory of all caches in bytes", () => caches.bytes),
    counter("felix_cache_evicted_total", "Entries that made room for others", () => caches.evicted),
    counter("felix_cache_expired_total", "Entries whose time had passed", () => caches.expired),
  ];
  return [
    samples(requests, "Cache requests; a failed one counts under its operation too", () => [
      { value: cache.puts, labels: { op: "put", result: "all" } },
      { value: cache.hits, labels: { op: "get", result: "hit" } },
      { value: cache.misses, labels: { op: "get", result: "miss" } },
      { value: cache.deletes, labels: { op: "delete", result: "all" } },
      { value: cache.counterAdds, labels: { op: "counter_add", result: "all" } },
      { value: cache.counterGets, labels: { op: "counter_get", result: "all" } },
      { value: cache.failed, labels: { op: "any", result: "error" } },
    ]),
    gauge("felix_cache_watches", "Cache watches that are open", () => cache.watches),
    counter(
      "felix_cache_watch_lagged_total",
      "Cache watches that ended because their reader was too slow",
      () => cache.watchLagged,
    ),
    ...size,
  ];
}

function authFamilies({ auth }: BrokerMetrics): Family[] {
  const signatures = "felix_auth_signatures_checked_total";
  return [
    labelled("felix_auth_total", "Streams that authenticated, by result", "result", () => [
      ["ok", auth.ok],
      ...Object.entries(auth.refusals),
    ]),
    counter(signatures, "Token signatures checked", () => auth.signaturesChecked),
    counter(
      "felix_auth_verdicts_remembered_total",
      "Tokens known from an earlier stream",
      () => auth.verdictsRemembered,
    ),
    counter(
      "felix_broker_unknown_permissions_total",
      "Permissions in tokens that mean nothing to this broker",
      () => auth.unknownPermissions,
    ),
    labelled("felix_auth_key_set_loads_total", "Loads of token keys, by result", "result", () => [
      ["ok", auth.keySetLoads],
      ["error", auth.keySetFailures],
    ]),
    counter(
      "felix_auth_stale_keys_total",
      "Looks at keys past their life",
      () => auth.staleKeySets,
    ),
    counter(
      "felix_auth_malformed_keys_total",
      "Keys skipped as malformed",
      () => auth.malformedKeys,
    ),
  ];
}

function processFamilies({ process }: BrokerMetrics, readings: ProcessReadings): Family[] {
  return [
    gauge("felix_ready_state", "1 while ready", () => process.ready),
    gauge("felix_drain_duration_ms", "How long the last drain took", () => process.drainDurationMs),
    labelled(
      "felix_drain_forced_total",
      "Work cut off at shutdown",
      "subsystem",
      () => Object.entries(process.drainForced),
    ),
    histogram("felix_event_loop_lag_seconds", "How late a coarse timer ran", [
      [{}, process.eventLoopLag],
    ]),
    info("felix_build_info", "What is running", {
      version: readings.version,
      commit: readings.commit,
    }),
    gauge(
      "process_start_time_seconds",
      "Start of the process, seconds since the epoch",
      () => readings.startedSeconds,
    ),
    gauge("process_resident_memory_bytes", "Resident memory", () => readings.memory().rss),
    gauge("process_heap_bytes", "JavaScript heap in use", () => readings.memory().heapUsed),
    gauge(
      "process_external_memory_bytes",
      "Memory of buffers outside the heap",
      () => readings.memory().external,
    ),
  ];
}
