// Deficit round robin over tenants, with ordered lanes inside a tenant (spec/semantics.md §3.2).
// It decides whose job runs next and whether a tenant may queue one more; it runs nothing itself.
// A lane has at most one holder at a time, and its jobs leave in the order they came (B8).

import { invariant } from "./core_error.ts";
import { Ring } from "./ring.ts";

/** Cost units that a tenant earns per turn. */
export const QUANTUM = 65_536;

/** Something to run. */
export interface QueuedJob {
  /** What it is charged; 1 or more. */
  readonly cost: number;
}

/** Where a lane stands. */
const IDLE = 0; // no jobs
const READY = 1; // has jobs and stands in its tenant's list
const BUSY = 2; // somebody holds it
const PARKED = 3; // has jobs, but they cannot run until `unpark`

/** The jobs of one shard in order of arrival. */
export class Lane<Job extends QueuedJob> {
  /** Made by `FairQueue.lane`. */
  constructor(readonly tenant: TenantQueue<Job>) {}

  /** Its jobs; the queue's own. */
  readonly jobs: Ring<Job> = new Ring<Job>();
  /** Its standing; the queue's own. */
  state: 0 | 1 | 2 | 3 = IDLE;
}

/** What the queue keeps per tenant; to others a handle. */
export class TenantQueue<Job extends QueuedJob> {
  /** Ready lanes, next one first. */
  readonly ready: Ring<Lane<Job>> = new Ring<Lane<Job>>();
  /** Jobs in all its lanes. */
  queued = 0;
  /** Credit in cost units; negative after taking more than was earned. */
  deficit = 0;
  /** It has had its quantum in this turn. */
  granted = false;
  /** Jobs that wait for a slot outside the queue; the pipeline's own. */
  waiting = 0;

  /** Made by `FairQueue.lane`. */
  constructor(readonly name: string) {}
}

/** The publish queue of one broker. */
export class FairQueue<Job extends QueuedJob> {
  /** Jobs queued in all lanes. */
  queued = 0;
  readonly #share: number;
  readonly #capacity: number;
  readonly #tenants = new Map<string, TenantQueue<Job>>();
  /** Tenants with a ready lane, the one whose turn it is first. */
  readonly #rotation = new Ring<TenantQueue<Job>>();

  /** `share`: slots that a tenant can count on; `executors` times that is the capacity. */
  constructor(options: { readonly share: number; readonly executors: number }) {
    invariant(options.share >= 1 && options.executors >= 1, "B9: a queue has a slot or more");
    this.#share = options.share;
    this.#capacity = options.share * options.executors;
  }

  /** A new lane of `tenant`. */
  lane(tenant: string): Lane<Job> {
    let queue = this.#tenants.get(tenant);
    if (queue === undefined) {
      queue = new TenantQueue<Job>(tenant);
      this.#tenants.set(tenant, queue);
    }
    return new Lane<Job>(queue);
  }

  /** Whether `tenant` may queue one more job: it may borrow idle room but not the last share. */
  admits(tenant: TenantQueue<Job>): boolean {
    if (this.queued >= this.#capacity) return false;
    return tenant.queued < this.#share || this.queued + this.#share < this.#capacity;
  }

  /** Queues a job that `admits` has let in. */
  push(lane: Lane<Job>, job: Job): void {
    lane.jobs.push(job);
    lane.tenant.queued++;
    this.queued++;
    if (lane.state === IDLE) this.#ready(lane);
  }

  /** The lane whose first job is to run next; `null` if no lane is ready. `take` or `park` it. */
  next(): Lane<Job> | null {
    const rotation = this.#rotation;
    for (let tenant = rotation.front; tenant !== undefined; tenant = rotation.front) {
      const lane = tenant.ready.front!;
      if (!tenant.granted) {
        tenant.granted = true;
        tenant.deficit += QUANTUM;
      }
      if (tenant.deficit >= lane.jobs.front!.cost) return lane;
      tenant.granted = false;
      rotation.push(rotation.shift()!);
    }
    return null;
  }

  /** Takes the first job of the lane that `next` answered; the lane is busy until `complete`. */
  take(lane: Lane<Job>): Job {
    this.#leaveReady(lane);
    lane.state = BUSY;
    return this.#shift(lane);
  }

  /** The job behind the one taken from a busy lane. */
  behind(lane: Lane<Job>): Job | undefined {
    return lane.jobs.front;
  }

  /** Takes the next job of a busy lane as well; charged even if the tenant has not earned it. */
  takeMore(lane: Lane<Job>): Job {
    invariant(lane.state === BUSY, "B8: more is taken only from a lane that is held");
    return this.#shift(lane);
  }

  /** Gives a busy lane back. */
  complete(lane: Lane<Job>): void {
    invariant(lane.state === BUSY, "B8: a lane is given back by its holder");
    lane.state = IDLE;
    if (lane.jobs.length > 0) this.#ready(lane);
    else this.#endTurnIfIdle(lane.tenant);
  }

  /** Sets aside the lane that `next` answered: its jobs cannot run before `unpark`. */
  park(lane: Lane<Job>): void {
    this.#leaveReady(lane);
    lane.state = PARKED;
    this.#endTurnIfIdle(lane.tenant);
  }

  /** Lets a parked lane's jobs run again. Answers whether it was parked. */
  unpark(lane: Lane<Job>): boolean {
    if (lane.state !== PARKED) return false;
    this.#ready(lane);
    return true;
  }

  #shift(lane: Lane<Job>): Job {
    const job = lane.jobs.shift();
    invariant(job !== undefined, "B8: a job is taken from a lane that has one");
    const { tenant } = lane;
    tenant.queued--;
    tenant.deficit -= job.cost;
    this.queued--;
    return job;
  }

  /**
   * Lists a lane at the back of its tenant's. A tenant that had no ready lane comes to the back of
   * the rotation, but one whose turn was cut short only because its lane was held goes on with that
   * turn: else a tenant with one lane would get one job a turn, however small.
   */
  #ready(lane: Lane<Job>): void {
    const { tenant } = lane;
    lane.state = READY;
    tenant.ready.push(lane);
    if (tenant.ready.length > 1) return;
    if (tenant.granted) this.#rotation.unshift(tenant);
    else this.#rotation.push(tenant);
  }

  #leaveReady(lane: Lane<Job>): void {
    const { tenant } = lane;
    invariant(
      this.#rotation.front === tenant && tenant.ready.front === lane,
      "B8: only the lane that is next leaves the rotation",
    );
    tenant.ready.shift();
    if (tenant.ready.length === 0) this.#rotation.shift();
  }

  /**
   * A tenant that has nothing to run ends its turn: debt is forgiven only with its last job, and
   * credit never outlives the turn, or one parked lane would let it grow without bound.
   */
  #endTurnIfIdle(tenant: TenantQueue<Job>): void {
    if (tenant.ready.length > 0) return;
    tenant.granted = false;
    tenant.deficit = tenant.queued === 0 ? 0 : Math.min(tenant.deficit, 0);
  }
}
