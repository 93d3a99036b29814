// The metrics text: parsed strictly, and compared with what was counted.

import { assert, assertEquals } from "@std/assert";
import { createBrokerMetrics } from "./counters.ts";
import type { BrokerMetrics } from "./counters.ts";
import { createExporter } from "./exporter.ts";

const READINGS = {
  version: "1.2.3",
  commit: "abc",
  startedSeconds: 5,
  memory: () => ({ rss: 1, heapUsed: 2, external: 3 }),
  caches: { bytes: 7, evicted: 8, expired: 9 },
};

interface Parsed {
  readonly types: Map<string, string>;
  readonly values: Map<string, number>;
}

/** Parses the text format strictly: every sample belongs to a family that was declared before. */
function parse(text: string): Parsed {
  const types = new Map<string, string>();
  const values = new Map<string, number>();
  for (const line of text.split("\n")) {
    if (line === "") continue;
    const comment = /^# (HELP|TYPE) ([a-z_]+) (.+)$/.exec(line);
    if (comment !== null) {
      if (comment[1] === "TYPE") {
        assert(!types.has(comment[2]!), `${comment[2]} is declared twice`);
        types.set(comment[2]!, comment[3]!);
      }
      continue;
    }
    const sample = /^([a-z_]+)(\{(?:[a-z_]+="[^"]*",?)*\})? (\S+)$/.exec(line);
    assert(sample !== null, `not a sample: ${line}`);
    const family = types.has(sample[1]!) ? sample[1]! : sample[1]!.replace(/_[a-z]+$/, "");
    assert(types.has(family), `no family for ${line}`);
    const id = `${sample[1]}${sample[2] ?? ""}`;
    assert(!values.has(id), `twice: ${id}`);
    values.set(id, Number(sample[3]));
  }
  return { types, values };
}

async function scrape(metrics: BrokerMetrics): Promise<Parsed> {
  return parse(await createExporter(metrics, READINGS).render());
}

Deno.test("counters start at zero and appear as what they are", async () => {
  const metrics = createBrokerMetrics({ tenantMetricsMax: 2 });
  metrics.publish.queueDepth = () => 4;
  const { types, values } = await scrape(metrics);
  for (const [name, type] of types) {
    assertEquals(name.endsWith("_total"), type === "counter", name);
  }
  assertEquals(values.get('felix_publish_requests_total{result="ok"}'), 0);
  assertEquals(values.get("felix_subscribe_dropped_total"), 0);
  assertEquals(values.get('felix_build_info{version="1.2.3",commit="abc"}'), 1);
  assertEquals(values.get("felix_ready_state"), 0);
  assertEquals(values.get("felix_cache_bytes"), 7);
  assertEquals(values.get("felix_broker_ingress_queue_depth"), 4);
});

Deno.test("what is counted is what is scraped", async () => {
  const metrics = createBrokerMetrics({ tenantMetricsMax: 1 });
  metrics.publish.result("ok", 100);
  metrics.publish.result("dropped", 100);
  metrics.publish.latency(0.15);
  metrics.publish.latency(20_000, "enqueue");
  metrics.publish.json("publish_batch");
  metrics.delivery.dropped = 3;
  metrics.encodes.shares = 9;
  metrics.pipeline.full("t1", true);
  metrics.pipeline.full("t1", false);
  metrics.pipeline.claimJobs[3] = 2;
  metrics.auth.refused("expired");
  metrics.tenants.row("t1").publishedMessages = 5;
  metrics.tenants.row("t2").publishedMessages += 1;
  metrics.tenants.row("t3").publishedMessages += 1;
  metrics.process.drainForced["connections"] = 1;
  const { values } = await scrape(metrics);
  const expected: Record<string, number> = {
    'felix_publish_requests_total{result="ok"}': 1,
    'felix_publish_requests_total{result="dropped"}': 1,
    felix_publish_bytes_total: 100,
    'felix_publish_latency_ms_bucket{mode="commit",le="0.1"}': 0,
    'felix_publish_latency_ms_bucket{mode="commit",le="0.2"}': 1,
    'felix_publish_latency_ms_bucket{mode="commit",le="+Inf"}': 1,
    'felix_publish_latency_ms_sum{mode="commit"}': 0.15,
    'felix_publish_latency_ms_bucket{mode="enqueue",le="10000"}': 0,
    'felix_publish_latency_ms_count{mode="enqueue"}': 1,
    'felix_broker_json_publishes_total{frame="publish_batch"}': 1,
    felix_subscribe_dropped_total: 3,
    felix_sub_queue_dropped_total: 3,
    felix_sub_shared_batch_handles_total: 9,
    'felix_tenant_publish_queue_full_total{tenant="t1",action="refused"}': 1,
    'felix_tenant_publish_queue_full_total{tenant="t1",action="dropped"}': 1,
    'felix_broker_publish_claim_jobs_bucket{le="2"}': 0,
    'felix_broker_publish_claim_jobs_bucket{le="4"}': 2,
    felix_broker_publish_claim_jobs_sum: 6,
    'felix_auth_total{result="expired"}': 1,
    'felix_tenant_published_messages_total{tenant="t1"}': 5,
    'felix_tenant_published_messages_total{tenant="_overflow"}': 2,
    felix_tenant_metrics_overflow_total: 2,
    'felix_drain_forced_total{subsystem="connections"}': 1,
  };
  for (const [name, value] of Object.entries(expected)) {
    assertEquals(values.get(name), value, name);
  }
});

Deno.test("the named metrics of the mission are there", async () => {
  const { types } = await scrape(createBrokerMetrics({ tenantMetricsMax: 1 }));
  for (
    const name of [
      "felix_publish_requests_total",
      "felix_publish_bytes_total",
      "felix_publish_latency_ms",
      "felix_broker_ingress_queue_depth",
      "felix_broker_ingress_dropped_total",
      "felix_broker_ingress_rejected_total",
      "felix_broker_ingress_waited_total",
      "felix_broker_ingress_queue_full_total",
      "felix_broker_ingress_bytes_full_total",
      "felix_broker_ingress_conn_bytes_full_total",
      "felix_broker_ingress_backpressure_cancelled_total",
      "felix_broker_acked_publishes_dropped_total",
      "felix_subscribe_dropped_total",
      "felix_sub_queue_dropped_total",
      "felix_sub_queue_enqueued_total",
      "felix_sub_queue_dequeued_total",
      "felix_sub_queue_len",
      "felix_subscribe_requests_total",
      "felix_subscribe_bytes_total",
      "felix_quic_connections_refused_total",
      "felix_quic_connections",
      "felix_cache_requests_total",
      "felix_event_loop_lag_seconds",
      "felix_auth_total",
      "felix_ready_state",
      "felix_drain_duration_ms",
      "felix_drain_forced_total",
      "felix_build_info",
    ]
  ) {
    assert(types.has(name), name);
  }
});
