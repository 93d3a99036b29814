// Requests of a fixed size kept in flight over raw streams: the next ones leave in one write as
// soon as a read brought answers. Rule: answers come in order, so a ring of send times gives
// latencies.

import type { LoadResult } from "../cell.ts";
import { Samples } from "../statistics.ts";
import { encodePreamble } from "./preamble.ts";
import { readAll } from "./quic.ts";

const READ_BYTES = 16 * 1024;

type Writer = WritableStreamDefaultWriter<Uint8Array<ArrayBuffer>>;

/** How much to send, until when. */
export interface LoopPlan {
  readonly requestBytes: number;
  readonly answerBytes: number;
  readonly inFlight: number;
  readonly streams: number;
  /** Stop after this many answers ... */
  readonly total?: number;
  /** ... or stop sending after this long. */
  readonly durationMs?: number;
}

/** A closed loop over streams of one connection, ready to run once or more. */
export class ClosedLoop {
  readonly #plan: LoopPlan;
  readonly #lanes: Lane[] = [];

  private constructor(plan: LoopPlan) {
    this.#plan = plan;
  }

  /** Opens the streams; `mode` says what the server does with them. */
  static async open(connection: Deno.QuicConn, plan: LoopPlan, mode: number): Promise<ClosedLoop> {
    const loop = new ClosedLoop(plan);
    const { requestBytes, answerBytes } = plan;
    for (let index = 0; index < plan.streams; index++) {
      const stream = await connection.createBidirectionalStream();
      const writer = stream.writable.getWriter() as Writer;
      await writer.write(encodePreamble({ mode, requestBytes, answerBytes, count: 0 }));
      const lane = new Lane(plan, writer);
      readAll(stream.readable, READ_BYTES, (bytes) => lane.answered(bytes.byteLength))
        .catch((error) => lane.fail(error));
      loop.#lanes.push(lane);
    }
    return loop;
  }

  /** Keeps the plan's requests in flight until its total or its time is reached. */
  async run(plan: Pick<LoopPlan, "total" | "durationMs"> = this.#plan): Promise<LoadResult> {
    const samples = new Samples();
    const started = performance.now();
    const until = plan.durationMs === undefined ? Infinity : started + plan.durationMs;
    const share = Math.ceil((plan.total ?? Infinity) / this.#lanes.length);
    const counts = await Promise.all(this.#lanes.map((lane) => lane.run(share, until, samples)));
    const elapsedMs = performance.now() - started;
    const completed = counts.reduce((sum, count) => sum + count, 0);
    return { completed, expected: completed, elapsedMs, ...samples.summary() };
  }
}

/** One stream of a closed loop. */
class Lane {
  readonly #plan: LoopPlan;
  readonly #writer: Writer;
  readonly #requests: Uint8Array<ArrayBuffer>;
  readonly #depth: number;
  readonly #sentAt: Float64Array;
  #samples = new Samples(2);
  #sent = 0;
  #done = 0;
  #goal = 0;
  #until = 0;
  #partial = 0;
  #settle: PromiseWithResolvers<number> | null = null;

  constructor(plan: LoopPlan, writer: Writer) {
    this.#plan = plan;
    this.#writer = writer;
    this.#depth = Math.max(1, Math.floor(plan.inFlight / plan.streams));
    this.#sentAt = new Float64Array(this.#depth);
    this.#requests = new Uint8Array(this.#depth * plan.requestBytes);
  }

  run(goal: number, until: number, samples: Samples): Promise<number> {
    this.#goal = goal;
    this.#until = until;
    this.#samples = samples;
    this.#sent = 0;
    this.#done = 0;
    this.#settle = Promise.withResolvers();
    this.#send(this.#depth, performance.now());
    return this.#settle.promise;
  }

  answered(bytes: number): number {
    this.#partial += bytes;
    const count = Math.floor(this.#partial / this.#plan.answerBytes);
    if (count === 0) return bytes;
    this.#partial -= count * this.#plan.answerBytes;
    const now = performance.now();
    for (let index = 0; index < count; index++) {
      const sentAt = this.#sentAt[(this.#done + index) % this.#depth] ?? now;
      this.#samples.add(now - sentAt);
    }
    this.#done += count;
    if (now < this.#until) this.#send(count, now);
    if (this.#done === this.#sent) this.#settle?.resolve(this.#done);
    return bytes;
  }

  fail(error: unknown): void {
    this.#settle?.reject(error);
  }

  #send(count: number, now: number): void {
    const allowed = Math.min(count, this.#goal - this.#sent);
    if (allowed <= 0) return;
    for (let index = 0; index < allowed; index++) {
      this.#sentAt[(this.#sent + index) % this.#depth] = now;
    }
    this.#sent += allowed;
    this.#writer.write(this.#requests.subarray(0, allowed * this.#plan.requestBytes))
      .catch((error) => this.fail(error));
  }
}
