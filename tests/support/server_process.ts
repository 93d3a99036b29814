// A server process of a test: started under the running Deno, its output collected with a bound,
// ended by its own process id. A process that is still there when the test ends is killed.

import { REPOSITORY_ROOT } from "./repository.ts";
import { within } from "./poll.ts";

/** A server that could not be started or did not stop. */
export class ServerFailed extends Error {
  override readonly name = "ServerFailed";
  readonly code = "server_failed";
}

/** What to run. */
export interface ServerProcessOptions {
  /** Module to run, a path from the root of the repository. */
  readonly module: string;
  /** Arguments of the module. */
  readonly args?: readonly string[];
  /** Variables on top of a clean environment: no `FELIX_*` of the caller gets in. */
  readonly env?: Readonly<Record<string, string>>;
  /** Flags of the runtime itself, for example `--v8-flags=--expose-gc`. */
  readonly runtimeFlags?: readonly string[];
}

/** Most characters of output kept per pipe; the oldest go first. */
const MAX_OUTPUT = 256 * 1024;

/** What a server process is allowed to do. */
export const SERVER_PERMISSIONS: readonly string[] = [
  "--unstable-net",
  "--allow-net",
  "--allow-read",
  "--allow-write",
  "--allow-env",
  "--allow-ffi",
  "--allow-sys",
  "--allow-run",
];

function cleanEnvironment(env: Readonly<Record<string, string>>): Record<string, string> {
  const inherited = Object.entries(Deno.env.toObject()).filter(([name]) =>
    !name.startsWith("FELIX_") && name !== "RUST_LOG"
  );
  return { ...Object.fromEntries(inherited), ...env };
}

/** A running server process. */
export class ServerProcess implements AsyncDisposable {
  readonly #child: Deno.ChildProcess;
  readonly #name: string;
  readonly #pipes: Promise<void>;
  #status: Deno.CommandStatus | null = null;
  /** What it wrote to standard output so far (the last 256 Ki characters). */
  stdout = "";
  /** What it wrote to standard error so far (the last 256 Ki characters). */
  stderr = "";

  constructor(options: ServerProcessOptions) {
    this.#name = options.module;
    this.#child = new Deno.Command(Deno.execPath(), {
      args: [
        "run",
        "--quiet",
        ...(options.runtimeFlags ?? []),
        ...SERVER_PERMISSIONS,
        options.module,
        ...(options.args ?? []),
      ],
      cwd: REPOSITORY_ROOT,
      clearEnv: true,
      env: cleanEnvironment(options.env ?? {}),
      stdin: "null",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
    this.#pipes = this.#collect();
  }

  /** Process id. */
  get pid(): number {
    return this.#child.pid;
  }

  /** How it ended; `null` while it runs. */
  get status(): Deno.CommandStatus | null {
    return this.#status;
  }

  async #collect(): Promise<void> {
    const keep = (text: string, more: string): string => (text + more).slice(-MAX_OUTPUT);
    const read = async (pipe: ReadableStream<Uint8Array>, take: (text: string) => void) => {
      const decoder = new TextDecoder();
      for await (const chunk of pipe) take(decoder.decode(chunk, { stream: true }));
    };
    const [status] = await Promise.all([
      this.#child.status,
      read(this.#child.stdout, (text) => this.stdout = keep(this.stdout, text)),
      read(this.#child.stderr, (text) => this.stderr = keep(this.stderr, text)),
    ]);
    this.#status = status;
  }

  /** Sends a signal; a process that has ended takes none. */
  signal(signal: Deno.Signal): void {
    if (this.#status !== null) return;
    try {
      Deno.kill(this.pid, signal);
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound) && !(error instanceof TypeError)) throw error;
    }
  }

  /** Waits until it has ended and all its output is here. @throws {PollTimeout} */
  async ended(deadlineMs = 60_000): Promise<Deno.CommandStatus> {
    await within(this.#pipes, `the end of ${this.#name}`, deadlineMs);
    return this.#status!;
  }

  /** Asks it to stop (SIGTERM), waits for its end and answers its exit code. */
  async stop(deadlineMs = 60_000): Promise<number> {
    this.signal("SIGTERM");
    return (await this.ended(deadlineMs)).code;
  }

  /** Ends it at once (SIGKILL). */
  async kill(): Promise<void> {
    this.signal("SIGKILL");
    await this.ended();
  }

  /** Kills it if it still runs. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
  }
}
