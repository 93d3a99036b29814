// The harness's side of its child processes: start, JSON-line exchange, CPU time, memory, stop.
// Rule: a child is stopped by ending its stdin and, if that does not help, by its own pid.

import type { LoadCommand } from "./cell.ts";
import { linesOf } from "./worker.ts";

/** A child that could not be started, failed, or answered with an error. */
export class ChildFailed extends Error {
  override readonly name = "ChildFailed";
  readonly code = "child_failed";
}

/** How to start a child. */
export interface ChildOptions {
  readonly command: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** Drop what it prints: servers of others, which say nothing that the harness reads. */
  readonly quiet?: boolean;
}

const STOP_WAIT_MS = 5000;
/** Clock ticks a second of /proc/PID/stat; 100 on every Linux that Deno runs on. */
const TICKS_PER_SECOND = 100;

/** One child process. */
export class Child implements AsyncDisposable {
  readonly #process: Deno.ChildProcess;
  readonly #lines: AsyncGenerator<string>;
  readonly #input: WritableStreamDefaultWriter<Uint8Array>;
  #stopped = false;

  constructor(options: ChildOptions) {
    this.#process = new Deno.Command(options.command, {
      args: [...options.args],
      env: { ...options.env },
      ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
      stdin: "piped",
      stdout: "piped",
      stderr: options.quiet === true ? "null" : "inherit",
    }).spawn();
    this.#lines = linesOf(this.#process.stdout);
    this.#input = this.#process.stdin.getWriter();
  }

  /** Starts a TypeScript module of this folder under the running Deno. */
  static module(module: string, args: readonly string[] = []): Child {
    const file = new URL(module, import.meta.url).pathname;
    const flags = ["run", "--quiet", "--no-check", "--unstable-net", "-A"];
    return new Child({ command: Deno.execPath(), args: [...flags, file, ...args] });
  }

  /** Process id. */
  get pid(): number {
    return this.#process.pid;
  }

  /** The next line that is a JSON object. @throws {ChildFailed} when the child ends first */
  async answer<T>(): Promise<T> {
    for (;;) {
      const { value, done } = await this.#lines.next();
      if (done) throw new ChildFailed(`process ${this.pid} ended without an answer`);
      if (!value.startsWith("{")) continue;
      const answer = JSON.parse(value) as T & { error?: string };
      if (answer.error !== undefined) throw new ChildFailed(answer.error);
      return answer;
    }
  }

  /** Sends a command and waits for its answer. */
  async ask<T>(command: LoadCommand): Promise<T> {
    await this.#input.write(new TextEncoder().encode(JSON.stringify(command) + "\n"));
    return await this.answer<T>();
  }

  /** Core-microseconds used so far, user and system, all threads. */
  cpuMicroseconds(): number {
    return cpuMicroseconds(this.pid);
  }

  /** Resident memory in bytes. */
  residentBytes(): number {
    return residentBytes(this.pid);
  }

  /** Ends the child and waits for it. */
  async stop(): Promise<void> {
    if (this.#stopped) return;
    this.#stopped = true;
    await this.#input.close().catch(() => {});
    const timer = setTimeout(() => this.#kill("SIGKILL"), STOP_WAIT_MS);
    await this.#process.status;
    clearTimeout(timer);
    await this.#lines.return(undefined).catch(() => {});
  }

  /** Sends `signal`; a child that has ended is left alone. */
  #kill(signal: Deno.Signal): void {
    try {
      this.#process.kill(signal);
    } catch { /* it has ended */ }
  }

  /** Ends a child that does not watch its stdin, with SIGTERM. */
  async terminate(): Promise<void> {
    this.#kill("SIGTERM");
    await this.stop();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }
}

/** Core-microseconds that process `pid` has used, all threads; 0 where /proc is missing. */
export function cpuMicroseconds(pid: number): number {
  const text = readProc(`/proc/${pid}/stat`);
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  const ticks = Number(fields[11] ?? 0) + Number(fields[12] ?? 0);
  return ticks * (1_000_000 / TICKS_PER_SECOND);
}

/** Resident bytes of process `pid`; 0 where /proc is missing. */
export function residentBytes(pid: number): number {
  const match = /VmRSS:\s+(\d+) kB/.exec(readProc(`/proc/${pid}/status`));
  return Number(match?.[1] ?? 0) * 1024;
}

/**
 * Text of a `/proc` file, empty where there is none. Read through `cat`: the runtime itself reads
 * `/proc` only when it has every permission there is.
 */
export function readProc(path: string): string {
  try {
    const { stdout } = new Deno.Command("cat", { args: [path], stderr: "null" }).outputSync();
    return new TextDecoder().decode(stdout);
  } catch {
    return "";
  }
}
