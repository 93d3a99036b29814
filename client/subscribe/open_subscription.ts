// Opens the two halves of a subscription, following redirects. The rule: the request is one
// object that every hop and every retry sends again; nothing is rebuilt, so the start position
// cannot get lost (spec/client.md §7.1, §12.4).

import type { NotLeaderMessage, SubscribeMessage } from "@felix/wire";
import { parseToldAddress } from "../address.ts";
import type { BrokerAddress } from "../address.ts";
import type { CallGuard } from "../call_guard.ts";
import {
  ConnectionError,
  CursorError,
  NotLeaderError,
  ProtocolError,
  UnsupportedError,
} from "../failure/classes.ts";
import { FelixError } from "../failure/felix_error.ts";
import { serves } from "../features.ts";
import type { Broker } from "../link/broker.ts";
import type { ClientCore } from "../link/client_core.ts";
import type { EventStream } from "../link/event_router.ts";
import type { Fleet } from "../link/fleet.ts";
import type { Link } from "../link/link.ts";
import { oneShot } from "../link/one_shot.ts";
import { withRetries } from "../link/retrier.ts";
import type { Attempt } from "../link/retrier.ts";
import type { ResolvedPolicy } from "../retry_policy.ts";
import type { Route } from "../routing/route.ts";
import type { Routes } from "../routing/routes.ts";

/** Redirects followed in one attempt. */
const MAX_HOPS = 3;

/** What opening needs. */
export interface SubscribeContext {
  readonly core: ClientCore;
  readonly fleet: Fleet;
  readonly routes: Routes;
}

/** An open subscription. */
export interface OpenSubscription {
  readonly id: bigint;
  readonly source: EventStream;
  readonly link: Link;
  readonly startOffset: bigint | null;
  readonly liveOffset: bigint | null;
}

/** What to open. */
export interface OpenRequest {
  readonly message: Readonly<SubscribeMessage>;
  readonly route: Route;
  readonly shard: number;
  /** Where the shard is said to be now; tried first. */
  readonly hint: BrokerAddress | null;
  readonly guard: CallGuard;
  /** Default: the client's policy. */
  readonly policy?: ResolvedPolicy;
}

/**
 * Opens a subscription.
 * @throws {CursorError} the start cannot be read
 * @throws {FelixError} refused, or nobody could be reached
 */
export async function openSubscription(
  context: SubscribeContext,
  request: OpenRequest,
): Promise<OpenSubscription> {
  const resource = `${request.route.resource}/${request.shard}`;
  let hint = request.hint;
  return await withRetries(
    context.core,
    {
      operation: "subscribe",
      resource,
      guard: request.guard,
      ...(request.policy === undefined ? {} : { policy: request.policy }),
    },
    (attempt) => {
      const first = hint;
      hint = null;
      return new Opening(context, request, resource).run(attempt, first);
    },
  );
}

/** One attempt: the hops from the first broker to the one that serves the shard. */
class Opening {
  readonly #context: SubscribeContext;
  readonly #request: OpenRequest;
  readonly #resource: string;
  readonly #visited = new Set<Broker>();
  #hops = 0;
  #returned = false;

  constructor(context: SubscribeContext, request: OpenRequest, resource: string) {
    this.#context = context;
    this.#request = request;
    this.#resource = resource;
  }

  async run(attempt: Attempt, hint: BrokerAddress | null): Promise<OpenSubscription> {
    const { fleet, routes } = this.#context;
    const { route, shard } = this.#request;
    let broker: Broker;
    const owner = hint === null ? routes.ownerOf(route, shard) : fleet.broker(hint);
    if (owner !== null) {
      broker = owner;
      attempt.forgetOwner = () => route.forget(shard, owner.address.text);
    } else broker = await fleet.reach();
    for (;;) {
      this.#visited.add(broker);
      const next = await this.#ask(broker, attempt);
      if (!("to" in next)) return next;
      broker = next.to;
    }
  }

  async #ask(broker: Broker, attempt: Attempt): Promise<OpenSubscription | { to: Broker }> {
    try {
      const link = await broker.pool("event").acquire();
      this.#checkServed(link);
      const context = {
        operation: "subscribe",
        resource: this.#resource,
        attempts: attempt.attempts,
      };
      const { message, channel } = await oneShot(link, this.#request.message, context, true);
      channel.abandon(null);
      switch (message.type) {
        case "subscribed":
          return await this.#join(link, message);
        case "not_leader":
          return { to: this.#follow(broker, message) };
        case "subscribe_cursor_error":
          throw new CursorError(
            message.reason === "too_old" ? "cursor_too_old" : "cursor_in_future",
            {
              message: `offset ${message.requested} cannot be read (${message.reason}); ` +
                `${message.available} can`,
              ...context,
              broker: link.broker,
              requested: message.requested,
              available: message.available,
            },
          );
        default:
          throw new ProtocolError({
            message: `subscribe was answered with ${message.type}`,
            ...context,
            broker: link.broker,
          });
      }
    } catch (error) {
      // A redirect target that cannot serve yet sends the request back to the entry, once.
      if (this.#hops === 0 || this.#returned || !isNotReady(error)) throw error;
      this.#returned = true;
      this.#request.route.forget(this.#request.shard, broker.address.text);
      return { to: await this.#context.fleet.reach() };
    }
  }

  async #join(
    link: Link,
    message: { subscription_id: bigint; start_offset?: bigint; live_offset?: bigint },
  ): Promise<OpenSubscription> {
    const { guard } = this.#request;
    const id = message.subscription_id;
    link.subscriptions++;
    try {
      const source = await guard.wait(link.router.wait(id));
      if (guard.signal.aborted) {
        source.stream.cancel();
        guard.check();
      }
      return {
        id,
        source,
        link,
        startOffset: message.start_offset ?? null,
        liveOffset: message.live_offset ?? null,
      };
    } catch (error) {
      link.router.forget(id);
      link.subscriptionEnded();
      throw error;
    }
  }

  #follow(from: Broker, message: NotLeaderMessage): Broker {
    const { core, fleet, routes } = this.#context;
    const { route, shard } = this.#request;
    const told = {
      nodeId: message.node_id,
      addr: message.addr ?? null,
      generation: message.generation,
    };
    const address = parseToldAddress(message.addr) ?? fleet.addressOfNode(message.node_id);
    const next = address === null ? null : fleet.broker(address);
    if (next === null || this.#visited.has(next) || this.#hops >= MAX_HOPS) {
      route.forget(shard);
      throw new NotLeaderError({
        message: next === null
          ? `the owner ${message.node_id} has no address`
          : "redirects do not lead to the owner",
        operation: "subscribe",
        resource: this.#resource,
        broker: from.address.text,
        ...told,
      });
    }
    this.#hops++;
    routes.learn(route, shard, told);
    core.counters.redirects++;
    core.hooks.call("onRedirect", {
      operation: "subscribe",
      resource: this.#resource,
      from: from.address.text,
      to: next.address.text,
      generation: message.generation,
    });
    return next;
  }

  #checkServed(link: Link): void {
    const { start } = this.#request.message;
    const with_ = link.negotiated;
    if (start === undefined || start === "latest" || with_ === null) return;
    if (serves(with_, "eventOffsets")) return;
    throw new UnsupportedError({
      message: `${link.broker} has no positions: only "latest" can be subscribed to`,
      operation: "subscribe",
      resource: this.#resource,
      broker: link.broker,
      feature: "eventOffsets",
    });
  }
}

function isNotReady(error: unknown): boolean {
  return error instanceof ConnectionError ||
    (error instanceof FelixError && error.code === "shard_unavailable");
}
