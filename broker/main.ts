// The broker process: settings, checks, then `runBroker`. It decides the exit code (0 clean, 1 a
// runtime failure, 2 settings refused, 70 internal error) and what appears on stderr before there
// is a log. Needs `--unstable-net`.

import { ConfigError } from "./config/config_error.ts";
import { loadConfig } from "./config/load.ts";
import type { LoadedConfig } from "./config/load.ts";
import { USAGE } from "./config/arguments.ts";
import { printConfig } from "./config/print_config.ts";
import { createBrokerLog, lineWriter } from "./log/create_log.ts";
import { cleanText } from "./log/format.ts";
import type { BrokerLog } from "./log/broker_log.ts";
import { readEnvironment } from "./process/environment.ts";
import { exitOnInternalErrors } from "./process/internal_errors.ts";
import { readFileOrNull } from "./process/files.ts";
import { prepare } from "./process/prepare.ts";
import type { Prepared } from "./process/prepare.ts";
import { EXIT, runBroker } from "./process/run.ts";
import { VERSION } from "./process/version.ts";

const stdout = lineWriter(Deno.stdout);
const stderr = lineWriter(Deno.stderr);

async function main(args: readonly string[]): Promise<number> {
  let config: LoadedConfig;
  let prepared: Prepared;
  try {
    const outcome = loadConfig({ args, env: readEnvironment(), readFile: readFileOrNull });
    if (!("settings" in outcome)) {
      return print(outcome.mode === "help" ? USAGE : `felix-broker ${VERSION}\n`);
    }
    config = outcome;
    prepared = await prepare(config.settings);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    stderr(`felix-broker: ${cleanText(error.message)}\n`);
    return EXIT.configuration;
  }
  if (config.mode === "print" || config.mode === "check") {
    for (const line of warningLines(config)) stderr(`felix-broker: warning: ${line}\n`);
    return config.mode === "check" ? EXIT.clean : print(printConfig(config, VERSION));
  }
  const log = createBrokerLog({
    filter: config.settings.log,
    format: config.settings.logFormat ?? (Deno.stdout.isTerminal() ? "text" : "json"),
    write: stdout,
  });
  exitOnInternalErrors(globalThis, log, () => Deno.exit(EXIT.internal));
  logConfiguration(config, log);
  return await runBroker(config.settings, prepared, log);
}

function print(text: string): number {
  stdout(text);
  return EXIT.clean;
}

function warningLines(config: LoadedConfig): string[] {
  const unknown = config.unknown.map(({ name, didYouMean }) => {
    const hint = didYouMean.length === 0 ? "" : `; did you mean ${didYouMean.join(" or ")}?`;
    return `environment variable is set and nothing reads it: ${name}${hint}`;
  });
  return [...unknown, ...config.warnings];
}

function logConfiguration(config: LoadedConfig, log: BrokerLog): void {
  const component = log.child("config");
  for (const { name, didYouMean } of config.unknown) {
    component.warn("environment variable is set and nothing reads it", {
      name,
      did_you_mean: didYouMean,
    });
  }
  for (const warning of config.warnings) component.warn(warning);
  if (config.notApplied.length > 0) {
    component.info("set but not applied by this build", { names: config.notApplied });
  }
  if (config.absent.length > 0) {
    component.warn("set for features that this build does not have", { names: config.absent });
  }
}

if (import.meta.main) {
  main(Deno.args).then(
    (code) => Deno.exit(code),
    (error) => {
      stderr(`felix-broker: internal error: ${cleanText(String(error?.stack ?? error))}\n`);
      Deno.exit(EXIT.internal);
    },
  );
}
