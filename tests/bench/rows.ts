// The rows of the benchmark: their exact names, what each measures and what it is printed beside.
// Rule: a row's cell is the same for every contender; only its volume depends on the mode.

import type { Cell } from "./cell.ts";

/** Who is measured. A name that ends in brackets says what an acknowledgement promises. */
export type Contender =
  /** This broker in memory. */
  | "felix"
  /** This broker with its log; acknowledged = on the device. */
  | "felix (fsync)"
  /** This room of code alone: the segment log without a broker. */
  | "log"
  /** Bytes over bare QUIC. */
  | "raw"
  /** The smallest server that the published client accepts. */
  | "least"
  /** The same bytes written to a file in order, or read from it. */
  | "disk (fsync)"
  | "disk"
  | "nats"
  | "jetstream (fsync)"
  | "jetstream (fsync 2 min)"
  | "redis"
  | "redis (fsync)"
  | "redis (fsync 1 s)";

/** Contenders of other makers. */
const OTHERS: readonly Contender[] = [
  "nats",
  "jetstream (fsync)",
  "jetstream (fsync 2 min)",
  "redis",
  "redis (fsync)",
  "redis (fsync 1 s)",
];

/** Whether `contender` is a server of another maker, which may not be installed. */
export function isPeer(contender: Contender): boolean {
  return OTHERS.includes(contender);
}

/** What a row's `rate` counts. */
export type Unit = "records/s" | "deliveries/s" | "requests/s" | "bytes" | "bytes/s";

/** One row. */
export interface Row {
  readonly name: string;
  readonly unit: Unit;
  readonly ours: "felix" | "felix (fsync)" | "log";
  /** Ceilings first, then peers. */
  readonly beside: readonly Contender[];
  readonly cell: Cell;
}

/** How much each row moves. */
export interface Volume {
  /** Published bytes of a throughput row; below the send window it would measure buffers. */
  readonly bytes: number;
  /** Upper bound on records where payloads are small. */
  readonly maxRecords: number;
  /** Records of a latency profile. */
  readonly latencyRecords: number;
  /** Length of a closed-loop run. */
  readonly durationMs: number;
  /** Connections and subscriptions of the idle rows. */
  readonly idleConnections: number;
  readonly idleSubscriptions: number;
  /** Size of the log of the recovery row. */
  readonly logBytes: number;
  readonly settleMs: number;
}

/** Volumes of a full run (spec/operations.md §14.1). */
export const FULL: Volume = {
  bytes: 256 * 1024 * 1024,
  maxRecords: 1_100_000,
  latencyRecords: 5000,
  durationMs: 5000,
  idleConnections: 200,
  idleSubscriptions: 1000,
  logBytes: 2 * 1024 * 1024 * 1024,
  settleMs: 2000,
};

/** Volumes that only show that every row works. */
export const SMOKE: Volume = {
  bytes: 2 * 1024 * 1024,
  maxRecords: 4096,
  latencyRecords: 20,
  durationMs: 150,
  idleConnections: 4,
  idleSubscriptions: 20,
  logBytes: 4 * 1024 * 1024,
  settleMs: 100,
};

const FANOUTS = [1, 10];
const PAYLOADS = [0, 256, 1024, 4096];
const BATCHES = [1, 64];
const CACHE_PAYLOADS = [0, 256, 4096];
const CONCURRENCY = 32;

/** Rows that move their bytes once or twice move more of them, to last long enough. */
const INGEST_TIMES = 4;
const SINGLE_FANOUT_TIMES = 2;

/** Records of a throughput row: `times` the volume, in whole batches. */
function recordsFor(volume: Volume, payloadBytes: number, batch: number, times: number): number {
  const enough = payloadBytes === 0 ? volume.maxRecords : volume.bytes / payloadBytes;
  return Math.ceil(Math.min(enough, volume.maxRecords) * times / batch) * batch;
}

/** Every row with the given volume, in the order in which they are printed. */
export function rows(volume: Volume): Row[] {
  return [
    ...ingestRows(volume),
    ...fanoutRows(volume),
    ...ackedRows(volume),
    ...cacheRows(volume),
    ...durableRows(volume),
    ...publishedClientRows(volume),
    ...idleRows(volume),
  ];
}

function ingestRows(volume: Volume): Row[] {
  return [256, 4096].map((payloadBytes): Row => ({
    name: `ingest-${payloadBytes}x64`,
    unit: "records/s",
    ours: "felix",
    beside: ["raw", "nats"],
    cell: {
      kind: "ingest",
      payloadBytes,
      batch: 64,
      records: recordsFor(volume, payloadBytes, 64, INGEST_TIMES),
    },
  }));
}

function fanoutRows(volume: Volume): Row[] {
  return FANOUTS.flatMap((fanout) =>
    PAYLOADS.flatMap((payloadBytes) =>
      BATCHES.map((batch): Row => ({
        name: `fanout-${fanout}-${payloadBytes}x${batch}`,
        unit: "deliveries/s",
        ours: "felix",
        beside: ["raw", "nats"],
        cell: {
          kind: "fanout",
          payloadBytes,
          batch,
          fanout,
          records: recordsFor(volume, payloadBytes, batch, fanout === 1 ? SINGLE_FANOUT_TIMES : 1),
          latencyRecords: batch === 1 ? volume.latencyRecords : 0,
        },
      }))
    )
  );
}

function ackedRows({ durationMs }: Volume): Row[] {
  const row = (name: string, inFlight: number): Row => ({
    name,
    unit: "records/s",
    ours: "felix",
    beside: ["raw"],
    cell: { kind: "acked", payloadBytes: 256, inFlight, durationMs },
  });
  return [row("acked-1-256", 1), row("acked-pipelined-256", 256)];
}

function cacheRows({ durationMs }: Volume): Row[] {
  const row = (
    operation: "put" | "get" | "miss",
    payloadBytes: number,
    streams: number,
  ): Row => ({
    name: `cache-${operation}-${payloadBytes}-${CONCURRENCY}${streams > 0 ? "-spread" : ""}`,
    unit: "requests/s",
    ours: "felix",
    beside: ["raw", "redis"],
    cell: { kind: "cache", operation, payloadBytes, inFlight: CONCURRENCY, streams, durationMs },
  });
  return [
    ...CACHE_PAYLOADS.map((payloadBytes) => row("put", payloadBytes, 0)),
    ...CACHE_PAYLOADS.map((payloadBytes) => row("get", payloadBytes, 0)),
    row("miss", 0, 0),
    row("get", 256, CONCURRENCY),
    row("put", 256, CONCURRENCY),
  ];
}

/** Logs of others, with fsync before every acknowledgement and as they come. */
const LOGS: readonly Contender[] = [
  "jetstream (fsync)",
  "jetstream (fsync 2 min)",
  "redis (fsync)",
  "redis (fsync 1 s)",
];

function durableRows(volume: Volume): Row[] {
  const ours = "felix (fsync)";
  const unit = "records/s";
  const batch = 64;
  const sizes = [256, 4096];
  const records = (payloadBytes: number) => recordsFor(volume, payloadBytes, batch, INGEST_TIMES);
  return [
    ...sizes.map((payloadBytes): Row => ({
      name: `durable-${payloadBytes}x64`,
      unit,
      ours,
      beside: ["raw", "disk (fsync)", "felix", ...LOGS],
      cell: { kind: "ingest", payloadBytes, batch, records: records(payloadBytes) },
    })),
    ...[1, 256].map((inFlight): Row => ({
      name: `durable-${inFlight}-256`,
      unit,
      ours,
      beside: ["raw", "disk (fsync)", "felix", ...LOGS],
      cell: { kind: "acked", payloadBytes: 256, inFlight, durationMs: volume.durationMs },
    })),
    ...sizes.map((payloadBytes): Row => ({
      name: `replay-${payloadBytes}x64`,
      unit,
      ours,
      beside: ["raw", "jetstream (fsync 2 min)"],
      cell: { kind: "replay", payloadBytes, batch, records: records(payloadBytes) / INGEST_TIMES },
    })),
    {
      name: "recovery",
      unit: "bytes/s",
      ours: "log",
      beside: ["disk"],
      cell: { kind: "recovery", payloadBytes: 4096, bytes: volume.logBytes },
    },
  ];
}

function publishedClientRows({ durationMs }: Volume): Row[] {
  return [1, CONCURRENCY].flatMap((threads) =>
    (["publish", "cache-get"] as const).map((operation): Row => ({
      name: `${operation}-${threads}`,
      unit: "requests/s",
      ours: "felix",
      beside: ["least"],
      cell: { kind: "python", operation, payloadBytes: 256, threads, durationMs },
    }))
  );
}

function idleRows(volume: Volume): Row[] {
  const { settleMs } = volume;
  return [
    {
      name: "idle-connection",
      unit: "bytes",
      ours: "felix",
      beside: ["least"],
      cell: { kind: "idle", what: "connection", count: volume.idleConnections, settleMs },
    },
    {
      name: "idle-subscription",
      unit: "bytes",
      ours: "felix",
      beside: ["raw"],
      cell: { kind: "idle", what: "subscription", count: volume.idleSubscriptions, settleMs },
    },
  ];
}
