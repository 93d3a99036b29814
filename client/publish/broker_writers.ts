// The publish streams to one broker: one for each of the first shards that were published to, and a
// fixed number that all others share (spec/client.md §13.2).

import { serves } from "../features.ts";
import type { Broker } from "../link/broker.ts";
import type { Link } from "../link/link.ts";
import type { PoolSettings } from "../settings.ts";
import { PublishWriter } from "./publish_writer.ts";
import type { Window, WriterHost } from "./publish_writer.ts";
import type { PublishLane } from "./publish_lane.ts";

/** A number from text that differs from client to client by its seed. */
export function hashText(text: string, seed: number): number {
  let hash = seed | 0;
  for (let at = 0; at < text.length; at++) {
    hash = Math.imul(hash ^ text.charCodeAt(at), 0x0100_0193);
  }
  hash ^= hash >>> 15;
  return Math.imul(hash, 0x2c1b_3c6d) >>> 8;
}

/** The publish streams to one broker. */
export class BrokerWriters {
  readonly #broker: Broker;
  readonly #pools: PoolSettings;
  readonly #host: WriterHost;
  readonly #seed: number;
  readonly #depth: number;
  readonly #ofShard = new Map<PublishLane, Promise<PublishWriter>>();
  readonly #pooled = new Map<number, Promise<PublishWriter>>();
  readonly #windows = new WeakMap<Link, Window>();
  readonly #writers = new Set<PublishWriter>();

  /** No streams yet; `depth` bounds unanswered publishes where the broker grants no window. */
  constructor(options: {
    broker: Broker;
    pools: PoolSettings;
    host: WriterHost;
    seed: number;
    depth: number;
  }) {
    this.#broker = options.broker;
    this.#pools = options.pools;
    this.#host = options.host;
    this.#seed = options.seed;
    this.#depth = options.depth;
  }

  /** All open streams. */
  get writers(): ReadonlySet<PublishWriter> {
    return this.#writers;
  }

  /** The stream for a lane. @throws {FelixError} none can be had */
  async writerFor(lane: PublishLane): Promise<PublishWriter> {
    const { roundRobin, shardStreams, publishStreams } = this.#pools;
    const own = !roundRobin && lane.shard !== null &&
      (this.#ofShard.has(lane) || this.#ofShard.size < shardStreams);
    if (own) {
      return await this.#of(this.#ofShard, lane, () => this.#broker.pool("publish").acquire());
    }
    const index = this.#pooledIndex(lane);
    const connection = Math.floor(index / publishStreams);
    const pool = this.#broker.pool("publish");
    return await this.#of(this.#pooled, index, () => pool.acquireNth(connection));
  }

  /** A stream has ended. */
  remove(writer: PublishWriter): void {
    this.#writers.delete(writer);
  }

  #pooledIndex(lane: PublishLane): number {
    const { publishConnections, publishStreams, roundRobin } = this.#pools;
    const total = publishConnections * publishStreams;
    return (roundRobin ? lane.turn : hashText(lane.scope.resource, this.#seed)) % total;
  }

  async #of<K>(
    writers: Map<K, Promise<PublishWriter>>,
    key: K,
    acquire: () => Promise<Link>,
  ): Promise<PublishWriter> {
    const known = writers.get(key);
    if (known !== undefined) {
      const writer = await known;
      if (writer.usable) return writer;
      if (writers.get(key) === known) writers.delete(key);
      return await this.#of(writers, key, acquire);
    }
    const opening = this.#open(acquire);
    writers.set(key, opening);
    try {
      return await opening;
    } catch (error) {
      if (writers.get(key) === opening) writers.delete(key);
      throw error;
    }
  }

  async #open(acquire: () => Promise<Link>): Promise<PublishWriter> {
    const link = await acquire();
    const channel = await link.openChannel();
    const negotiated = channel.negotiated!;
    const granted = serves(negotiated, "publishPipeline") ? negotiated.publishWindow : 0;
    const limit = granted > 0 ? granted : this.#depth;
    const shares = granted > 0 && !serves(negotiated, "streamPublishWindow");
    const window: Window = shares
      ? this.#sharedWindow(link, limit)
      : { used: 0, limit, pumps: new Set() };
    const writer = new PublishWriter(this.#host, link, channel, window);
    this.#writers.add(writer);
    return writer;
  }

  #sharedWindow(link: Link, limit: number): Window {
    let window = this.#windows.get(link);
    if (window === undefined) {
      this.#windows.set(link, window = { used: 0, limit, pumps: new Set() });
    }
    return window;
  }
}
