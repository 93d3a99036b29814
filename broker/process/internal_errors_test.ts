// Failures that nobody handled end the process with a line.

import { assertEquals } from "@std/assert";
import type { LogFields } from "../log/broker_log.ts";
import { silentLog } from "../log/create_log.ts";
import { exitOnInternalErrors } from "./internal_errors.ts";

Deno.test("a failure that nobody handled is logged with its code, then the process ends", () => {
  const target = new EventTarget();
  const lines: [string, LogFields | undefined][] = [];
  let exits = 0;
  const log = {
    ...silentLog,
    error: (msg: string, fields?: LogFields) => lines.push([msg, fields]),
  };
  exitOnInternalErrors(target, log as typeof silentLog, () => exits++);
  const rejection = new PromiseRejectionEvent("unhandledrejection", {
    promise: Promise.resolve(),
    reason: new Error("boom"),
    cancelable: true,
  });
  target.dispatchEvent(rejection);
  assertEquals(rejection.defaultPrevented, true);
  target.dispatchEvent(new ErrorEvent("error", { error: "text", cancelable: true }));
  assertEquals(lines.map(([msg, fields]) => [msg, fields?.["code"]]), [
    ["internal error", "unhandled_rejection"],
    ["internal error", "uncaught_exception"],
  ]);
  assertEquals(exits, 2);
});
