// Opens a subscription at a start position, or at another one when that cannot be read and the
// application allows it (`onCursorError`, spec/client.md §7.3).

import type { BrokerAddress } from "../address.ts";
import type { CallGuard } from "../call_guard.ts";
import { CursorError } from "../failure/classes.ts";
import type { ResolvedPolicy } from "../retry_policy.ts";
import type { Route } from "../routing/route.ts";
import type { StartPosition } from "../types.ts";
import type { EventOrigin } from "./event.ts";
import type { SubscribeContext } from "./open_event_stream.ts";
import { openSubscription } from "./open_subscription.ts";
import type { OpenSubscription } from "./open_subscription.ts";
import { subscribeMessage } from "./subscribe_message.ts";
import type { ResolvedSubscribe } from "./subscribe_options.ts";

/** What to open. */
export interface StartRequest {
  readonly origin: EventOrigin;
  readonly route: Route;
  readonly options: ResolvedSubscribe;
  readonly start: StartPosition;
  /** Where the shard is said to be; tried first. */
  readonly hint: BrokerAddress | null;
  readonly guard: CallGuard;
  /** Default: the client's. */
  readonly policy?: ResolvedPolicy;
  /** Told when it starts elsewhere than it was asked to. */
  readonly moved: (error: CursorError) => void;
}

/** Opens a subscription. @throws {FelixError} as `openSubscription` does */
export async function startSubscription(
  context: SubscribeContext,
  request: StartRequest,
): Promise<OpenSubscription> {
  const { guard, options, origin } = request;
  const open = (start: StartPosition): Promise<OpenSubscription> =>
    openSubscription(context, {
      message: subscribeMessage(context, origin, start, options.queueCapacity),
      route: request.route,
      shard: options.shard,
      hint: request.hint,
      guard,
      ...(request.policy === undefined ? {} : { policy: request.policy }),
    });
  // What the entry broker serves decides how the request is put; opening reports any failure.
  await guard.wait(context.fleet.reach().then(() => undefined, () => undefined));
  try {
    return await open(request.start);
  } catch (error) {
    const { onCursorError } = options;
    if (!(error instanceof CursorError) || onCursorError === "throw") throw error;
    context.core.hooks.log("warn", "start moved", {
      stream: origin.stream,
      shard: options.shard,
      offset: error.requested,
      reason: error.code,
    });
    request.moved(error);
    return await open(onCursorError === "nearest" ? error.available : onCursorError);
  }
}
