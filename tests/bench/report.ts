// Results as text: a table for people, a line of JSON for scripts, a Markdown page for the docs.
// Rule: whatever was not measured says why; nothing is left blank as if it were zero.

import type { Machine } from "./machine.ts";
import type { Figures, RowResult } from "./measure.ts";

/** A rate with thousands separated by commas; memory in KiB. */
export function formatRate(rate: number | null, unit: string): string {
  if (rate === null) return "-";
  if (unit === "bytes") return `${(rate / 1024).toFixed(rate < 10_240 ? 1 : 0)} KiB`;
  if (unit === "bytes/s") return `${(rate / 2 ** 20).toFixed(0)} MiB/s`;
  return Math.round(rate).toLocaleString("en-US");
}

/** Milliseconds with three digits after the point. */
export function formatMs(value: number | null): string {
  return value === null ? "-" : value.toFixed(3);
}

function formatCore(figures: Figures): string {
  const core = figures.core_us_per_record;
  return core === null ? "-" : `${core.server.toFixed(2)} + ${core.client.toFixed(2)}`;
}

function formatRatio(value: number | null | undefined): string {
  return value === null || value === undefined ? "-" : `${value.toFixed(2)}x`;
}

/** Everything a row is printed beside, ours first. */
function contenders(result: RowResult): [string, Figures][] {
  return [[result.contender, result], ...Object.entries(result.beside)];
}

const WIDTHS = [26, 23, 14, 9, 9, 16, 7, 9, 9];
const HEADINGS = ["row", "", "rate", "p50 ms", "p99 ms", "core us s + c", "spread", "rate", "p50"];

function line(cells: readonly string[]): string {
  return cells.map((cell, index) => {
    const width = WIDTHS[index] ?? 10;
    return index < 2 ? cell.padEnd(width) : cell.padStart(width);
  }).join(" ").trimEnd();
}

/** The table's first lines; the last two columns are ours divided by that line's. */
export function tableHead(): string {
  return `${line(HEADINGS)}\n${line(WIDTHS.map((width) => "-".repeat(width)))}`;
}

/** A row's lines of the table. */
export function tableRow(result: RowResult): string {
  return contenders(result).map(([name, figures], index) => {
    const label = index === 0 ? result.row : "";
    if (figures.void !== undefined) return `${line([label, name])} ${figures.void}`;
    const ratios = result.ratios[name];
    return line([
      label,
      name,
      formatRate(figures.rate, result.unit),
      formatMs(figures.p50_ms),
      formatMs(figures.p99_ms),
      formatCore(figures),
      figures.spread.toFixed(2),
      index === 0 ? "" : formatRatio(ratios?.rate),
      index === 0 ? "" : formatRatio(ratios?.p50),
    ]);
  }).join("\n");
}

const EXPLANATION = `Each row is measured in one run beside what the same machine can do at most and
beside what one might use instead.

- **felix**: this broker with this repository's client, each in a process of its own. The rows
  \`publish-*\`, \`cache-get-1\` and \`cache-get-32\` use the published Python client instead.
- **raw**: the same bytes over bare QUIC in the same process layout, with no broker and no client
  library. It is the ceiling of the engine on this machine.
- **least**: the smallest server that the published client takes for a broker.
- **nats**: NATS with TLS and its own JavaScript client; a batch is that many messages in a row.
- **redis**: Redis without TLS through ioredis with automatic pipelining.

A rate counts records (ingest, acked), deliveries (fan-out, every subscriber's copy) or requests.
Percentiles of \`x1\` fan-out rows are publish to delivery with one record in flight; those of
\`x64\` and ingest rows are queueing delay of a run as fast as it goes. Payloads of fan-out rows
carry 16 bytes of send time on top of their nominal size. Core microseconds are those of the server
and of the load process for one record, delivery or request. Idle rows are resident memory of the
server for each connection (the 40 streams that the published client keeps open) or subscription.
The last columns are ours divided by that line's. Rows with one request in flight depend on where
the system puts the two processes: on one core a round trip takes less than half as long as across
two, so look at their core microseconds as well. A run that lost anything has no figures.`;

/** A Markdown page of a run. */
export function markdownPage(
  results: readonly RowResult[],
  machine: Machine,
  options: { readonly trials: number; readonly date: string },
): string {
  const versions = Object.entries({ Deno: machine.deno, ...machine.versions })
    .map(([name, version]) => `${name} ${version}`).join(", ");
  return [
    "<!-- deno-fmt-ignore-file -->",
    "",
    "# Performance",
    "",
    EXPLANATION,
    "",
    `Machine: ${machine.cpu}, ${machine.cores} cores, ${machine.memoryGiB} GiB, ` +
    `${machine.system}. Versions: ${versions}.`,
    `Median of ${options.trials} runs with fresh processes on ${options.date}; "spread" is the`,
    "largest rate over the smallest. Written by `deno task bench --write docs/performance.md`.",
    "",
    "| row | | rate | p50 ms | p99 ms | core us, server + client | spread | rate | p50 |",
    "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ...results.flatMap(markdownRows),
    "",
  ].join("\n");
}

function markdownRows(result: RowResult): string[] {
  return contenders(result).map(([name, figures], index) => {
    const label = index === 0 ? `\`${result.row}\` (${result.unit})` : "";
    if (figures.void !== undefined) {
      return `| ${label} | ${name} | ${figures.void.split("\n")[0]} | | | | | | |`;
    }
    const ratios = result.ratios[name];
    const cells = [
      formatRate(figures.rate, result.unit),
      formatMs(figures.p50_ms),
      formatMs(figures.p99_ms),
      formatCore(figures),
      figures.spread.toFixed(2),
      index === 0 ? "" : formatRatio(ratios?.rate),
      index === 0 ? "" : formatRatio(ratios?.p50),
    ];
    return `| ${label} | ${name} | ${cells.join(" | ")} |`;
  });
}
