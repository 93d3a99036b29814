// Development brokers for tests that cross rooms: a real process on free ports, with certificates,
// keys and state in a folder of its own. Use it with `await using`; a failing test leaves nothing.

import { createSocket } from "node:dgram";
import { poll } from "./poll.ts";
import { ServerFailed, ServerProcess } from "./server_process.ts";
import { type TemporaryFolder, temporaryFolder } from "./temporary_folder.ts";

export { ServerFailed };

/** How to start a development broker. */
export interface DevBrokerOptions {
  /** Its built-in streams are durable; in memory without. */
  readonly durable?: boolean;
  /** Settings on top of the development ones, as environment variables. */
  readonly env?: Readonly<Record<string, string>>;
  /** Further arguments of the development command. */
  readonly args?: readonly string[];
  /** Flags of the runtime itself. */
  readonly runtimeFlags?: readonly string[];
  /** Milliseconds until it has to serve; default 60 000. */
  readonly deadlineMs?: number;
}

/** What a development broker writes to `dev.json` once it serves. */
interface DevFile {
  readonly broker: string;
  readonly metrics: string;
  readonly caFile: string;
  readonly tokenFile: string;
  readonly tenant: string;
  readonly namespace: string;
  readonly pid: number;
}

const MODULE = "broker/dev/dev.ts";

/** A running development broker. */
export class DevBroker implements AsyncDisposable {
  readonly #options: DevBrokerOptions;
  readonly #folder: TemporaryFolder;
  #process: ServerProcess;
  #file: DevFile | null = null;
  #token = "";
  #ca = "";

  private constructor(options: DevBrokerOptions, folder: TemporaryFolder) {
    this.#options = options;
    this.#folder = folder;
    this.#process = this.#spawn();
  }

  /** Starts one and waits until it serves. @throws {ServerFailed} when it ends instead */
  static async start(options: DevBrokerOptions = {}): Promise<DevBroker> {
    const broker = new DevBroker(options, await temporaryFolder("felix-dev-"));
    try {
      await broker.#serving();
    } catch (error) {
      await broker[Symbol.asyncDispose]();
      throw error;
    }
    return broker;
  }

  #spawn(): ServerProcess {
    return new ServerProcess({
      module: MODULE,
      args: [
        "--state",
        this.state,
        ...(this.#options.durable ? [] : ["--memory"]),
        ...(this.#options.args ?? []),
      ],
      env: {
        FELIX_QUIC_BIND: "127.0.0.1:0",
        FELIX_BROKER_METRICS_BIND: "127.0.0.1:0",
        ...this.#options.env,
      },
      runtimeFlags: this.#options.runtimeFlags ?? [],
    });
  }

  async #serving(): Promise<void> {
    const path = `${this.state}/dev.json`;
    const file = await poll(async () => {
      const { status } = this.#process;
      if (status !== null) return { failed: status.code };
      return JSON.parse(await Deno.readTextFile(path)) as DevFile;
    }, { deadlineMs: this.#options.deadlineMs ?? 60_000, what: `${MODULE} serving` });
    if ("failed" in file) {
      throw new ServerFailed(`${MODULE} ended with ${file.failed}: ${this.stderr}${this.stdout}`);
    }
    this.#file = file;
    this.#token = (await Deno.readTextFile(file.tokenFile)).trim();
    this.#ca = await Deno.readTextFile(file.caFile);
  }

  get #dev(): DevFile {
    if (this.#file === null) throw new ServerFailed("the broker does not serve");
    return this.#file;
  }

  /** Client address as `host:port`. */
  get broker(): string {
    return this.#dev.broker;
  }

  /** Client port. */
  get port(): number {
    return Number(this.broker.slice(this.broker.lastIndexOf(":") + 1));
  }

  /** Base URL of metrics and probes. */
  get metrics(): string {
    return this.#dev.metrics;
  }

  /** File with the certificate authority, in PEM. */
  get caFile(): string {
    return this.#dev.caFile;
  }

  /** The certificate authority, in PEM. */
  get ca(): string {
    return this.#ca;
  }

  /** A token that may do everything in the development tenant. */
  get token(): string {
    return this.#token;
  }

  /** The development tenant. */
  get tenant(): string {
    return this.#dev.tenant;
  }

  /** Its namespace. */
  get namespace(): string {
    return this.#dev.namespace;
  }

  /** Folder with its state. */
  get state(): string {
    return this.#folder.path;
  }

  /** Process id of the broker. */
  get pid(): number {
    return this.#dev.pid;
  }

  /** What it wrote to standard output. */
  get stdout(): string {
    return this.#process.stdout;
  }

  /** What it wrote to standard error. */
  get stderr(): string {
    return this.#process.stderr;
  }

  /** Whether the process has not ended. */
  get alive(): boolean {
    return this.#process.status === null;
  }

  /** Sends a signal to the process. */
  signal(signal: Deno.Signal): void {
    this.#process.signal(signal);
  }

  /** Waits for its end. @throws {PollTimeout} */
  ended(deadlineMs?: number): Promise<Deno.CommandStatus> {
    return this.#process.ended(deadlineMs);
  }

  /** Asks it to stop, waits for its end and answers its exit code. */
  stop(deadlineMs?: number): Promise<number> {
    return this.#process.stop(deadlineMs);
  }

  /** Ends it at once, as a crash would. */
  async kill(): Promise<void> {
    // The launcher first: it must not report the broker's end as its own.
    this.#process.signal("SIGKILL");
    if (this.alive && this.#file !== null) killProcess(this.#file.pid);
    await this.ended();
    await Deno.remove(`${this.state}/dev.json`).catch(() => {});
  }

  /** Stops it and starts it again on the same state; ports may change. */
  async restart(): Promise<void> {
    await this.stop();
    await Deno.remove(`${this.state}/dev.json`).catch(() => {});
    this.#file = null;
    this.#process = this.#spawn();
    await this.#serving();
  }

  /** A token with just these permissions, as `stream.publish:stream:t1/default/events`. */
  async mintToken(permissions: readonly string[], principal = "p:test"): Promise<string> {
    await using process = new ServerProcess({
      module: MODULE,
      args: [
        "token",
        "--state",
        this.state,
        "--principal",
        principal,
        ...permissions.flatMap((permission) => ["--perm", permission]),
      ],
    });
    const { code } = await process.ended();
    if (code !== 0) throw new ServerFailed(`no token: ${process.stderr}`);
    return process.stdout.trim();
  }

  /** Text of a page of the metrics listener. */
  async page(path: string): Promise<{ status: number; text: string }> {
    const response = await fetch(`${this.metrics}${path}`);
    return { status: response.status, text: await response.text() };
  }

  /** Sum of a metric over its labels, or over those samples whose labels contain `label`. */
  async metric(name: string, label = ""): Promise<number> {
    return metricIn((await this.page("/metrics")).text, name, label);
  }

  /** Resident memory of the broker in bytes, as it reports it. */
  async residentBytes(): Promise<number> {
    const bytes = await this.metric("process_resident_memory_bytes");
    if (bytes <= 0) throw new ServerFailed("the broker reports no memory");
    return bytes;
  }

  /** Kills the process if it still runs and removes its folder. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    await this.#folder[Symbol.asyncDispose]();
  }
}

/** A UDP port that nobody listens on now, for a broker that is to come back where it was. */
export function freeUdpPort(): Promise<number> {
  const socket = createSocket("udp4");
  return new Promise((resolve) => {
    socket.bind(0, "127.0.0.1", () => {
      const { port } = socket.address();
      socket.close(() => resolve(port));
    });
  });
}

function killProcess(pid: number): void {
  try {
    Deno.kill(pid, "SIGKILL");
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
}

/** Sum of the samples of one metric in a Prometheus page; 0 when there is none. */
export function metricIn(page: string, name: string, label = ""): number {
  let sum = 0;
  for (const line of page.split("\n")) {
    const match = /^(\w+)(\{[^}]*\})? (\S+)/.exec(line);
    if (match?.[1] === name && (match[2] ?? "").includes(label)) sum += Number(match[3]);
  }
  return sum;
}
