// The order in which a broker stops (spec/operations.md §13): readiness off, serve on for the
// predrain time, drain under one budget, close, metrics last. A second request cuts the waits.

import type { BrokerLog } from "../log/broker_log.ts";
import type { ProcessMetrics } from "../metrics/counters.ts";
import type { ProbeState } from "../metrics/probe_server.ts";

/** What is stopped, and how long each step may take. */
export interface ShutdownOptions {
  readonly predrainMs: number;
  readonly drainMs: number;
  readonly state: ProbeState;
  readonly metrics: ProcessMetrics;
  readonly log: BrokerLog;
  /** Drains and answers what had to be cut off. */
  drain(budgetMs: number): Promise<{ readonly forced: readonly string[] }>;
  /** Ends at once what is still open; makes a running `drain` return. */
  close(): Promise<void>;
  nowMs(): number;
  /** Resolves after `ms`, or at once when `signal` is or gets aborted. */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
}

/** A shutdown that can be hurried. */
export interface Shutdown {
  /** Resolves when everything but the probes is closed. Never rejects. */
  readonly done: Promise<void>;
  /** Cuts the waits short. */
  hurry(): void;
}

/** How much longer than its budget a drain may take before it is given up. */
const GRACE_MS = 2000;

/** Starts to shut down. `cause` names the signal or event. */
export function beginShutdown(cause: string, options: ShutdownOptions): Shutdown {
  const hurried = new AbortController();
  return { done: run(cause, options, hurried.signal), hurry: () => hurried.abort() };
}

async function run(cause: string, options: ShutdownOptions, hurried: AbortSignal): Promise<void> {
  const { state, metrics, log, predrainMs, drainMs } = options;
  const started = options.nowMs();
  state.ready = "draining";
  metrics.ready = 0;
  log.info("shutdown requested", { reason: cause, predrain_ms: predrainMs, deadline_ms: drainMs });
  if (predrainMs > 0) await options.sleep(predrainMs, hurried);
  const drainStarted = options.nowMs();
  const forced = await drained(options, hurried);
  metrics.drainDurationMs = Math.round(options.nowMs() - drainStarted);
  for (const subsystem of forced) {
    metrics.drainForced[subsystem] = (metrics.drainForced[subsystem] ?? 0) + 1;
  }
  const elapsed = Math.round(options.nowMs() - started);
  if (forced.length === 0) log.info("drain complete", { elapsed_ms: elapsed });
  else {
    log.warn("drain deadline expired; forcing cancellation", {
      elapsed_ms: elapsed,
      deadline_ms: drainMs,
      unfinished: forced,
    });
  }
  try {
    await options.close();
  } catch (error) {
    log.warn("closing failed", { error, code: "close_failed" });
  }
}

/** What the drain had to cut off; a drain that fails or never ends counts as such. */
async function drained(
  options: ShutdownOptions,
  hurried: AbortSignal,
): Promise<readonly string[]> {
  const over = new AbortController();
  const giveUp = AbortSignal.any([hurried, over.signal]);
  const draining = options.drain(options.drainMs).then(
    ({ forced }) => forced,
    (error) => {
      options.log.error("drain failed", { error, code: "drain_failed" });
      return ["broker"];
    },
  );
  const late = options.sleep(options.drainMs + GRACE_MS, giveUp).then(() => null);
  const forced = await Promise.race([draining, late]);
  over.abort();
  if (forced !== null) return forced;
  await options.close().catch(() => {});
  // Closing makes the drain return what it had not finished.
  const never = options.sleep(GRACE_MS, new AbortController().signal).then(() => ["connections"]);
  return await Promise.race([draining, never]);
}

/** Resolves after `ms`, or at once when `signal` is or gets aborted. */
export function interruptibleSleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const finish = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", finish);
      resolve();
    };
    const timer = setTimeout(finish, ms);
    signal.addEventListener("abort", finish);
  });
}
