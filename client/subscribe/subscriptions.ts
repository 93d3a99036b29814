// All subscriptions of one client: opens them and ends them with it. One that ends leaves the set,
// so that nothing is kept for it.

import { ClosedError } from "../failure/classes.ts";
import type { Route } from "../routing/route.ts";
import { EventFeed } from "./event_feed.ts";
import type { MoveListener } from "./event_feed.ts";
import type { SubscribeContext } from "./open_event_stream.ts";
import { resolveSubscribe } from "./subscribe_options.ts";
import type { SubscribeOptions } from "./subscribe_options.ts";
import { ShardSubscription } from "./subscription.ts";

/** All subscriptions of one client. */
export class Subscriptions {
  readonly #context: SubscribeContext;
  readonly #feeds = new Set<EventFeed>();

  /** None yet. */
  constructor(context: SubscribeContext) {
    this.#context = context;
  }

  /** Events in the buffers of all subscriptions. */
  get buffered(): number {
    let events = 0;
    for (const feed of this.#feeds) events += feed.queue.size;
    return events;
  }

  /** Opens a subscription. @throws {FelixError} */
  async open(
    route: Route,
    options: SubscribeOptions,
    onMoved?: MoveListener,
  ): Promise<ShardSubscription> {
    const { core } = this.#context;
    if (core.closed) throw this.#closed();
    const resolved = resolveSubscribe(options, core.settings.subscribe);
    const feed = new EventFeed(this.#context, route, resolved, (ended) => {
      this.#feeds.delete(ended);
    });
    if (onMoved !== undefined) feed.onMoved = onMoved;
    await feed.start(options);
    this.#feeds.add(feed);
    if (core.closed) {
      feed.close();
      throw this.#closed();
    }
    return new ShardSubscription(feed);
  }

  /** Ends all. */
  close(): void {
    for (const feed of [...this.#feeds]) feed.close();
  }

  #closed(): ClosedError {
    return new ClosedError({ message: "the client is closed", operation: "subscribe" });
  }
}
