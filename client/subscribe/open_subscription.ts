// Opens a subscription: an event stream that begins with `subscribe` (spec/client.md §7.1).

import type { SubscribeMessage } from "@felix/wire";
import { UnsupportedError } from "../failure/classes.ts";
import { serves } from "../features.ts";
import type { EventStream } from "../link/event_router.ts";
import type { Link } from "../link/link.ts";
import { openEventStream } from "./open_event_stream.ts";
import type { EventStreamRequest, SubscribeContext } from "./open_event_stream.ts";

/** An open subscription. */
export interface OpenSubscription {
  readonly id: bigint;
  readonly source: EventStream;
  readonly link: Link;
  readonly startOffset: bigint | null;
  readonly liveOffset: bigint | null;
}

/** What to open. */
export interface OpenRequest
  extends Omit<EventStreamRequest<"subscribed">, "operation" | "accepted" | "check"> {
  readonly message: Readonly<SubscribeMessage>;
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
  const { id, source, link, started } = await openEventStream(context, {
    ...request,
    operation: "subscribe",
    accepted: "subscribed",
    check: (link) => checkServed(link, request),
  });
  const { start_offset, live_offset } = started;
  const offsets = { startOffset: start_offset ?? null, liveOffset: live_offset ?? null };
  return { id, source, link, ...offsets };
}

function checkServed(link: Link, { message, route, shard }: OpenRequest): void {
  const { start } = message;
  const with_ = link.negotiated;
  if (start === undefined || start === "latest" || with_ === null) return;
  if (serves(with_, "eventOffsets")) return;
  throw new UnsupportedError({
    message: `${link.broker} has no positions: only "latest" can be subscribed to`,
    operation: "subscribe",
    resource: `${route.resource}/${shard}`,
    broker: link.broker,
    feature: "eventOffsets",
  });
}
