// One stream as publishes see it: its encoded name, its route, and its lanes. Publishes that must
// wait for the route wait here, in order.

import { ByteWriter, encodeScope } from "@felix/wire";
import { Deque } from "../deque.ts";
import type { Route } from "../routing/route.ts";
import type { PublishCall } from "./publish_call.ts";
import type { PublishLane } from "./publish_lane.ts";

/** One stream as publishes see it. */
export class StreamScope {
  readonly tenant: string;
  readonly namespace: string;
  readonly stream: string;
  /** `namespace/stream`. */
  readonly resource: string;
  /** Encoded names. */
  readonly bytes: Uint8Array;
  readonly route: Route;
  /** Calls that wait for the route. */
  readonly starting: Deque<PublishCall> = new Deque();
  readonly #lanes = new Map<number, PublishLane>();

  /** Nothing published yet. */
  constructor(tenant: string, route: Route) {
    this.tenant = tenant;
    this.namespace = route.namespace;
    this.stream = route.name;
    this.resource = route.resource;
    const out = new ByteWriter(64);
    encodeScope(out, tenant, route.namespace, route.name);
    this.bytes = out.take();
    this.route = route;
  }

  /** The lane of a shard (`null`: unknown) and turn (0 unless publishes go round robin). */
  lane(shard: number | null, turn: number, make: () => PublishLane): PublishLane {
    const key = ((shard ?? -1) + 1) * 256 + turn;
    let lane = this.#lanes.get(key);
    if (lane === undefined) this.#lanes.set(key, lane = make());
    return lane;
  }

  /** All lanes. */
  get lanes(): IterableIterator<PublishLane> {
    return this.#lanes.values();
  }
}
