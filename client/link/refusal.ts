// Reads the refusals that the wire spells in several ways into one shape. Only the shape changes
// here; what a refusal means is decided elsewhere.

import type { ErrorMessage, PublishErrorMessage } from "@felix/wire";
import type { BrokerRefusal } from "../failure/broker_failure.ts";

/** The refusal in an `error` or `publish_error` message. */
export function refusalOf(message: ErrorMessage | PublishErrorMessage): BrokerRefusal {
  const after = message.detail?.retry_after_ms;
  return {
    message: message.message,
    code: message.code,
    retry: message.retry,
    reason: message.detail?.reason,
    retryAfterMs: after === undefined ? undefined : Number(after),
  };
}
