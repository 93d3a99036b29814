// The two failures that end a subscription which could have gone on: both say where to go on from,
// so that an application can open it again without losing or repeating anything.

import { SubscriptionLaggedError, SubscriptionLostError } from "../failure/classes.ts";
import { FelixError } from "../failure/felix_error.ts";

/** Records are missing and `onGap` is `throw`; `next` is the first offset not received. */
export function laggedError(
  resource: string,
  next: bigint | null,
  resumeFrom: bigint | null,
): SubscriptionLaggedError {
  return new SubscriptionLaggedError({
    message: "records were lost on the way",
    operation: "subscribe",
    resource,
    resumeFrom: next ?? resumeFrom,
    lastOffset: next === null ? null : next - 1n,
  });
}

/** It was interrupted and could not be opened again. */
export function lostError(
  resource: string,
  resumeFrom: bigint | null,
  cause: unknown,
): SubscriptionLostError {
  return new SubscriptionLostError({
    message: "the subscription was interrupted and could not be resumed",
    operation: "subscribe",
    resource,
    broker: cause instanceof FelixError ? cause.broker : undefined,
    resumeFrom,
    cause,
  });
}
