// What the publish pipeline counts (spec/operations.md §9.1): plain numbers, bumped in place.
// Labels are bounded: past a number of tenants the rest share one row.

/** Publishes that one claim can hold. */
export const MAX_CLAIM_JOBS = 64;
/** Row of the tenants past the bound. */
export const OVERFLOW_TENANT = "_overflow";

/** Publishes of one tenant that found no room. */
export interface QueueFullRow {
  /** Acked: answered `overloaded`. */
  refused: number;
  /** Unacked: shed. */
  dropped: number;
}

/** The pipeline's counters. */
export class PublishCounters {
  /** Unacked publishes shed. */
  ingressDropped = 0;
  /** Acked publishes refused for want of room. */
  ingressRejected = 0;
  /** Publishes that had to wait for room. */
  ingressWaited = 0;
  /** No room: the queue of publishes. */
  queueFull = 0;
  /** No room: the byte budget of the process. */
  bytesFull = 0;
  /** No room: the byte budget of the connection. */
  connBytesFull = 0;
  /** Publishes that were waiting when their connection ended. */
  backpressureCancelled = 0;
  /** Appends or callbacks that threw; the lane went on. */
  workerRestarts = 0;
  /** Claims by the number of publishes in them (index 1 to 64). */
  readonly claimJobs: Float64Array = new Float64Array(MAX_CLAIM_JOBS + 1);
  /** `felix_tenant_publish_queue_full_total` by tenant. */
  readonly tenantQueueFull: Map<string, QueueFullRow> = new Map();
  readonly #maxTenants: number;

  /** `maxTenants`: tenants with a row of their own. */
  constructor(maxTenants = 100) {
    this.#maxTenants = maxTenants;
  }

  /** Counts one publish that found no room and was not kept waiting. */
  full(tenant: string, acked: boolean): void {
    const row = this.#row(tenant);
    if (acked) {
      this.ingressRejected++;
      row.refused++;
    } else {
      this.ingressDropped++;
      row.dropped++;
    }
  }

  #row(tenant: string): QueueFullRow {
    const known = this.tenantQueueFull.get(tenant);
    if (known !== undefined) return known;
    const shared = this.tenantQueueFull.size >= this.#maxTenants;
    const label = shared ? OVERFLOW_TENANT : tenant;
    let row = this.tenantQueueFull.get(label);
    if (row === undefined) {
      row = { refused: 0, dropped: 0 };
      this.tenantQueueFull.set(label, row);
    }
    return row;
  }
}
