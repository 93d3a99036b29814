// What one measurement is and what it gives back: the plain data that the harness and its load
// processes exchange as JSON lines. Rule: a cell says everything a load needs, so that the broker,
// the raw ceiling and a peer are measured with the same bytes, counts and concurrency.

/** Bytes of send time in front of every streamed payload (spec/operations.md §14.1). */
export const STAMP_BYTES = 16;

/** Publish batches that every acknowledgement confirms; no subscriber. */
export interface IngestCell {
  readonly kind: "ingest";
  readonly payloadBytes: number;
  readonly batch: number;
  /** Records of the measured run. */
  readonly records: number;
}

/** Publish to a stream that `fanout` subscribers read; every delivery counts. */
export interface FanoutCell {
  readonly kind: "fanout";
  readonly payloadBytes: number;
  readonly batch: number;
  readonly fanout: number;
  /** Records published in the measured run; `records × fanout` are delivered. */
  readonly records: number;
  /** Records of the latency profile (one in flight, next after the ack); 0 leaves it out. */
  readonly latencyRecords: number;
}

/** Acknowledged single publishes with `inFlight` unanswered. */
export interface AckedCell {
  readonly kind: "acked";
  readonly payloadBytes: number;
  readonly inFlight: number;
  readonly durationMs: number;
}

/** Cache requests with `inFlight` unanswered, over `streams` streams of one connection. */
export interface CacheCell {
  readonly kind: "cache";
  readonly operation: "put" | "get" | "miss";
  readonly payloadBytes: number;
  readonly inFlight: number;
  /** 0: as our client spreads them. Otherwise one request per stream at a time. */
  readonly streams: number;
  readonly durationMs: number;
}

/** The published Python client, `threads` threads, one call each in flight. */
export interface PythonCell {
  readonly kind: "python";
  readonly operation: "publish" | "cache-get";
  readonly payloadBytes: number;
  readonly threads: number;
  readonly durationMs: number;
}

/** A subscriber that reads a whole stream from its first record, which was written before. */
export interface ReplayCell {
  readonly kind: "replay";
  readonly payloadBytes: number;
  /** Records of a published batch. */
  readonly batch: number;
  readonly records: number;
}

/** Opening a log of `bytes` after a crash: one segment, nothing vouched for. */
export interface RecoveryCell {
  readonly kind: "recovery";
  readonly payloadBytes: number;
  readonly bytes: number;
}

/** Memory at rest: connections as the published client opens them, or subscriptions. */
export interface IdleCell {
  readonly kind: "idle";
  readonly what: "connection" | "subscription";
  readonly count: number;
  /** How long memory is left to settle before it is read. */
  readonly settleMs: number;
}

/** One measurement. */
export type Cell =
  | IngestCell
  | FanoutCell
  | AckedCell
  | CacheCell
  | PythonCell
  | ReplayCell
  | RecoveryCell
  | IdleCell;

/** What a load reports after its measured run. */
export interface LoadResult {
  /** Records, deliveries or requests completed. */
  readonly completed: number;
  /** Records, deliveries or requests that should have completed; fewer void the run. */
  readonly expected: number;
  /** Length of the measured window. */
  readonly elapsedMs: number;
  /** Median and 99th percentile of the run's samples; `null` without samples. */
  readonly p50Ms: number | null;
  readonly p99Ms: number | null;
}

/** Where a load finds its server. */
export interface Target {
  readonly hostname: string;
  readonly port: number;
  readonly caFile?: string;
  readonly tenant?: string;
  readonly namespace?: string;
  readonly stream?: string;
  readonly cache?: string;
  readonly token?: string;
  /** Where a load without a server writes. */
  readonly directory?: string;
}

/** Commands that the harness sends to a load process, in this order. */
export type LoadCommand =
  | { readonly op: "prepare"; readonly cell: Cell; readonly target: Target }
  | { readonly op: "run" }
  | { readonly op: "finish" };
