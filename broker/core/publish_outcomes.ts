// The outcomes of a publish that say the same every time, and what a publisher is told of a failed
// log. They are shared and frozen: a refusal under load costs no memory.

import type { StorageError } from "@felix/storage";
import type { PublishOutcome } from "./publish_job.ts";

/** There was no room, or not in time. */
export const OVERLOADED: PublishOutcome = Object.freeze({
  kind: "refused",
  code: "overloaded",
  reason: "publish_queue_full",
  retryAfterMs: 10,
});
/** The stream has been removed. */
export const NOT_FOUND: PublishOutcome = Object.freeze({ kind: "refused", code: "not_found" });
/** An unacked publish was dropped. */
export const SHED: PublishOutcome = Object.freeze({ kind: "shed" });
/** It may be appended, or may yet be. */
export const UNKNOWN: PublishOutcome = Object.freeze({ kind: "unknown", code: "unacknowledged" });
/** The append threw before it took a sequence. */
export const APPEND_FAILED: PublishOutcome = Object.freeze({
  kind: "failed",
  code: "internal",
  message: "the append failed",
});

/** What a publisher is told: the code. The message names files and is for the operator. */
export function refused({ code }: StorageError): PublishOutcome {
  // A failed flush leaves it open whether the records are there; everything else wrote nothing.
  const unsure = code === "sync_failed";
  const message = unsure
    ? "the log failed; whether the records are kept is known after a restart"
    : `the log did not take the records: ${code}`;
  return { kind: "failed", code: "storage", message, unsure };
}
