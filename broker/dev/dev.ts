// `deno task dev`: a broker on this machine that a published client can use at once. It prepares
// the state directory, runs the production entry as a child process with narrow permissions, says
// how to reach it, passes signals on and exits as it does. The child ends when this process ends.

import { join } from "node:path";
import { CatalogError } from "../catalog/catalog_file.ts";
import { unknownVariables } from "../config/suggestions.ts";
import { planChild } from "./child.ts";
import type { ChildPlan } from "./child.ts";
import { DEV_USAGE, DevArgumentError, parseDevArguments } from "./dev_arguments.ts";
import type { DevOptions, TokenOptions } from "./dev_arguments.ts";
import { mintDevelopmentToken } from "./development_token.ts";
import { greeting } from "./greeting.ts";
import type { RunningBrokerInfo } from "./greeting.ts";
import { developmentPermissions, prepareState, writeCatalog } from "./state.ts";
import type { DevelopmentState } from "./state.ts";
import { lineWriter } from "../log/create_log.ts";

const POLL_MS = 20;
const stdout = lineWriter(Deno.stdout);
const stderr = lineWriter(Deno.stderr);

async function main(args: readonly string[]): Promise<number> {
  try {
    const command = parseDevArguments(args);
    if (command.kind === "help") {
      stdout(DEV_USAGE);
      return 0;
    }
    return command.kind === "token"
      ? await printToken(command.options)
      : await run(command.options);
  } catch (error) {
    if (!(error instanceof DevArgumentError) && !(error instanceof CatalogError)) throw error;
    stderr(`dev: ${error.message}\n`);
    return 2;
  }
}

async function printToken(options: TokenOptions): Promise<number> {
  const { state, permissions, tenant } = options;
  await Deno.mkdir(state, { recursive: true, mode: 0o700 });
  const token = await mintDevelopmentToken(state, {
    ...options,
    permissions: permissions.length > 0 ? permissions : developmentPermissions(tenant),
  });
  stdout(`${token}\n`);
  return 0;
}

async function run(options: DevOptions): Promise<number> {
  const env = Deno.env.toObject();
  for (const { name, didYouMean } of unknownVariables(Object.keys(env))) {
    const hint = didYouMean.length === 0 ? "" : `; did you mean ${didYouMean.join(" or ")}?`;
    stderr(`dev: ${name} is set and nothing reads it${hint}\n`);
  }
  const catalog = options.catalog ?? (env["FELIX_CATALOG_FILE"] || null);
  const lock = await lockState(options.state);
  if (lock === null) {
    throw new DevArgumentError(`another broker runs with the state directory ${options.state}`);
  }
  const state = await prepareState(options.state, catalog, options.memory);
  removeIfThere(state.devFile);
  const code = await runChild(planChild(options, state, env), state, () => {
    return writeCatalog(options.state, catalog, options.memory);
  });
  removeIfThere(state.devFile);
  lock.close();
  return code;
}

async function runChild(
  plan: ChildPlan,
  state: DevelopmentState,
  rewriteCatalog: () => Promise<unknown>,
): Promise<number> {
  const child = new Deno.Command(Deno.execPath(), {
    args: [...plan.args],
    env: { ...plan.env },
    clearEnv: true,
    // Held open for as long as this process lives: the child stops when it closes.
    stdin: "piped",
    stdout: "inherit",
    stderr: "inherit",
  }).spawn();
  const ignore = forwardSignals(child, () => refreshCatalog(rewriteCatalog));
  let exited = false;
  const status = child.status.then((result) => {
    exited = true;
    return result;
  });
  const running = await serving(state, child.pid, () => exited);
  if (running !== null) stdout(greeting(running, state));
  const { code } = await status;
  ignore();
  if (running === null && code === 1) {
    const hint = "--port 0 and --metrics-port 0 take free ports";
    stderr(`dev: the broker did not start; its log says why (${hint})\n`);
  }
  return code;
}

/** The lock of a state directory; `null` when another launcher holds it. */
async function lockState(directory: string): Promise<Deno.FsFile | null> {
  await Deno.mkdir(directory, { recursive: true, mode: 0o700 });
  const file = await Deno.open(join(directory, ".dev.lock"), {
    write: true,
    create: true,
    mode: 0o600,
  });
  if (await file.tryLock(true)) return file;
  file.close();
  return null;
}

/** Before the broker reads its catalog again: what the extra file says now. */
async function refreshCatalog(rewriteCatalog: () => Promise<unknown>): Promise<void> {
  try {
    await rewriteCatalog();
  } catch (error) {
    if (!(error instanceof CatalogError)) throw error;
    stderr(`dev: ${error.message}\n`);
  }
}

/** What the broker says of itself once it serves; `null` when it ended before that. */
async function serving(
  state: DevelopmentState,
  pid: number,
  exited: () => boolean,
): Promise<RunningBrokerInfo | null> {
  while (!exited()) {
    try {
      const info = JSON.parse(await Deno.readTextFile(state.devFile));
      if (info.pid === pid) return info;
    } catch {
      // Not there yet.
    }
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
  return null;
}

function forwardSignals(child: Deno.ChildProcess, refresh: () => Promise<void>): () => void {
  const send = (signal: Deno.Signal): void => {
    try {
      child.kill(signal);
    } catch {
      // It has ended.
    }
  };
  const handlers: [Deno.Signal, () => void][] = [
    ["SIGINT", () => send("SIGINT")],
    ["SIGTERM", () => send("SIGTERM")],
    ["SIGHUP", () => void refresh().then(() => send("SIGHUP"))],
  ];
  for (const [signal, handler] of handlers) Deno.addSignalListener(signal, handler);
  return () => handlers.forEach(([signal, handler]) => Deno.removeSignalListener(signal, handler));
}

function removeIfThere(path: string): void {
  try {
    Deno.removeSync(path);
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
}

if (import.meta.main) {
  main(Deno.args).then(
    (code) => Deno.exit(code),
    (error) => {
      stderr(`dev: ${error instanceof Error ? error.message : String(error)}\n`);
      Deno.exit(1);
    },
  );
}
