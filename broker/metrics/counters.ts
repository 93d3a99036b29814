// The numbers that a broker process counts, as plain members bumped in place by whoever does the
// work. Nothing here formats or allocates; `exporter.ts` reads the object when somebody scrapes.
// Labels are members of fixed records, so a label value is bounded by its type.

import { noDeliveries, PublishCounters } from "../core/mod.ts";
import type { DeliveryCounters, EncodeStats } from "../core/mod.ts";
import { AUTH_REFUSALS, type AuthRefusal } from "../auth/grants.ts";
import { Histogram, MILLISECOND_BOUNDS, SECOND_BOUNDS } from "./histogram.ts";
import { TenantCounters } from "./tenant_counters.ts";

/** Client connections (spec/operations.md §9.3). */
export interface ConnectionMetrics {
  /** Gauge: connections open now. */
  open: number;
  /** Handshakes completed. */
  accepted: number;
  /** Refused: more than `maxClientConnections`. */
  refusedLimit: number;
  /** Refused: more than `maxConnectionsPerIp` from one address. */
  refusedPerIp: number;
  /** Handshakes that failed. */
  handshakeFailures: number;
}

/** Results of a publish request (spec/operations.md §9.1). */
export type PublishResult = "accepted" | "ok" | "dropped" | "error" | "not_owner" | "unroutable";

/** Frames that carry a publish as JSON. */
export type JsonPublish = "publish" | "publish_batch" | "publish_idempotent";

/** Publishing, apart from the pipeline's own counters (spec/operations.md §9.1). */
export class PublishMetrics {
  /** Requests by result; a batch is one. */
  readonly requests: Record<PublishResult, number> = {
    accepted: 0,
    ok: 0,
    dropped: 0,
    error: 0,
    not_owner: 0,
    unroutable: 0,
  };
  /** Payload bytes of `accepted` and `ok`. */
  bytes = 0;
  /** Jobs in the publish queue now; the server puts its own reader here. */
  queueDepth: () => number = () => 0;
  /** Receipt to answer of enqueue acks, in milliseconds. */
  readonly latencyEnqueue: Histogram = new Histogram(MILLISECOND_BOUNDS);
  /** Receipt to answer of commit acks, in milliseconds. */
  readonly latencyCommit: Histogram = new Histogram(MILLISECOND_BOUNDS);
  /** Publishes that came as JSON, by frame. */
  readonly jsonFrames: Record<JsonPublish, number> = {
    publish: 0,
    publish_batch: 0,
    publish_idempotent: 0,
  };
  /** Acked on enqueue, then not written, by reason. */
  readonly ackedDropped: Record<"not_found" | "internal" | "shutdown", number> = {
    not_found: 0,
    internal: 0,
    shutdown: 0,
  };

  /** Counts one request; `payloadBytes` count for `accepted` and `ok` only. */
  result(result: PublishResult, payloadBytes: number): void {
    this.requests[result]++;
    if (result === "ok" || result === "accepted") this.bytes += payloadBytes;
  }

  /** Counts the time from receipt to answer. */
  latency(elapsedMs: number, mode: "enqueue" | "commit" = "commit"): void {
    (mode === "commit" ? this.latencyCommit : this.latencyEnqueue).observe(elapsedMs);
  }

  /** Counts a publish that came as JSON. */
  json(frame: JsonPublish): void {
    this.jsonFrames[frame]++;
  }
}

/** Subscriptions and delivery (spec/operations.md §9.2). */
export interface SubscribeMetrics {
  /** Requests by result. */
  readonly requests: { ok: number; error: number; refused: number };
  /** Payload bytes handed to writers. */
  bytes: number;
  /** Subscriptions ended by a failed write. */
  disconnects: number;
  /** Gauge: subscriptions in all. */
  active: number;
  /** Refused: too many subscriptions on the connection. */
  connectionLimitRejected: number;
}

/** Caches (spec/operations.md §9.3, ours). */
export interface CacheMetrics {
  puts: number;
  gets: number;
  /** Gets that found their key. */
  hits: number;
  /** Gets that found nothing. */
  misses: number;
  deletes: number;
  counterAdds: number;
  counterGets: number;
  /** Requests that were refused or failed. */
  failed: number;
  /** Gauge: watches that are open. */
  watches: number;
  /** Watches that ended because their reader was too slow. */
  watchLagged: number;
}

/** Authentication of streams (spec/operations.md §9.3, spec/auth.md §9.2). */
export class AuthMetrics {
  /** Streams let in. */
  ok = 0;
  /** Connections closed because none of their streams authenticated in time. */
  timeouts = 0;
  /** Verdicts answered from memory. */
  verdictsRemembered = 0;
  /** Signatures checked. */
  signaturesChecked = 0;
  /** Permissions in tokens whose action or object this build does not know. */
  unknownPermissions = 0;
  /** Key sets loaded. */
  keySetLoads = 0;
  /** Key sets that could not be loaded. */
  keySetFailures = 0;
  /** Verifications with keys past their life. */
  staleKeySets = 0;
  /** Keys of a set that were skipped as malformed. */
  malformedKeys = 0;
  /** Streams refused, by reason. */
  readonly refusals: Record<AuthRefusal, number>;

  constructor() {
    const zeros = AUTH_REFUSALS.map((reason) => [reason, 0]);
    this.refusals = Object.fromEntries(zeros) as Record<AuthRefusal, number>;
  }

  /** Counts a stream that was refused. */
  refused(reason: AuthRefusal): void {
    this.refusals[reason]++;
  }
}

/** Frames that could not be served (ours). */
export interface WireMetrics {
  /** Reads of client streams that brought something. */
  reads: number;
  /** Headers with another magic or version, or of a frame larger than allowed. */
  badHeaders: number;
  /** Frames with flag bits that this build does not know. */
  unknownFlags: number;
  /** Payloads that could not be read. */
  malformedFrames: number;
}

/** The process (spec/operations.md §9.6). */
export interface ProcessMetrics {
  /** Gauge: 1 when `/ready` answers 200. */
  ready: 0 | 1;
  /** Gauge: how long the last drain took. */
  drainDurationMs: number;
  /** Work cut off at shutdown, by subsystem. */
  readonly drainForced: Record<string, number>;
  /** How late a coarse timer ran, in seconds. */
  readonly eventLoopLag: Histogram;
}

/** Everything that one broker process counts. */
export interface BrokerMetrics {
  readonly connections: ConnectionMetrics;
  readonly publish: PublishMetrics;
  /** The publish pipeline's own counters. */
  readonly pipeline: PublishCounters;
  /** Subscriber queues. */
  readonly delivery: DeliveryCounters;
  /** Delivery frames encoded, and deliveries that shared one. */
  readonly encodes: EncodeStats;
  readonly subscribe: SubscribeMetrics;
  readonly cache: CacheMetrics;
  readonly auth: AuthMetrics;
  readonly wire: WireMetrics;
  readonly process: ProcessMetrics;
  /** Per-tenant counters, bounded (spec/operations.md §3.4). */
  readonly tenants: TenantCounters;
}

/** Counters at zero. `tenantMetricsMax`: tenants with a label of their own. */
export function createBrokerMetrics(options: { tenantMetricsMax: number }): BrokerMetrics {
  return {
    connections: connectionMetrics(),
    publish: new PublishMetrics(),
    pipeline: new PublishCounters(options.tenantMetricsMax),
    delivery: noDeliveries(),
    encodes: { encodes: 0, shares: 0 },
    subscribe: subscribeMetrics(),
    cache: cacheMetrics(),
    auth: new AuthMetrics(),
    wire: wireMetrics(),
    process: {
      ready: 0,
      drainDurationMs: 0,
      drainForced: { connections: 0, publishes: 0, subscriptions: 0 },
      eventLoopLag: new Histogram(SECOND_BOUNDS),
    },
    tenants: new TenantCounters(options.tenantMetricsMax),
  };
}

function connectionMetrics(): ConnectionMetrics {
  return {
    open: 0,
    accepted: 0,
    refusedLimit: 0,
    refusedPerIp: 0,
    handshakeFailures: 0,
  };
}

function subscribeMetrics(): SubscribeMetrics {
  return {
    requests: { ok: 0, error: 0, refused: 0 },
    bytes: 0,
    disconnects: 0,
    active: 0,
    connectionLimitRejected: 0,
  };
}

function cacheMetrics(): CacheMetrics {
  return {
    puts: 0,
    gets: 0,
    hits: 0,
    misses: 0,
    deletes: 0,
    counterAdds: 0,
    counterGets: 0,
    failed: 0,
    watches: 0,
    watchLagged: 0,
  };
}

function wireMetrics(): WireMetrics {
  return {
    reads: 0,
    badHeaders: 0,
    unknownFlags: 0,
    malformedFrames: 0,
  };
}
