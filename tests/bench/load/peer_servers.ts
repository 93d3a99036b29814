// Starts the servers that a user might pick instead, as far as they are installed: NATS with TLS,
// with and without JetStream, and Redis (no TLS: its clients' usual set-up on one machine). Rule:
// looked for in `.peers/` of the repository and on PATH, never downloaded.

import { Child } from "../child.ts";

/** A running peer. */
export interface PeerServer extends AsyncDisposable {
  readonly name: "nats" | "redis";
  readonly version: string;
  readonly port: number;
  readonly pid: number;
  cpuMicroseconds(): number;
}

const START_WAIT_MS = 10_000;

/** The path of `program`, or `null`. */
export function findProgram(program: string): string | null {
  const peers = new URL("../../../.peers/", import.meta.url).pathname;
  const folders = [peers, ...(Deno.env.get("PATH") ?? "").split(":")];
  for (const folder of folders) {
    const path = `${folder.replace(/\/$/, "")}/${program}`;
    try {
      if (Deno.statSync(path).isFile) return path;
    } catch { /* not in this folder */ }
  }
  return null;
}

/** Starts NATS with the given certificate; `null` where it is not installed. */
export async function startNats(certFile: string, keyFile: string): Promise<PeerServer | null> {
  const path = findProgram("nats-server");
  if (path === null) return null;
  const port = freeTcpPort();
  const args = ["-a", "127.0.0.1", "-p", String(port)];
  const tls = ["--tls", "--tlscert", certFile, "--tlskey", keyFile];
  return await start("nats", path, [...args, ...tls], port, /(\d+\.\d+\.\d+)/);
}

/**
 * Starts NATS with JetStream in `directory`; `always`: it syncs before it acknowledges, otherwise
 * every two minutes, its default. `null` where it is not installed.
 */
export async function startJetStream(
  certFile: string,
  keyFile: string,
  directory: string,
  always: boolean,
): Promise<PeerServer | null> {
  const path = findProgram("nats-server");
  if (path === null) return null;
  const port = freeTcpPort();
  const config = `${directory}/nats.conf`;
  const lines = [
    `listen: "127.0.0.1:${port}"`,
    `tls { cert_file: "${certFile}", key_file: "${keyFile}" }`,
    `jetstream { store_dir: "${directory}", sync_interval: ${always ? "always" : '"2m"'} }`,
  ];
  await Deno.writeTextFile(config, lines.join("\n"));
  return await start("nats", path, ["-c", config], port, /(\d+\.\d+\.\d+)/);
}

/** Where and how Redis keeps its append-only file. */
export interface RedisPersistence {
  readonly directory: string;
  readonly fsync: "always" | "everysec";
}

/** Starts Redis, in memory with `null`; `null` where it is not installed. */
export async function startRedis(kept: RedisPersistence | null): Promise<PeerServer | null> {
  const path = findProgram("redis-server");
  if (path === null) return null;
  const port = freeTcpPort();
  const args = ["--bind", "127.0.0.1", "--port", String(port), "--save", ""];
  const keeping = kept === null
    ? ["--appendonly", "no"]
    : ["--appendonly", "yes", "--appendfsync", kept.fsync, "--dir", kept.directory];
  return await start("redis", path, [...args, ...keeping], port, /v=(\d+\.\d+\.\d+)/);
}

async function start(
  name: PeerServer["name"],
  path: string,
  args: string[],
  port: number,
  versionPattern: RegExp,
): Promise<PeerServer> {
  const { stdout } = await new Deno.Command(path, { args: ["--version"] }).output();
  const version = versionPattern.exec(new TextDecoder().decode(stdout))?.[1] ?? "unknown";
  const child = new Child({ command: path, args, quiet: true });
  await untilListening(port);
  return {
    name,
    version,
    port,
    pid: child.pid,
    cpuMicroseconds: () => child.cpuMicroseconds(),
    [Symbol.asyncDispose]: () => child.terminate(),
  };
}

async function untilListening(port: number): Promise<void> {
  const deadline = performance.now() + START_WAIT_MS;
  for (;;) {
    try {
      (await Deno.connect({ hostname: "127.0.0.1", port })).close();
      return;
    } catch (error) {
      if (performance.now() > deadline) throw error;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}

function freeTcpPort(): number {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr as Deno.NetAddr;
  listener.close();
  return port;
}
