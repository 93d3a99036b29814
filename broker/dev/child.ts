// The broker process that the development launcher runs: which settings and which permissions it
// gets. It may read and write its state directory and nothing else, and sees `FELIX_*` variables
// and nothing else of the environment; native code only where the QUIC engine is native code.

import { dirname, fromFileUrl } from "./paths.ts";
import type { DevOptions } from "./dev_arguments.ts";
import { NAMESPACE, TENANT } from "./state.ts";
import type { DevelopmentState } from "./state.ts";

/** How the broker is started. */
export interface ChildPlan {
  /** Arguments of the `deno` executable. */
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/** Variables that libraries of the broker look at; unset, and without them they would fail. */
const LIBRARY_VARIABLES = ["LOG_STREAM", "LOG_TOKENS"];
const PASSED_VARIABLES = ["RUST_LOG", "HOSTNAME", "HOME", "PATH", "TMPDIR", "TZ", "NO_COLOR"];

/** Plans the broker process; `env` is the launcher's environment. */
export function planChild(
  options: DevOptions,
  state: DevelopmentState,
  env: Readonly<Record<string, string>>,
): ChildPlan {
  const own = ownSettings(options, state, env);
  const passed = Object.entries(env).filter(([name]) =>
    name.startsWith("FELIX_") || name.startsWith("DENO_") || PASSED_VARIABLES.includes(name)
  );
  const settings = { ...Object.fromEntries(passed), ...own };
  const config = fileSettings(settings);
  const quiche = settings["FELIX_QUIC_ENGINE"] === "quiche";
  const directories = [state.directory, ...config].join(",");
  return {
    env: settings,
    args: [
      "run",
      "--quiet",
      "--no-prompt",
      "--unstable-net",
      "--allow-net",
      `--allow-read=${directories}`,
      `--allow-write=${state.directory}`,
      `--allow-env=FELIX_*,RUST_LOG,${LIBRARY_VARIABLES.join(",")}`,
      ...(quiche ? ["--allow-ffi"] : []),
      `--config=${fromFileUrl(new URL("../../deno.json", import.meta.url))}`,
      fromFileUrl(new URL("../main.ts", import.meta.url)),
    ],
  };
}

function ownSettings(
  options: DevOptions,
  state: DevelopmentState,
  env: Readonly<Record<string, string>>,
): Record<string, string> {
  const own: Record<string, string> = {
    FELIX_TLS_CERT: state.certFile,
    FELIX_TLS_KEY: state.keyFile,
    FELIX_JWKS_FILE: state.jwksFile,
    FELIX_CATALOG_FILE: state.catalogFile,
    FELIX_STOP_WITH_STDIN: "true",
    FELIX_DEV_FILE: state.devFile,
    FELIX_DURABLE_STORAGE_DIR: state.dataDirectory ?? "",
    FELIX_DEV_INFO: JSON.stringify({
      caFile: state.caFile,
      tokenFile: state.tokenFile,
      tenant: TENANT,
      namespace: NAMESPACE,
      streams: state.streams,
      caches: state.caches,
    }),
  };
  if (options.port !== null || !env["FELIX_QUIC_BIND"]) {
    own["FELIX_QUIC_BIND"] = `127.0.0.1:${options.port ?? 5000}`;
  }
  if (options.metricsPort !== null || !env["FELIX_BROKER_METRICS_BIND"]) {
    own["FELIX_BROKER_METRICS_BIND"] = `127.0.0.1:${options.metricsPort ?? 8080}`;
  }
  return own;
}

/** Directories of files that the environment names beside the state directory. */
function fileSettings(settings: Readonly<Record<string, string>>): string[] {
  const paths = [settings["FELIX_BROKER_CONFIG"] || "/usr/local/felix/config.yml"];
  return paths.map((path) => dirname(path));
}
