// Opening a subscription: the subscriber is registered first, so that nothing published from then
// on is missed; then the event stream with its hello, then the answer, then backlog and live
// events, in that order and no other (spec/wire.md §1.5, spec/semantics.md §4.5).

import {
  encodeMessage,
  FEATURE_HI_STREAM_DELETED,
  FEATURE_SUBSCRIPTION_LAGGED,
  FLAG_EVENT_BATCH_OFFSETS,
} from "@felix/wire";
import type { SubscribedMessage, SubscribeMessage } from "@felix/wire";
import type { StreamShard, Subscriber, SubscribeStart } from "../core/mod.ts";
import type { ClientConnection } from "./connection.ts";
import type { BrokerContext } from "./context.ts";
import { EventStream } from "./event_stream.ts";
import { offers, offersHigh } from "./negotiation.ts";
import type { Peer } from "./negotiation.ts";
import type { Outbox } from "./outbox.ts";
import { encodeError, REFUSAL, streamNotFound } from "./refusal.ts";
import type { Refusal } from "./refusal.ts";

/** Serves one `subscribe`; the request stream carries nothing after it. Never rejects. */
export async function subscribe(
  context: BrokerContext,
  connection: ClientConnection,
  peer: Peer,
  request: SubscribeMessage,
  outbox: Outbox,
): Promise<void> {
  const refuse = (refusal: Refusal): void => {
    context.metrics.subscribe.requests.refused++;
    encodeError(refusal, peer.readsCodes, outbox.writer);
  };
  const shard = findShard(context, peer, request);
  if ("code" in shard) return refuse(shard);
  const id = request.subscription_id ?? context.nextSubscriptionId();
  const claim = connection.claimSubscription(id);
  if (claim !== null) return refuse(claim);
  const offsets = shard.log !== null && (peer.flags & FLAG_EVENT_BATCH_OFFSETS) !== 0;
  const lagged = offsets && offers(peer, FEATURE_SUBSCRIPTION_LAGGED);
  const result = shard.subscribe(startOf(request), {
    endsAtDrop: lagged,
    policy: context.settings.subQueuePolicy,
    capacityEnvelopes: capacityOf(context, request),
    budgetBytes: context.settings.subscriberQueueBytes,
  });
  if (result.kind !== "subscribed") {
    connection.releaseSubscription(id);
    return encodeMessage({
      type: "subscribe_cursor_error",
      reason: result.kind,
      requested: BigInt(result.requested),
      available: BigInt(result.available),
    }, outbox.writer);
  }
  const { subscriber } = result;
  const stream = await connection.openEventStream();
  if (stream === null) {
    shard.unsubscribe(subscriber);
    connection.releaseSubscription(id);
    return refuse(REFUSAL.noStreamCredit);
  }
  const onRemoved = (): void => {
    // A client that does not know `stream_deleted` takes the clean end as the same.
    const deleted = offersHigh(peer, FEATURE_HI_STREAM_DELETED);
    events.endWith(deleted ? { type: "stream_deleted", subscription_id: id } : null);
  };
  const events = new EventStream(context, stream, subscriber, {
    id,
    offsets,
    lagged,
    readsCodes: peer.readsCodes,
  }, () => {
    shard.stream.onRemoved.delete(onRemoved);
    shard.unsubscribe(subscriber);
    connection.releaseSubscription(id);
    context.metrics.subscribe.active--;
    context.turn.pumpLater();
  });
  shard.stream.onRemoved.add(onRemoved);
  context.metrics.subscribe.requests.ok++;
  context.metrics.subscribe.active++;
  connection.subscriptions.set(id, events);
  await events.hello();
  const positions = offsets ? result : null;
  encodeMessage(subscribedMessage(id, request, subscriber, positions), outbox.writer);
  outbox.flush();
  events.start();
  if (!shard.active) onRemoved();
}

function findShard(
  context: BrokerContext,
  peer: Peer,
  request: SubscribeMessage,
): StreamShard | Refusal {
  const { tenant_id, namespace, stream } = request;
  if (tenant_id !== peer.tenant) return REFUSAL.tenantMismatch;
  const object = `stream:${tenant_id}/${namespace}/${stream}`;
  if (!peer.grants.allows("stream.subscribe", object)) return REFUSAL.forbidden;
  const found = context.catalog.streams.find(tenant_id, namespace, stream);
  if (found === undefined) return streamNotFound(tenant_id, namespace, stream);
  return found.shards[request.shard ?? 0] ?? REFUSAL.shardRange;
}

/** An offset past 2^53 is past every tail; the shard answers `in_future` for it. */
function startOf(request: SubscribeMessage): SubscribeStart {
  const { start } = request;
  if (start === undefined || start === "latest" || start === "earliest") return start ?? "latest";
  return { offset: Number(start.offset) };
}

function capacityOf(context: BrokerContext, request: SubscribeMessage): number {
  const { subscriberQueueCapacity, subscriberQueueCapacityMax } = context.settings;
  if (request.queue_capacity === undefined) return subscriberQueueCapacity;
  return Math.min(Math.max(1, request.queue_capacity), subscriberQueueCapacityMax);
}

function subscribedMessage(
  id: bigint,
  request: SubscribeMessage,
  subscriber: Subscriber,
  positions: { readonly start: number; readonly live: number } | null,
): SubscribedMessage {
  return {
    type: "subscribed",
    subscription_id: id,
    ...(positions === null
      ? {}
      : { start_offset: BigInt(positions.start), live_offset: BigInt(positions.live) }),
    ...(request.queue_capacity === undefined
      ? {}
      : { queue_capacity: subscriber.capacityEnvelopes }),
  };
}
