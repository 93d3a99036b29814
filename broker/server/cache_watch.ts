// Opening a cache watch: registered first, so that no change from then on is missed; then the event
// stream with its hello, then the answer, then the changes, in that order and no other
// (spec/wire.md §1.5, §4.6, spec/semantics.md §6.4).

import { encodeMessage } from "@felix/wire";
import type { CacheWatchMessage } from "@felix/wire";
import type { CacheLog, KeyFilter, WatchStart } from "@felix/storage";
import { cacheShardOf } from "./cache_shard.ts";
import type { ClientConnection } from "./connection.ts";
import type { BrokerContext } from "./context.ts";
import type { Peer } from "./negotiation.ts";
import type { Outbox } from "./outbox.ts";
import { cacheNotFound, encodeError, REFUSAL } from "./refusal.ts";
import type { Refusal } from "./refusal.ts";
import { WatchStream } from "./watch_stream.ts";

interface Wanted {
  readonly log: CacheLog;
  readonly filter: KeyFilter;
}

/** Serves one `cache_watch`; the request stream carries nothing after it. Never rejects. */
export async function watchCache(
  context: BrokerContext,
  connection: ClientConnection,
  peer: Peer,
  request: CacheWatchMessage,
  outbox: Outbox,
): Promise<void> {
  const refuse = (refusal: Refusal): void => {
    context.metrics.cache.failed++;
    encodeError(refusal, peer.readsCodes, outbox.writer);
  };
  const wanted = find(context, peer, request);
  if ("code" in wanted) return refuse(wanted);
  const id = request.subscription_id ?? context.nextSubscriptionId();
  const claim = connection.claimSubscription(id);
  if (claim !== null) return refuse(claim);
  const { subscriberQueueBytes } = context.settings;
  const start = startOf(request, context.wallMs());
  const result = wanted.log.watch(wanted.filter, start, subscriberQueueBytes);
  if (result.kind === "in_future") {
    connection.releaseSubscription(id);
    return encodeMessage({
      type: "subscribe_cursor_error",
      reason: result.kind,
      requested: request.from_offset!,
      available: BigInt(result.available),
    }, outbox.writer);
  }
  const { watch } = result;
  const stream = await connection.openEventStream();
  if (stream === null) {
    watch.close();
    connection.releaseSubscription(id);
    return refuse(REFUSAL.noStreamCredit);
  }
  const { readsCodes } = peer;
  const events = new WatchStream(context, stream, watch, { id, readsCodes }, () => {
    connection.releaseSubscription(id);
    context.metrics.cache.watches--;
  });
  context.metrics.cache.watches++;
  connection.subscriptions.set(id, events);
  await events.hello();
  encodeMessage({
    type: "cache_watch_started",
    subscription_id: id,
    resume_offset: BigInt(watch.resumeOffset),
    resnapshot: watch.resnapshot,
    ...(request.retained ? { retained_count: BigInt(watch.currentValues) } : {}),
  }, outbox.writer);
  outbox.flush();
  events.start();
}

/** An offset past 2^53 is past every frontier; the watch answers `in_future` for it. */
function startOf({ retained, from_offset }: CacheWatchMessage, nowMs: number): WatchStart {
  if (retained) return { kind: "retained", nowMs };
  if (from_offset === undefined) return { kind: "live" };
  return { kind: "from", offset: Number(from_offset), nowMs };
}

function find(context: BrokerContext, peer: Peer, request: CacheWatchMessage): Wanted | Refusal {
  const { tenant_id, namespace, cache: name, key, prefix } = request;
  if (tenant_id !== peer.tenant) return REFUSAL.tenantMismatch;
  const object = `cache:${tenant_id}/${namespace}/${name}`;
  if (!peer.grants.allows("cache.read", object)) return REFUSAL.forbidden;
  if ((key === undefined) === (prefix === undefined)) {
    return invalid("exactly one of key and prefix is needed");
  }
  if (request.retained && request.from_offset !== undefined) {
    return invalid("retained and from_offset exclude each other");
  }
  const cache = context.catalog.caches.find(tenant_id, namespace, name);
  if (cache === undefined || cache.logs === null) return cacheNotFound(tenant_id, namespace, name);
  const { shards } = cache.definition;
  if (key !== undefined) {
    return { log: cache.logs.shards[cacheShardOf(key, shards)]!, filter: { key } };
  }
  if (request.shard === undefined && shards > 1) {
    return invalid(`a prefix watch needs a shard: the cache has ${shards}`);
  }
  const log = cache.logs.shards[request.shard ?? 0];
  if (log === undefined) return invalid(`shard is outside the cache's width of ${shards}`);
  return { log, filter: { prefix: prefix! } };
}

function invalid(why: string): Refusal {
  return { code: "invalid_request", message: `cache watch not served: ${why}` };
}
