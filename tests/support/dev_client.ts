// This repository's client on a development broker, as its development files say.

import { connect, type FelixClient } from "@felix/client";
import type { DevBroker } from "./servers.ts";

/** Connects; the caller closes. */
export function connectTo(broker: DevBroker): Promise<FelixClient> {
  const { broker: addresses, tenant, namespace, token, caFile } = broker;
  return connect({
    addresses,
    tenant,
    namespace,
    token,
    serverName: "localhost",
    tls: { caFile },
  });
}
