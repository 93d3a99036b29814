// Reads where the development broker is: `deno task dev` writes it to `.felix/dev.json`.

import { connect } from "@felix/client";
import type { FelixClient } from "@felix/client";
import { tokenFile } from "@felix/client/tokens";

/** What `dev.json` says. */
export interface DevelopmentBroker {
  /** Address as `host:port`. */
  readonly broker: string;
  /** File with the certificate authority. */
  readonly caFile: string;
  /** File with a token. */
  readonly tokenFile: string;
  /** Tenant that the token is for. */
  readonly tenant: string;
  /** Namespace that the streams and caches are in. */
  readonly namespace: string;
}

/** Connects to the development broker; the file's path is the program's first argument. */
export async function connectToDevelopmentBroker(): Promise<FelixClient> {
  const path = Deno.args[0] ?? ".felix/dev.json";
  const dev: DevelopmentBroker = JSON.parse(await Deno.readTextFile(path));
  return await connect({
    addresses: dev.broker,
    tenant: dev.tenant,
    namespace: dev.namespace,
    token: tokenFile(dev.tokenFile),
    tls: { caFile: dev.caFile },
  });
}
