// The `cache_watch` request of one shard and what accepts it (spec/wire.md §4.6). It is built once
// per start and then only sent, by every retry and every redirect hop alike.

import type { CacheWatchMessage } from "@felix/wire";
import type { BrokerAddress } from "../address.ts";
import type { CallGuard } from "../call_guard.ts";
import { ProtocolError, UnsupportedError } from "../failure/classes.ts";
import { serves } from "../features.ts";
import type { Link } from "../link/link.ts";
import type { ResolvedPolicy } from "../retry_policy.ts";
import type { Route } from "../routing/route.ts";
import { openEventStream } from "../subscribe/open_event_stream.ts";
import type { OpenEventStream, SubscribeContext } from "../subscribe/open_event_stream.ts";
import type { WatchFilter } from "./watch_options.ts";
import type { WatchStart } from "./watch_position.ts";

/** What errors and hooks call it. */
export const WATCH_OPERATION = "cache.watch";

/** An open watch of one shard. */
export type OpenWatch = OpenEventStream<"cache_watch_started">;

/** What is watched. */
export interface WatchTarget {
  readonly context: SubscribeContext;
  readonly route: Route;
  readonly shard: number;
  readonly filter: WatchFilter;
}

/** How it is asked for. */
export interface WatchAttempt {
  readonly start: WatchStart;
  /** Where the shard is said to be now; tried first. */
  readonly hint: BrokerAddress | null;
  readonly guard: CallGuard;
  /** Default: the client's. */
  readonly policy?: ResolvedPolicy;
}

/** What errors about a target say. */
export function watchContext(target: WatchTarget): { operation: string; resource: string } {
  return { operation: WATCH_OPERATION, resource: `${target.route.resource}/${target.shard}` };
}

/** Opens the watch of one shard. @throws {FelixError} as `openEventStream` does */
export async function openWatch(target: WatchTarget, attempt: WatchAttempt): Promise<OpenWatch> {
  const { context, route, shard } = target;
  const { start } = attempt;
  const open = await openEventStream(context, {
    operation: WATCH_OPERATION,
    message: watchMessage(target, start),
    accepted: "cache_watch_started",
    route,
    shard,
    hint: attempt.hint,
    guard: attempt.guard,
    ...(attempt.policy === undefined ? {} : { policy: attempt.policy }),
    check: (link) => checkServed(link, target, start),
  });
  if (start.kind !== "retained" || open.started.retained_count !== undefined) return open;
  discardWatch(open);
  throw new ProtocolError({
    message: "the broker did not say how many current values there are",
    ...watchContext(target),
    broker: open.link.broker,
  });
}

/** Gives up a watch that nobody reads. */
export function discardWatch(open: OpenWatch): void {
  open.source.stream.cancel();
  open.link.subscriptionEnded();
}

function watchMessage(target: WatchTarget, start: WatchStart): Readonly<CacheWatchMessage> {
  const { context, route, filter, shard } = target;
  return Object.freeze({
    type: "cache_watch",
    tenant_id: context.core.settings.tenant,
    namespace: route.namespace,
    cache: route.name,
    ...(filter.key === null ? { prefix: filter.prefix ?? "", shard } : { key: filter.key }),
    ...(start.kind === "from" ? { from_offset: start.offset } : {}),
    retained: start.kind === "retained",
  });
}

function checkServed(link: Link, target: WatchTarget, start: WatchStart): void {
  const with_ = link.negotiated;
  if (with_ === null) return;
  const wanted = start.kind === "retained"
    ? ["cacheWatch", "cacheWatchRetained"] as const
    : ["cacheWatch"] as const;
  const feature = wanted.find((name) => !serves(with_, name));
  if (feature === undefined) return;
  throw new UnsupportedError({
    message: `${link.broker} does not serve ${feature}`,
    ...watchContext(target),
    broker: link.broker,
    feature,
  });
}
