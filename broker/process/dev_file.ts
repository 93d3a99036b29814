// The file that tells development tools where a broker serves. It appears in one step once the
// broker serves and goes when it stops; a file of another process is left alone.

import type { BrokerSettings } from "../config/settings.ts";
import type { BrokerLog } from "../log/broker_log.ts";
import type { ProbeServer } from "../metrics/probe_server.ts";
import { readFileOrNull, replaceFile } from "./files.ts";
import { parseDevInfo } from "./prepare.ts";

/** Writes the file, if one is configured. */
export function describeRunning(
  settings: BrokerSettings,
  broker: { readonly port: number },
  probes: Pick<ProbeServer, "port">,
  log: BrokerLog,
): void {
  const { devFile, devInfo } = settings;
  if (devFile === null) return;
  const description = {
    broker: `${dialHost(settings.quicBind.hostname)}:${broker.port}`,
    metrics: `http://${dialHost(settings.metricsBind.hostname)}:${probes.port}`,
    ...(devInfo === null ? {} : parseDevInfo(devInfo)),
    pid: Deno.pid,
  };
  try {
    replaceFile(devFile, `${JSON.stringify(description, null, 2)}\n`, 0o644);
  } catch (error) {
    log.error("FELIX_DEV_FILE cannot be written", { path: devFile, error, code: "bad_file" });
  }
}

/** Removes the file if it is this process's. */
export function forgetRunning(settings: BrokerSettings): void {
  if (settings.devFile === null) return;
  try {
    const text = readFileOrNull(settings.devFile);
    if (text !== null && JSON.parse(text).pid === Deno.pid) Deno.removeSync(settings.devFile);
  } catch {
    // Somebody else's, or gone: either way not ours to remove.
  }
}

/** A host that reaches a listener on this machine. */
function dialHost(bound: string): string {
  if (bound === "0.0.0.0" || bound === "::") return "127.0.0.1";
  return bound.includes(":") ? `[${bound}]` : bound;
}
