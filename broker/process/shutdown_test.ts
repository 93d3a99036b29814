// The order of a shutdown. Its waits end when the test says so.

import { assertEquals } from "@std/assert";
import type { BrokerLog } from "../log/broker_log.ts";
import { silentLog } from "../log/create_log.ts";
import { createBrokerMetrics } from "../metrics/counters.ts";
import type { ProcessMetrics } from "../metrics/counters.ts";
import type { ProbeState } from "../metrics/probe_server.ts";
import { beginShutdown, interruptibleSleep } from "./shutdown.ts";
import type { Shutdown, ShutdownOptions } from "./shutdown.ts";

interface Stage {
  readonly steps: string[];
  readonly state: ProbeState;
  readonly metrics: ProcessMetrics;
  readonly lines: string[];
  begin(changes?: Partial<ShutdownOptions>): Shutdown;
  /** Lets every sleep of exactly `ms` end. */
  pass(ms: number): void;
}

/** A shutdown whose sleeps end when the test says so. */
function stage(): Stage {
  const steps: string[] = [];
  const lines: string[] = [];
  const state: ProbeState = { ready: "ready" };
  const { process: metrics } = createBrokerMetrics({ tenantMetricsMax: 1 });
  const sleeping = new Map<number, () => void>();
  let now = 0;
  const write = (msg: string): void => void lines.push(msg);
  const log: BrokerLog = { ...silentLog, info: write, warn: write, error: write };
  return {
    steps,
    state,
    metrics,
    lines,
    pass: (ms) => {
      now += ms;
      sleeping.get(ms)?.();
    },
    begin: (changes) =>
      beginShutdown("SIGTERM", {
        predrainMs: 0,
        drainMs: 1000,
        state,
        metrics,
        log,
        drain: (budget) => {
          steps.push(`drain ${budget} ${state.ready}`);
          return Promise.resolve({ forced: [] });
        },
        close: () => {
          steps.push("close");
          return Promise.resolve();
        },
        nowMs: () => now,
        sleep: (ms, signal) =>
          new Promise((resolve) => {
            steps.push(`sleep ${ms}`);
            sleeping.set(ms, resolve);
            signal.addEventListener("abort", () => resolve());
          }),
        ...changes,
      }),
  };
}

async function settle(): Promise<void> {
  for (let turn = 0; turn < 30; turn++) await Promise.resolve();
}

Deno.test("readiness goes first, then drain, then close", async () => {
  const { begin, steps, state, metrics, lines } = stage();
  metrics.ready = 1;
  const shutdown = begin();
  assertEquals([state.ready, metrics.ready], ["draining", 0]);
  await shutdown.done;
  assertEquals(steps, ["drain 1000 draining", "sleep 3000", "close"]);
  assertEquals(lines, ["shutdown requested", "drain complete"]);
  assertEquals(metrics.drainForced["connections"], 0);
});

Deno.test("serves on for the predrain time; a second request cuts it", async () => {
  const waits = stage();
  const shutdown = waits.begin({ predrainMs: 500 });
  await settle();
  assertEquals(waits.steps, ["sleep 500"]);
  waits.pass(500);
  await shutdown.done;
  assertEquals(waits.steps.at(-1), "close");

  const cut = stage();
  const hurried = cut.begin({ predrainMs: 500 });
  await settle();
  hurried.hurry();
  await hurried.done;
  assertEquals(cut.steps.includes("close"), true);
});

Deno.test("work that is cut off is named and counted", async () => {
  const { begin, metrics, lines } = stage();
  await begin({ drain: () => Promise.resolve({ forced: ["connections", "publishes"] }) }).done;
  assertEquals(metrics.drainForced["connections"], 1);
  assertEquals(metrics.drainForced["publishes"], 1);
  assertEquals(lines[1], "drain deadline expired; forcing cancellation");
});

Deno.test("a drain that never ends is given up; one that fails is not fatal", async () => {
  const hangs = stage();
  const shutdown = hangs.begin({ drain: () => new Promise(() => {}) });
  await settle();
  hangs.pass(3000);
  await settle();
  hangs.pass(2000);
  await shutdown.done;
  assertEquals(hangs.metrics.drainForced["connections"], 1);
  assertEquals(hangs.metrics.drainDurationMs, 5000);

  const fails = stage();
  await fails.begin({ drain: () => Promise.reject(new Error("x")) }).done;
  assertEquals(fails.metrics.drainForced["broker"], 1);
  assertEquals(fails.steps.at(-1), "close");
});

Deno.test("a second request cuts a running drain", async () => {
  const { begin, steps, metrics } = stage();
  let cut = (): void => {};
  const shutdown = begin({
    drain: () => new Promise((resolve) => cut = (): void => resolve({ forced: [] })),
    close: () => {
      steps.push("close");
      cut();
      return Promise.resolve();
    },
  });
  await settle();
  shutdown.hurry();
  await shutdown.done;
  assertEquals(metrics.drainForced["connections"], 0, "nothing was under way");
  assertEquals(steps.filter((step) => step === "close").length, 2, "close is idempotent");
});

Deno.test({
  name: "an interrupted sleep leaves no timer",
  sanitizeOps: true,
  sanitizeResources: true,
  fn: async () => {
    const controller = new AbortController();
    const sleeping = interruptibleSleep(60_000, controller.signal);
    controller.abort();
    await sleeping;
    await interruptibleSleep(60_000, controller.signal);
    await interruptibleSleep(0, new AbortController().signal);
  },
});
