// What tests of the client share: connecting to a scripted broker, and waiting for something.
// Waiting always polls with a generous deadline; nothing depends on speed.

import { assert } from "@std/assert";
import { connect } from "../client.ts";
import type { FelixClient } from "../client_types.ts";
import type { ConnectOptions } from "../options.ts";
import type { ScriptedBroker } from "./scripted_broker.ts";

/** Connects to a broker with quick retries. */
export function connectTo(
  broker: ScriptedBroker | readonly ScriptedBroker[],
  options: Partial<ConnectOptions> = {},
): Promise<FelixClient> {
  const brokers = "address" in broker ? [broker] : broker;
  return connect({
    addresses: brokers.map(({ address }) => address),
    tenant: "t1",
    token: "a-token",
    serverName: "localhost",
    tls: { caCerts: [brokers[0]!.ca] },
    reconnect: { backoffMs: 5, maxBackoffMs: 40 },
    ...options,
  });
}

/** Waits until `condition` holds. */
export async function until(condition: () => boolean, what = "the condition"): Promise<void> {
  const deadline = Date.now() + 20_000;
  while (!condition()) {
    assert(Date.now() < deadline, `${what} did not come true`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** A test with input and output: leaks fail it. */
export function networkTest(name: string, fn: () => Promise<void>): void {
  Deno.test({ name, sanitizeOps: true, sanitizeResources: true, fn });
}
