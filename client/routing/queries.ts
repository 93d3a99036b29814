// The questions a client asks about the cluster: widths, owners, other brokers. Each goes to the
// entry broker on a stream of its own, and none is sent to a broker that did not say it knows it
// (spec/wire.md §4.3).

import type { Message, ShardOwnersViewMessage } from "@felix/wire";
import { NotFoundError, ProtocolError, UnsupportedError } from "../failure/classes.ts";
import { serves } from "../features.ts";
import type { FeatureName } from "../features.ts";
import type { ClientCore } from "../link/client_core.ts";
import type { Fleet } from "../link/fleet.ts";
import type { Broker } from "../link/broker.ts";
import { oneShot } from "../link/one_shot.ts";
import type { BrokerInfo, ShardOwner, StreamRouting } from "../types.ts";

/** Asks questions. */
export class Queries {
  readonly #core: ClientCore;
  readonly #fleet: Fleet;

  /** Asks the entry broker of `fleet`. */
  constructor(core: ClientCore, fleet: Fleet) {
    this.#core = core;
    this.#fleet = fleet;
  }

  /** Whether the entry broker answers a question; false before the first connection. */
  canAsk(feature: FeatureName): boolean {
    const with_ = this.#fleet.entry.negotiated;
    return with_ !== null && serves(with_, feature);
  }

  /** Width and mapping of a stream. @throws {NotFoundError} when it is unknown */
  async streamRouting(namespace: string, stream: string): Promise<StreamRouting> {
    const context = { operation: "routing", resource: `${namespace}/${stream}` };
    const request_id = BigInt(this.#core.nextRequestId());
    const { tenant } = this.#core.settings;
    const answer = await this.#ask("streamShards", context, {
      type: "stream_shards",
      tenant_id: tenant,
      namespace,
      stream,
      request_id,
    });
    if (answer.type !== "stream_shards_view") throw this.#unexpected(context, answer);
    this.#checkId(context, answer.request_id, request_id);
    if (answer.shards === 0) {
      throw new NotFoundError({ message: `stream not found: ${context.resource}`, ...context });
    }
    return {
      shards: answer.shards,
      mapping: answer.routing === "jump_hash" ? "jumpHash" : "modulo",
    };
  }

  /** Width of a cache. @throws {NotFoundError} when it is unknown */
  async cacheShards(namespace: string, cache: string): Promise<number> {
    const context = { operation: "cache.shards", resource: `${namespace}/${cache}` };
    const request_id = BigInt(this.#core.nextRequestId());
    const { tenant } = this.#core.settings;
    const answer = await this.#ask("cacheShards", context, {
      type: "cache_shards",
      tenant_id: tenant,
      namespace,
      cache,
      request_id,
    });
    if (answer.type !== "cache_shards_view") throw this.#unexpected(context, answer);
    this.#checkId(context, answer.request_id, request_id);
    if (answer.shards === 0) {
      throw new NotFoundError({ message: `cache not found: ${context.resource}`, ...context });
    }
    return answer.shards;
  }

  /** Owners of all shards; empty when the resource is unknown. */
  async shardOwners(
    kind: "stream" | "cache",
    namespace: string,
    name: string,
  ): Promise<ShardOwner[]> {
    const context = { operation: "shardOwners", resource: `${namespace}/${name}` };
    const request_id = BigInt(this.#core.nextRequestId());
    const { tenant } = this.#core.settings;
    const answer = await this.#ask("shardOwners", context, {
      type: "shard_owners",
      tenant_id: tenant,
      namespace,
      name,
      kind,
      request_id,
    });
    if (answer.type !== "shard_owners_view") throw this.#unexpected(context, answer);
    this.#checkId(context, answer.request_id, request_id);
    return answer.owners.map(shardOwner);
  }

  /** Brokers that a client may use, as `broker` tells. */
  async topology(broker: Broker): Promise<BrokerInfo[]> {
    const context = { operation: "topology", resource: undefined };
    const link = await broker.anyLink();
    const { message } = await oneShot(link, { type: "topology" }, context, false);
    if (message.type !== "topology_view") throw this.#unexpected(context, message);
    return message.brokers.map(({ node_id, addr }) => ({ nodeId: node_id, addr }));
  }

  async #ask(
    feature: FeatureName,
    context: { operation: string; resource: string | undefined },
    request: Message,
  ): Promise<Message> {
    const broker = await this.#fleet.reach();
    if (broker.negotiated === null || !serves(broker.negotiated, feature)) {
      throw new UnsupportedError({
        message: `${broker.address.text} does not serve ${feature}`,
        ...context,
        broker: broker.address.text,
        feature,
      });
    }
    const link = await broker.anyLink();
    return (await oneShot(link, request, context, false)).message;
  }

  #unexpected(context: { operation: string }, answer: Message): ProtocolError {
    return new ProtocolError({ message: `unexpected answer ${answer.type}`, ...context });
  }

  #checkId(context: { operation: string }, got: bigint, wanted: bigint): void {
    if (got === wanted) return;
    throw new ProtocolError({ message: `answer to request ${got}, not ${wanted}`, ...context });
  }
}

function shardOwner(owner: ShardOwnersViewMessage["owners"][number]): ShardOwner {
  return {
    shard: owner.shard,
    nodeId: owner.node_id ?? "",
    addr: owner.addr ?? null,
    generation: owner.generation,
  };
}
