// Cache requests spread over many streams, one at a time on each: the published client's pattern
// (spec/interop.md §2.3) without its cost. Requests are encoded once; every answer's type is
// checked.

import type { CacheCell, LoadResult, Target } from "../cell.ts";
import { authFrame, frameText, HEADER_BYTES, jsonFrame, wholeFrame } from "../frames.ts";
import { cacheKey, KEY_COUNT } from "../frame_sizes.ts";
import { connect, readAll } from "../raw/quic.ts";
import { Samples } from "../statistics.ts";
import type { PreparedLoad } from "../worker.ts";

const READ_BYTES = 8 * 1024;
/** Where the letter is that tells `cache_value` (v) and `cache_ok` (o) from anything else. */
const TELLING_AT = HEADER_BYTES + '{"type":"cache_'.length;

/** One stream with one request in flight. */
class Lane {
  readonly #requests: readonly Uint8Array<ArrayBuffer>[];
  readonly #telling: number;
  readonly #writer: WritableStreamDefaultWriter<Uint8Array<ArrayBuffer>>;
  #samples = new Samples(2);
  #authenticated = Promise.withResolvers<void>();
  #finished: PromiseWithResolvers<number> | null = null;
  #completed = 0;
  #sentAt = 0;
  #until = 0;

  constructor(
    stream: Deno.QuicBidirectionalStream,
    requests: readonly Uint8Array<ArrayBuffer>[],
    telling: string,
  ) {
    this.#requests = requests;
    this.#telling = telling.charCodeAt(0);
    this.#writer = stream.writable.getWriter();
    readAll(stream.readable, READ_BYTES, (bytes) => this.#take(bytes))
      .then(() => this.#fail(new TypeError("the broker ended a cache stream")))
      .catch((error) => this.#fail(error));
  }

  async authenticate(target: Target): Promise<void> {
    await this.#writer.write(authFrame(target));
    await this.#authenticated.promise;
  }

  run(until: number, samples: Samples): Promise<number> {
    this.#until = until;
    this.#samples = samples;
    this.#completed = 0;
    this.#finished = Promise.withResolvers();
    this.#send(performance.now());
    return this.#finished.promise;
  }

  #take(bytes: Uint8Array): number {
    const length = wholeFrame(bytes);
    if (length === 0) return 0;
    if (this.#finished === null) {
      const text = frameText(bytes.subarray(0, length));
      if (text.startsWith('{"type":"auth_ok"')) this.#authenticated.resolve();
      else this.#fail(new TypeError(`auth answered ${text}`));
      return length;
    }
    if (bytes[TELLING_AT] !== this.#telling) {
      this.#fail(new TypeError(`cache answered ${frameText(bytes.subarray(0, length))}`));
      return length;
    }
    const now = performance.now();
    this.#samples.add(now - this.#sentAt);
    this.#completed++;
    if (now < this.#until) this.#send(now);
    else this.#finished.resolve(this.#completed);
    return length;
  }

  #send(now: number): void {
    const request = this.#requests[this.#completed % this.#requests.length];
    if (request === undefined) return;
    this.#sentAt = now;
    this.#writer.write(request).catch((error) => this.#fail(error));
  }

  #fail(error: unknown): void {
    this.#authenticated.reject(error);
    this.#finished?.reject(error);
  }
}

/** The requests of one lane, one for each of its share of the keys. */
function requestsOf(
  cell: CacheCell,
  target: Target,
  lane: number,
): Uint8Array<ArrayBuffer>[] {
  const { tenant: tenant_id, namespace, cache } = target;
  const value = new Uint8Array(cell.payloadBytes).fill(0x61).toBase64();
  const requests: Uint8Array<ArrayBuffer>[] = [];
  for (let index = lane; index < KEY_COUNT; index += cell.streams) {
    const key = cell.operation === "miss" ? `no-${cacheKey(index)}` : cacheKey(index);
    const scope = { tenant_id, namespace, cache, key };
    const request_id = 10_000 + index;
    requests.push(jsonFrame(
      cell.operation === "put"
        ? { type: "cache_put", ...scope, value, request_id, ttl_ms: null }
        : { type: "cache_get", ...scope, request_id },
    ));
  }
  return requests;
}

/** Opens the cell's streams, writes every key once and warms up. */
export async function prepareSpread(cell: CacheCell, target: Target): Promise<PreparedLoad> {
  const connection = await connect(target, Deno.readTextFileSync(target.caFile ?? ""));
  const open = async (operation: CacheCell["operation"]): Promise<Lane[]> => {
    const lanes: Lane[] = [];
    for (let index = 0; index < cell.streams; index++) {
      const requests = requestsOf({ ...cell, operation }, target, index);
      const stream = await connection.createBidirectionalStream();
      const lane = new Lane(stream, requests, operation === "put" ? "o" : "v");
      await lane.authenticate(target);
      lanes.push(lane);
    }
    return lanes;
  };
  const run = async (lanes: Lane[], durationMs: number): Promise<LoadResult> => {
    const samples = new Samples();
    const started = performance.now();
    const until = started + durationMs;
    const counts = await Promise.all(lanes.map((lane) => lane.run(until, samples)));
    const elapsedMs = performance.now() - started;
    const completed = counts.reduce((sum, count) => sum + count, 0);
    return { completed, expected: completed, elapsedMs, ...samples.summary() };
  };
  await run(await open("put"), 300);
  const lanes = await open(cell.operation);
  await run(lanes, 200);
  return {
    run: () => run(lanes, cell.durationMs),
    finish: () => Promise.resolve(connection.close({ closeCode: 0, reason: "" })),
  };
}
