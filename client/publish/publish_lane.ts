// All publishes of this client to one shard of one stream. The rule: they go through one writer at
// a time, and the writer changes only when nothing of the old one is unanswered, so that order is
// kept (spec/client.md §13.2).

import { Deque } from "../deque.ts";
import type { FelixError } from "../failure/felix_error.ts";
import { endedAtOnce } from "../link/link.ts";
import type { PublishCall } from "./publish_call.ts";
import type { PublishWriter } from "./publish_writer.ts";
import type { StreamScope } from "./stream_scope.ts";

/** What a lane needs from the publisher. */
export interface LaneHost {
  /** A writer for the lane, to the shard's owner or to the entry broker. */
  bind(lane: PublishLane): Promise<{ writer: PublishWriter; viaOwner: boolean }>;
  /** Address of the shard's remembered owner; `undefined` without one. */
  ownerAddress(lane: PublishLane): string | undefined;
  /** No writer could be had. Returns the calls that go on waiting and for how long. */
  bindFailed(
    lane: PublishLane,
    calls: readonly PublishCall[],
    error: unknown,
  ): { kept: PublishCall[]; delayMs: number };
}

/** The publishes to one shard. */
export class PublishLane {
  readonly scope: StreamScope;
  /** `null` = the stream's width is not known. */
  readonly shard: number | null;
  /** Which of several writers to use when publishes go round robin. */
  readonly turn: number;
  /** Whether its writer goes to a remembered owner. */
  viaOwner = false;
  /** Calls given to the writer and not settled by it. */
  outstanding = 0;
  readonly #host: LaneHost;
  readonly #queue: Deque<PublishCall> = new Deque();
  #writer: PublishWriter | null = null;
  #binding = false;
  #draining = false;
  #retryTimer: ReturnType<typeof setTimeout> | undefined;
  #closedWith: FelixError | null = null;

  /** A lane without a writer. */
  constructor(host: LaneHost, scope: StreamScope, shard: number | null, turn: number) {
    this.#host = host;
    this.scope = scope;
    this.shard = shard;
    this.turn = turn;
  }

  /** Sends a call, or queues it until there is a writer to send it on. */
  enqueue(call: PublishCall): void {
    const writer = this.#writer;
    if (writer !== null && this.#queue.size === 0 && this.#fits(writer)) {
      this.outstanding++;
      writer.send(call);
      return;
    }
    this.#queue.push(call);
    this.#advance();
  }

  /** Calls that the writer never sent, in order; they go first. */
  requeue(calls: readonly PublishCall[]): void {
    const later = this.#queue.takeAll();
    for (const call of [...calls, ...later]) this.#queue.push(call);
    this.outstanding -= calls.length;
    // A writer that ends because the client closes gives back what it never sent.
    if (this.#closedWith !== null) this.#failQueued(this.#closedWith);
    else this.#advance();
  }

  /** The writer has settled (or given back) a call. */
  released(): void {
    this.outstanding--;
    if (this.#queue.size > 0 && this.outstanding === 0 && !this.#draining) this.#advance();
  }

  /** Its writer is gone. */
  writerEnded(writer: PublishWriter): void {
    if (this.#writer === writer) this.#writer = null;
  }

  /** Calls that wait for a writer. */
  get waiting(): Iterable<PublishCall> {
    return this.#queue;
  }

  /** Fails what waits; no further writer is asked for. */
  close(error: FelixError): void {
    this.#closedWith = error;
    clearTimeout(this.#retryTimer);
    this.#failQueued(error);
  }

  #failQueued(error: FelixError): void {
    for (const call of this.#queue.takeAll()) call.fail(error);
  }

  #fits(writer: PublishWriter): boolean {
    if (!writer.usable) return false;
    const owner = this.#host.ownerAddress(this);
    return this.viaOwner ? owner === writer.broker : owner === undefined || owner === writer.broker;
  }

  #advance(): void {
    if (this.#binding || this.#queue.size === 0 || this.#closedWith !== null) return;
    const writer = this.#writer;
    if (writer !== null && this.#fits(writer)) return this.#drainTo(writer);
    if (writer !== null && this.outstanding > 0) return;
    this.#writer = null;
    this.#binding = true;
    void this.#bind();
  }

  async #bind(): Promise<void> {
    try {
      const { writer, viaOwner } = await this.#host.bind(this);
      if (!writer.usable) throw endedAtOnce("publish", writer.broker);
      this.#binding = false;
      if (this.#closedWith !== null) return;
      this.#writer = writer;
      this.viaOwner = viaOwner;
      writer.lanes.add(this);
      this.#drainTo(writer);
    } catch (error) {
      const waiting = this.#queue.takeAll().filter((call) => call.state !== "done");
      const { kept, delayMs } = this.#host.bindFailed(this, waiting, error);
      for (const call of kept) this.#queue.push(call);
      if (this.#closedWith !== null) this.#failQueued(this.#closedWith);
      if (this.#closedWith !== null || kept.length === 0) this.#binding = false;
      else this.#retryTimer = setTimeout(() => this.#bindAgain(), delayMs);
    }
  }

  #bindAgain(): void {
    this.#binding = false;
    this.#advance();
  }

  #drainTo(writer: PublishWriter): void {
    this.#draining = true;
    for (let call = this.#queue.shift(); call !== undefined; call = this.#queue.shift()) {
      if (call.state === "done") continue;
      this.outstanding++;
      writer.send(call);
    }
    this.#draining = false;
  }
}
