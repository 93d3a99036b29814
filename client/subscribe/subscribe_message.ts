// The `subscribe` request (spec/wire.md §4.5). It is built once per start position and then only
// sent, by every retry and every redirect hop alike.

import type { SubscribeMessage } from "@felix/wire";
import { serves } from "../features.ts";
import type { StartPosition } from "../types.ts";
import type { EventOrigin } from "./event.ts";
import type { SubscribeContext } from "./open_event_stream.ts";

/** The request for one shard from `start` on. */
export function subscribeMessage(
  context: SubscribeContext,
  origin: EventOrigin,
  start: StartPosition,
  queueCapacity: number | undefined,
): Readonly<SubscribeMessage> {
  const with_ = context.fleet.entry.negotiated;
  // A broker without positions only knows the plain form, which is its "latest".
  const plain = start === "latest" && (with_ === null || !serves(with_, "eventOffsets"));
  const asksQueue = queueCapacity !== undefined && with_ !== null &&
    serves(with_, "subscribeQueue");
  return Object.freeze({
    type: "subscribe",
    tenant_id: origin.tenant,
    namespace: origin.namespace,
    stream: origin.stream,
    ...(plain ? {} : { start: typeof start === "bigint" ? { offset: start } : start }),
    ...(origin.shard === 0 ? {} : { shard: origin.shard }),
    ...(asksQueue ? { queue_capacity: queueCapacity } : {}),
  });
}
