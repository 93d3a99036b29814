// What the development launcher prints once the broker serves: where it is and what to paste.

import { NAMESPACE, TENANT } from "./state.ts";
import type { DevelopmentState } from "./state.ts";

/** What a serving broker says of itself in `dev.json`. */
export interface RunningBrokerInfo {
  /** Client address as `host:port`. */
  readonly broker: string;
  /** Base URL of metrics and probes. */
  readonly metrics: string;
  /** Process id. */
  readonly pid: number;
}

/** The text, with its line breaks. */
export function greeting(running: RunningBrokerInfo, state: DevelopmentState): string {
  const stream = state.streams[0] ?? "events";
  return `
Felix broker for development, data in memory

  broker    ${running.broker} (QUIC, UDP)
  metrics   ${running.metrics}/metrics
  CA file   ${state.caFile}
  token     ${state.tokenFile}
  tenant    ${TENANT}, namespace ${NAMESPACE}
  streams   ${state.streams.join(", ")}
  caches    ${state.caches.join(", ")}
  dev file  ${state.devFile}

Publish and receive from TypeScript:

  deno run -A examples/quickstart_streams.ts ${state.devFile}

or from Python (pip install felix-client):

${pythonSnippet(running, state, stream)}
Stop with Ctrl-C.

`;
}

function pythonSnippet(
  running: RunningBrokerInfo,
  state: DevelopmentState,
  stream: string,
): string {
  return `  python3 - <<'EOF'
  import felix
  token = open("${state.tokenFile}").read().strip()
  with felix.Client("${running.broker}", tenant_id="${TENANT}", token=token,
                    ca_file="${state.caFile}") as client:
      with client.subscribe("${TENANT}", "${NAMESPACE}", "${stream}") as events:
          client.publish("${TENANT}", "${NAMESPACE}", "${stream}", b"hello")
          print(next(events).payload)
  EOF

`;
}
