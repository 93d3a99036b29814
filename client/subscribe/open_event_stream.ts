// Opens the two halves of whatever a broker delivers on an event stream, following redirects. The
// rule: the request is one object that every hop and every retry sends again; nothing is rebuilt,
// so where it starts cannot get lost (spec/client.md §7.1, §12.4).

import type {
  CacheWatchStartedMessage,
  Message,
  NotLeaderMessage,
  SubscribedMessage,
} from "@felix/wire";
import { parseToldAddress } from "../address.ts";
import type { BrokerAddress } from "../address.ts";
import type { CallGuard } from "../call_guard.ts";
import { ConnectionError, CursorError, NotLeaderError, ProtocolError } from "../failure/classes.ts";
import { FelixError } from "../failure/felix_error.ts";
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

/** The messages that accept a request for an event stream. */
export interface StartedMessages {
  readonly subscribed: SubscribedMessage;
  readonly cache_watch_started: CacheWatchStartedMessage;
}

/** Their types. */
export type StartedType = keyof StartedMessages;

/** An event stream that was opened. */
export interface OpenEventStream<T extends StartedType> {
  readonly id: bigint;
  readonly source: EventStream;
  readonly link: Link;
  /** What the broker accepted it with. */
  readonly started: StartedMessages[T];
}

/** What to open. */
export interface EventStreamRequest<T extends StartedType> {
  /** What errors and hooks call it. */
  readonly operation: string;
  readonly message: Readonly<Message>;
  /** Type of the answer that accepts it. */
  readonly accepted: T;
  readonly route: Route;
  readonly shard: number;
  /** Where the shard is said to be now; tried first. */
  readonly hint: BrokerAddress | null;
  readonly guard: CallGuard;
  /** Default: the client's policy. */
  readonly policy?: ResolvedPolicy;
  /** Throws when the broker at the other end cannot serve it. */
  check(link: Link): void;
}

/**
 * Opens an event stream.
 * @throws {CursorError} the start cannot be read
 * @throws {FelixError} refused, or nobody could be reached
 */
export async function openEventStream<T extends StartedType>(
  context: SubscribeContext,
  request: EventStreamRequest<T>,
): Promise<OpenEventStream<T>> {
  const { operation, guard, policy } = request;
  const resource = `${request.route.resource}/${request.shard}`;
  let hint = request.hint;
  return await withRetries(
    context.core,
    { operation, resource, guard, ...(policy === undefined ? {} : { policy }) },
    (attempt) => {
      const first = hint;
      hint = null;
      return new Opening(context, request, resource).run(attempt, first);
    },
  );
}

/** One attempt: the hops from the first broker to the one that serves the shard. */
class Opening<T extends StartedType> {
  readonly #context: SubscribeContext;
  readonly #request: EventStreamRequest<T>;
  readonly #resource: string;
  readonly #visited = new Set<Broker>();
  #hops = 0;
  #returned = false;

  constructor(context: SubscribeContext, request: EventStreamRequest<T>, resource: string) {
    this.#context = context;
    this.#request = request;
    this.#resource = resource;
  }

  async run(attempt: Attempt, hint: BrokerAddress | null): Promise<OpenEventStream<T>> {
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

  async #ask(broker: Broker, attempt: Attempt): Promise<OpenEventStream<T> | { to: Broker }> {
    try {
      const link = await broker.pool("event").acquire();
      this.#request.check(link);
      const context = {
        operation: this.#request.operation,
        resource: this.#resource,
        attempts: attempt.attempts,
      };
      const { message, channel } = await oneShot(link, this.#request.message, context, true);
      channel.abandon(null);
      if (message.type === this.#request.accepted) {
        return await this.#join(link, message as StartedMessages[T]);
      }
      if (message.type === "not_leader") return { to: this.#follow(broker, message) };
      throw refusedWith(message, { ...context, broker: link.broker });
    } catch (error) {
      // A redirect target that cannot serve yet sends the request back to the entry, once.
      if (this.#hops === 0 || this.#returned || !isNotReady(error)) throw error;
      this.#returned = true;
      this.#request.route.forget(this.#request.shard, broker.address.text);
      return { to: await this.#context.fleet.reach() };
    }
  }

  async #join(link: Link, started: StartedMessages[T]): Promise<OpenEventStream<T>> {
    const { guard } = this.#request;
    const id = started.subscription_id;
    link.subscriptions++;
    try {
      const source = await guard.wait(link.router.wait(id));
      if (guard.signal.aborted) {
        source.stream.cancel();
        guard.check();
      }
      return { id, source, link, started };
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
        operation: this.#request.operation,
        resource: this.#resource,
        broker: from.address.text,
        ...told,
      });
    }
    this.#hops++;
    routes.learn(route, shard, told);
    core.counters.redirects++;
    core.hooks.call("onRedirect", {
      operation: this.#request.operation,
      resource: this.#resource,
      from: from.address.text,
      to: next.address.text,
      generation: message.generation,
    });
    return next;
  }
}

/** The failure behind an answer that neither accepts nor redirects. */
function refusedWith(
  message: Message,
  context: { operation: string; resource: string; attempts: number; broker: string },
): FelixError {
  if (message.type !== "subscribe_cursor_error") {
    const text = `${context.operation} was answered with ${message.type}`;
    return new ProtocolError({ message: text, ...context });
  }
  const { reason, requested, available } = message;
  return new CursorError(reason === "too_old" ? "cursor_too_old" : "cursor_in_future", {
    message: `offset ${requested} cannot be read (${reason}); ${available} can`,
    ...context,
    requested,
    available,
  });
}

function isNotReady(error: unknown): boolean {
  return error instanceof ConnectionError ||
    (error instanceof FelixError && error.code === "shard_unavailable");
}
