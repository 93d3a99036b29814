// All routes of one client and how they are filled. The rule: not knowing is no failure; what
// cannot be asked or is not answered in time goes through the entry broker, which forwards.

import { parseToldAddress } from "../address.ts";
import { CallGuard } from "../call_guard.ts";
import { ProtocolError } from "../failure/classes.ts";
import { FelixError } from "../failure/felix_error.ts";
import type { Broker } from "../link/broker.ts";
import type { ClientCore } from "../link/client_core.ts";
import type { Fleet } from "../link/fleet.ts";
import { monotonicMs } from "../runtime/deno.ts";
import type { Queries } from "./queries.ts";
import { Route } from "./route.ts";

/** Milliseconds that a publish or a cache request waits for what it would like to know. */
const LOOK_UP_MS = 2000;
/** Milliseconds between two questions about the owners of one resource. */
const ASK_AGAIN_MS = 5000;

/** All routes of one client. */
export class Routes {
  readonly #core: ClientCore;
  readonly #fleet: Fleet;
  readonly #queries: Queries;
  readonly #routes = new Map<string, Route>();

  /** Fills routes by `queries`. */
  constructor(core: ClientCore, fleet: Fleet, queries: Queries) {
    this.#core = core;
    this.#fleet = fleet;
    this.#queries = queries;
  }

  /** The route of a resource, filled or not. */
  route(kind: "stream" | "cache", namespace: string, name: string): Route {
    const key = JSON.stringify([kind, namespace, name]);
    let route = this.#routes.get(key);
    if (route === undefined) this.#routes.set(key, route = new Route(kind, namespace, name));
    return route;
  }

  /**
   * What a request has to wait for before it can be routed; `null` = it can go out at once. The
   * promise never rejects. Owners that were forgotten are asked for again without waiting.
   */
  prepare(route: Route, needsWidth: boolean): Promise<void> | null {
    // Without a connection nobody knows yet what can be asked: connect first.
    if (this.#fleet.entry.negotiated === null) return this.#loadOnce(route);
    const wantsWidth = needsWidth && route.width === null && route.kind === "stream" &&
      this.#queries.canAsk("streamShards");
    const wantsOwners = !route.hasOwners && this.#queries.canAsk("shardOwners");
    if (!wantsWidth && !wantsOwners) return null;
    const before = monotonicMs() - ASK_AGAIN_MS;
    const due = (wantsWidth && route.widthAskedMs <= before) ||
      (wantsOwners && route.ownersAskedMs <= before);
    if (due) void this.#loadOnce(route);
    return wantsWidth || !route.ownersLoaded ? route.loading : null;
  }

  /** The broker for a shard: its remembered owner, else `null` for the entry. */
  ownerOf(route: Route, shard: number | null): Broker | null {
    if (shard === null) return null;
    const owner = route.owner(shard);
    return owner === undefined ? null : this.#fleet.broker(owner.address);
  }

  /** Remembers what an answer told about a shard's owner. */
  learn(
    route: Route,
    shard: number,
    told: { nodeId: string; addr: string | undefined | null; generation: bigint },
  ): boolean {
    const address = parseToldAddress(told.addr) ?? this.#fleet.addressOfNode(told.nodeId);
    if (address === null) return false;
    return route.learn(shard, { nodeId: told.nodeId, address, generation: told.generation });
  }

  #loadOnce(route: Route): Promise<void> {
    return route.loading ??= this.#load(route).finally(() => {
      route.loading = null;
    });
  }

  async #load(route: Route): Promise<void> {
    const guard = new CallGuard("routing", {}, LOOK_UP_MS);
    try {
      await guard.wait(this.#fleet.reach());
      await Promise.all([
        this.#quietly(route, () => guard.wait(this.#loadOwners(route))),
        this.#quietly(route, () => guard.wait(this.#loadWidth(route))),
      ]);
    } catch (error) {
      // Nobody could be reached: the request itself will find out and say so.
      this.#core.hooks.log("debug", "no route", { reason: String(error) });
    } finally {
      guard.dispose();
    }
  }

  async #loadWidth(route: Route): Promise<void> {
    const asks = route.kind === "stream" && route.width === null &&
      this.#queries.canAsk("streamShards");
    if (!asks) return;
    route.widthAskedMs = monotonicMs();
    const routing = await this.#queries.streamRouting(route.namespace, route.name);
    route.width = routing.shards;
    route.mapping = routing.mapping;
  }

  async #loadOwners(route: Route): Promise<void> {
    if (!this.#queries.canAsk("shardOwners")) return;
    route.ownersAskedMs = monotonicMs();
    route.ownersLoaded = true;
    const owners = await this.#queries.shardOwners(route.kind, route.namespace, route.name);
    if (route.kind === "cache" && owners.length > 0) route.width = owners.length;
    for (const owner of owners) this.learn(route, owner.shard, owner);
  }

  async #quietly(route: Route, run: () => Promise<void>): Promise<void> {
    try {
      await run();
    } catch (error) {
      const known = error instanceof FelixError && !(error instanceof ProtocolError);
      this.#core.hooks.log(known ? "debug" : "warn", "look-up failed", {
        namespace: route.namespace,
        [route.kind]: route.name,
        reason: String(error),
      });
    }
  }
}
