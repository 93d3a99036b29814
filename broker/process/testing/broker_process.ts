// Runs the broker's entries as processes, for tests: collects what they print, waits for what they
// write, and always ends them.

import { fileURLToPath } from "node:url";

/** What a process that ended left behind. */
export interface Finished {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** A process under test. */
export interface TestProcess {
  readonly pid: number;
  /** Everything printed on stdout so far. */
  stdout(): string;
  kill(signal: Deno.Signal): void;
  /** Resolves when the process has ended and its output is complete. */
  readonly finished: Promise<Finished>;
}

const DEADLINE_MS = 60_000;
const CONFIG = path("../../../deno.json");

/** Path of an entry, relative to this folder. */
export function path(relative: string): string {
  return fileURLToPath(new URL(relative, import.meta.url));
}

/** Starts `entry` (a path) with exactly these variables and those that Deno needs. */
export function start(
  entry: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): TestProcess {
  const kept: Record<string, string> = {};
  for (const name of ["HOME", "PATH", "DENO_DIR", "TMPDIR"]) {
    const value = Deno.env.get(name);
    if (value !== undefined) kept[name] = value;
  }
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "--quiet", "--no-prompt", "-A", "--unstable-net", `--config=${CONFIG}`, entry]
      .concat(args),
    env: { ...kept, ...env },
    clearEnv: true,
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const out = collect(child.stdout);
  const err = collect(child.stderr);
  const finished = Promise.all([child.status, out.done, err.done]).then(([{ code }]) => ({
    code,
    stdout: out.text(),
    stderr: err.text(),
  }));
  return { pid: child.pid, stdout: out.text, kill: (signal) => child.kill(signal), finished };
}

/** Runs `entry` to its end. */
export function run(
  entry: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<Finished> {
  return start(entry, args, env).finished;
}

/** Polls until `look` answers something other than `null`. */
export async function eventually<T>(
  what: string,
  look: () => T | null | Promise<T | null>,
): Promise<T> {
  const until = Date.now() + DEADLINE_MS;
  for (;;) {
    const found = await look();
    if (found !== null) return found;
    if (Date.now() > until) throw new Error(`gave up waiting: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** The JSON in `file`, or `null` while there is none. */
export function readJson(file: string): Record<string, unknown> | null {
  try {
    return JSON.parse(Deno.readTextFileSync(file));
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return null;
    throw error;
  }
}

function collect(stream: ReadableStream<Uint8Array>): { text(): string; done: Promise<void> } {
  const decoder = new TextDecoder();
  let text = "";
  const done = (async () => {
    for await (const chunk of stream) text += decoder.decode(chunk, { stream: true });
  })();
  return { text: () => text, done };
}
