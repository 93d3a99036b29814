// The metrics and health listener (spec/operations.md §12): plain HTTP that changes nothing.
// `/live` answers as long as the process runs; `/ready` says whether to send it clients.

import { Hono } from "@hono/hono";
import type { BindAddress } from "../config/settings.ts";
import { formatAddress } from "../config/setting.ts";

/** Whether the process wants clients. */
export type ReadyState = "starting" | "ready" | "draining";

/** What the probes read. */
export interface ProbeState {
  /** Changed by the process as it starts and stops. */
  ready: ReadyState;
}

/** Needs of a probe server. */
export interface ProbeServerOptions extends BindAddress {
  readonly state: ProbeState;
  readonly contentType: string;
  /** The metrics as text. */
  render(): Promise<string>;
}

/** A probe server that listens. */
export interface ProbeServer {
  /** Bound address as `host:port`. */
  readonly address: string;
  readonly port: number;
  /** Stops listening; answers under way are finished. */
  close(): Promise<void>;
}

/** The probe routes, as a function from request to answer. */
export function probeRoutes(options: Omit<ProbeServerOptions, keyof BindAddress>): Hono {
  const app = new Hono();
  app.get("/live", (context) => context.text("ok"));
  for (const path of ["/ready", "/healthz"]) {
    app.get(path, (context) => {
      const { ready } = options.state;
      return ready === "ready" ? context.text("ok") : context.text(ready, 503);
    });
  }
  app.get(
    "/metrics",
    async (context) =>
      context.body(await options.render(), 200, { "content-type": options.contentType }),
  );
  app.notFound((context) => context.text("not found", 404));
  app.onError((_error, context) => context.text("internal error", 500));
  return app;
}

/** Starts listening. @throws the runtime's error when the address cannot be bound */
export function startProbeServer(options: ProbeServerOptions): ProbeServer {
  const { hostname, port } = options;
  const server = Deno.serve(
    { hostname, port, onListen: () => {} },
    probeRoutes(options).fetch,
  );
  const bound = { hostname: server.addr.hostname, port: server.addr.port };
  return {
    address: formatAddress(bound),
    port: bound.port,
    close: () => server.shutdown(),
  };
}
