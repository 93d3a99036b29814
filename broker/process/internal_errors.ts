// A failure that nobody handled: one line with its code, then the process ends with status 70.
// Going on would serve from a state that nobody has thought about.

import type { BrokerLog } from "../log/broker_log.ts";

/** Watches `target` (the global scope) for failures that nobody handled. */
export function exitOnInternalErrors(
  target: Pick<EventTarget, "addEventListener">,
  log: BrokerLog,
  exit: () => void,
): void {
  const fail = (code: string, error: unknown): void => {
    const stack = error instanceof Error ? error.stack : undefined;
    log.error("internal error", { code, error, stack });
    exit();
  };
  target.addEventListener("unhandledrejection", (event) => {
    event.preventDefault();
    fail("unhandled_rejection", "reason" in event ? event.reason : undefined);
  });
  target.addEventListener("error", (event) => {
    event.preventDefault();
    fail("uncaught_exception", "error" in event ? event.error : undefined);
  });
}
