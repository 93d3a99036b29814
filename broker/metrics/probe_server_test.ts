// The probes: what they answer in which state, and that there is nothing else.

import { assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import { probeRoutes, startProbeServer } from "./probe_server.ts";
import type { ProbeState } from "./probe_server.ts";

const TYPE = "text/plain; version=0.0.4; charset=utf-8";

async function ask(state: ProbeState, path: string, method = "GET"): Promise<[number, string]> {
  const routes = probeRoutes({ state, contentType: TYPE, render: () => Promise.resolve("x 1\n") });
  const response = await routes.request(path, { method });
  return [response.status, await response.text()];
}

Deno.test("liveness never depends on readiness", async () => {
  for (const ready of ["starting", "ready", "draining"] as const) {
    assertEquals(await ask({ ready }, "/live"), [200, "ok"]);
  }
});

Deno.test("readiness says why not in one word, under both names", async () => {
  for (const path of ["/ready", "/healthz"]) {
    assertEquals(await ask({ ready: "ready" }, path), [200, "ok"]);
    assertEquals(await ask({ ready: "starting" }, path), [503, "starting"]);
    assertEquals(await ask({ ready: "draining" }, path), [503, "draining"]);
  }
});

Deno.test("there is nothing else", async () => {
  assertEquals(await ask({ ready: "ready" }, "/"), [404, "not found"]);
  assertEquals(await ask({ ready: "ready" }, "/metrics/x"), [404, "not found"]);
  assertEquals(await ask({ ready: "ready" }, "/ready", "POST"), [404, "not found"]);
});

Deno.test("a scrape that fails is an error, not a crash", async () => {
  const routes = probeRoutes({
    state: { ready: "ready" },
    contentType: TYPE,
    render: () => Promise.reject(new Error("secret detail")),
  });
  const response = await routes.request("/metrics");
  assertEquals([response.status, await response.text()], [500, "internal error"]);
});

Deno.test({
  name: "listens, answers and stops",
  sanitizeOps: true,
  sanitizeResources: true,
  fn: async () => {
    const state: ProbeState = { ready: "starting" };
    const options = { state, contentType: TYPE, render: () => Promise.resolve("x 1\n") };
    const server = startProbeServer({ hostname: "127.0.0.1", port: 0, ...options });
    const base = `http://${server.address}`;
    assertEquals(await fetch(`${base}/ready`).then((r) => r.text()), "starting");
    state.ready = "ready";
    const metrics = await fetch(`${base}/metrics`);
    assertEquals(metrics.headers.get("content-type"), TYPE);
    assertEquals(await metrics.text(), "x 1\n");
    const error = assertThrows(() =>
      startProbeServer({ hostname: "127.0.0.1", port: server.port, ...options })
    );
    assertStringIncludes(String(error), "AddrInUse");
    await server.close();
  },
});
