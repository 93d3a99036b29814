// What a client counts. Inside, counters are plain numbers that hot paths bump; `snapshot` turns
// them into the public shape (spec/client.md §16).

/** A snapshot of a client's counters. */
export interface ClientMetrics {
  /** Connections. */
  readonly connections: {
    readonly open: number;
    readonly dialed: bigint;
    readonly failed: bigint;
    readonly closed: bigint;
  };
  /** Publishes; `bytes` are frame bytes. */
  readonly publish: {
    readonly requests: bigint;
    readonly records: bigint;
    readonly bytes: bigint;
    readonly acked: bigint;
    readonly failed: bigint;
    readonly outcomeUnknown: bigint;
    readonly forwarded: bigint;
    readonly unackedLost: bigint;
    readonly inflightBytes: number;
    readonly cancelledAfterEnqueue: bigint;
  };
  /**
   * Subscriptions; `bytes` are payload bytes. `active` and `resumes` count watches too, one for
   * each shard.
   */
  readonly subscribe: {
    readonly active: number;
    readonly events: bigint;
    readonly bytes: bigint;
    readonly dropped: bigint;
    readonly gaps: bigint;
    readonly resumes: bigint;
    readonly buffered: number;
  };
  /** Cache requests. */
  readonly cache: {
    readonly requests: bigint;
    readonly hits: bigint;
    readonly misses: bigint;
    readonly failed: bigint;
    readonly inflight: number;
  };
  /** Retries by error code. */
  readonly retries: Readonly<Record<string, bigint>>;
  /** Redirects followed. */
  readonly redirects: bigint;
  /** Times the token function passed to `connect` was called. */
  readonly tokenRefreshes: bigint;
}

/** The counters themselves. */
export class Counters {
  readonly connections = { open: 0, dialed: 0, failed: 0, closed: 0 };
  readonly publish = {
    requests: 0,
    records: 0,
    bytes: 0,
    acked: 0,
    failed: 0,
    outcomeUnknown: 0,
    forwarded: 0,
    unackedLost: 0,
    inflightBytes: 0,
    cancelledAfterEnqueue: 0,
  };
  readonly subscribe = {
    active: 0,
    events: 0,
    bytes: 0,
    dropped: 0,
    gaps: 0,
    resumes: 0,
    buffered: 0,
  };
  readonly cache = { requests: 0, hits: 0, misses: 0, failed: 0, inflight: 0 };
  readonly retries = new Map<string, number>();
  redirects = 0;
  tokenRefreshes = 0;

  /** Counts a retry that `code` led to. */
  retry(code: string): void {
    this.retries.set(code, (this.retries.get(code) ?? 0) + 1);
  }

  /** The public snapshot. */
  snapshot(): ClientMetrics {
    const { connections, publish, subscribe, cache } = this;
    return {
      connections: {
        open: connections.open,
        dialed: BigInt(connections.dialed),
        failed: BigInt(connections.failed),
        closed: BigInt(connections.closed),
      },
      publish: {
        requests: BigInt(publish.requests),
        records: BigInt(publish.records),
        bytes: BigInt(publish.bytes),
        acked: BigInt(publish.acked),
        failed: BigInt(publish.failed),
        outcomeUnknown: BigInt(publish.outcomeUnknown),
        forwarded: BigInt(publish.forwarded),
        unackedLost: BigInt(publish.unackedLost),
        inflightBytes: publish.inflightBytes,
        cancelledAfterEnqueue: BigInt(publish.cancelledAfterEnqueue),
      },
      subscribe: {
        active: subscribe.active,
        events: BigInt(subscribe.events),
        bytes: BigInt(subscribe.bytes),
        dropped: BigInt(subscribe.dropped),
        gaps: BigInt(subscribe.gaps),
        resumes: BigInt(subscribe.resumes),
        buffered: subscribe.buffered,
      },
      cache: {
        requests: BigInt(cache.requests),
        hits: BigInt(cache.hits),
        misses: BigInt(cache.misses),
        failed: BigInt(cache.failed),
        inflight: cache.inflight,
      },
      retries: Object.fromEntries([...this.retries].map(([code, n]) => [code, BigInt(n)])),
      redirects: BigInt(this.redirects),
      tokenRefreshes: BigInt(this.tokenRefreshes),
    };
  }
}
