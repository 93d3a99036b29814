// Prometheus text of the broker's counters (format 0.0.4), written by prom-client at scrape.

import { Registry } from "prom-client";
import type { Metric } from "prom-client";
import type { BrokerMetrics } from "./counters.ts";
import { brokerFamilies } from "./families.ts";
import type { ProcessReadings } from "./families.ts";

/** Renders all metrics. */
export interface MetricsExporter {
  /** Value of the answer's `content-type`. */
  readonly contentType: string;
  /** The text now. */
  render(): Promise<string>;
}

/** An exporter over `metrics`. */
export function createExporter(
  metrics: BrokerMetrics,
  process: ProcessReadings,
): MetricsExporter {
  const registry = new Registry();
  for (const family of brokerFamilies(metrics, process)) {
    // A registry only asks a metric for its name and its values.
    registry.registerMetric(family as unknown as Metric);
  }
  return { contentType: registry.contentType, render: () => registry.metrics() };
}
