// One metric family as Prometheus wants it at scrape time, built from plain numbers. Objects of
// this shape stand in a prom-client registry like its own metrics; the registry writes the text.

import type { Histogram } from "./histogram.ts";

/** One sample. */
export interface Sample {
  readonly value: number;
  readonly labels: Readonly<Record<string, string | number>>;
  /** Name where it differs from the family's, as `_bucket`. */
  readonly metricName?: string;
}

/** What a family answers to a scrape. */
export interface FamilySnapshot {
  readonly name: string;
  readonly help: string;
  readonly type: "counter" | "gauge" | "histogram";
  readonly values: readonly Sample[];
  readonly aggregator: "sum";
}

/** A metric family. */
export interface Family {
  readonly name: string;
  /** The values now. */
  get(): FamilySnapshot;
}

/** Values of a family with one label. */
export type Labelled = Iterable<readonly [string, number]>;

/** A counter without labels. */
export function counter(name: string, help: string, read: () => number): Family {
  return family(name, help, "counter", () => [{ value: read(), labels: {} }]);
}

/** A gauge without labels. */
export function gauge(name: string, help: string, read: () => number): Family {
  return family(name, help, "gauge", () => [{ value: read(), labels: {} }]);
}

/** A counter with one label. */
export function labelled(name: string, help: string, label: string, read: () => Labelled): Family {
  return family(name, help, "counter", () => {
    const samples: Sample[] = [];
    for (const [value, count] of read()) samples.push({ value: count, labels: { [label]: value } });
    return samples;
  });
}

/** A counter with several labels. */
export function samples(name: string, help: string, read: () => readonly Sample[]): Family {
  return family(name, help, "counter", read);
}

/** A gauge whose value is always 1 and whose labels say something. */
export function info(name: string, help: string, labels: Record<string, string>): Family {
  return family(name, help, "gauge", () => [{ value: 1, labels }]);
}

/** A histogram; `parts` are its series by their labels. */
export function histogram(
  name: string,
  help: string,
  parts: readonly (readonly [Record<string, string>, Histogram])[],
): Family {
  return family(
    name,
    help,
    "histogram",
    () => parts.flatMap(([labels, series]) => histogramSamples(name, labels, series)),
  );
}

function histogramSamples(
  name: string,
  labels: Record<string, string>,
  series: Histogram,
): Sample[] {
  const values: Sample[] = [];
  let count = 0;
  series.bounds.forEach((bound, index) => {
    count += series.counts[index]!;
    values.push({ value: count, labels: { ...labels, le: bound }, metricName: `${name}_bucket` });
  });
  count += series.counts[series.bounds.length]!;
  values.push({ value: count, labels: { ...labels, le: "+Inf" }, metricName: `${name}_bucket` });
  values.push({ value: series.sum, labels, metricName: `${name}_sum` });
  values.push({ value: count, labels, metricName: `${name}_count` });
  return values;
}

function family(
  name: string,
  help: string,
  type: FamilySnapshot["type"],
  read: () => readonly Sample[],
): Family {
  return { name, get: () => ({ name, help, type, values: read(), aggregator: "sum" }) };
}
