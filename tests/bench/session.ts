// The processes behind a measurement: servers and load generators, started when first needed and
// stopped together. A full run opens a session per measurement, so every trial has fresh processes;
// a smoke run keeps one for all rows.

import { ensureDevelopmentCertificates } from "@felix/transport";
import { findPython } from "../interop/venv.ts";
import { DevBroker } from "../support/servers.ts";
import type { Target } from "./cell.ts";
import { Child, ChildFailed, cpuMicroseconds, residentBytes } from "./child.ts";
import { NAMES } from "./frame_sizes.ts";
import { temporaryFolder } from "../support/temporary_folder.ts";
import { type PeerServer, startJetStream, startNats, startRedis } from "./load/peer_servers.ts";
import type { Contender } from "./rows.ts";

/** Whose load generator runs. */
export type LoadKind =
  | "felix"
  | "raw"
  | "log"
  | "disk"
  | "nats"
  | "jetstream"
  | "redis"
  | "redis_stream"
  | "python"
  | "idle";

/** A server under load. */
export interface MeasuredServer {
  readonly target: Target;
  cpuMicroseconds(): number;
  residentBytes(): number;
}

/** A server or load that is not installed on this machine. */
export class NotInstalled extends Error {
  override readonly name = "NotInstalled";
  readonly code = "not_installed";
}

/** Block instead of dropping, wait instead of shedding (spec/operations.md §14.1). */
const LOSSLESS = {
  FELIX_PUB_INGRESS_WAIT: "true",
  FELIX_SUB_QUEUE_POLICY: "block",
  FELIX_SUBSCRIBER_QUEUE_CAPACITY: "4096",
  FELIX_PUBLISH_QUEUE_WAIT_MS: "60000",
  FELIX_ACK_WAIT_TIMEOUT_MS: "60000",
};

/** Length of the values that the least broker finds. */
const VALUE_BYTES = 256;

const LOAD_MODULES: Readonly<Record<Exclude<LoadKind, "python">, string>> = {
  felix: "load/felix_load.ts",
  raw: "raw/raw_load.ts",
  log: "load/log_load.ts",
  disk: "raw/disk_load.ts",
  nats: "load/nats_load.ts",
  jetstream: "load/jetstream_load.ts",
  redis: "load/redis_load.ts",
  redis_stream: "load/redis_stream_load.ts",
  idle: "load/idle_load.ts",
};

/** Lazily started processes. */
export class Session implements AsyncDisposable {
  readonly #servers = new Map<Contender, MeasuredServer>();
  readonly #loads = new Map<LoadKind, Child>();
  readonly #resources = new AsyncDisposableStack();
  readonly #certificates: Certificates;

  constructor(certificates: Certificates) {
    this.#certificates = certificates;
  }

  /** The server of `contender`. @throws {NotInstalled} */
  async server(contender: Contender): Promise<MeasuredServer> {
    const running = this.#servers.get(contender);
    if (running !== undefined) return running;
    const started = await this.#startServer(contender);
    this.#servers.set(contender, started);
    return started;
  }

  /** The load process of `kind`. @throws {NotInstalled} */
  async load(kind: LoadKind): Promise<Child> {
    const running = this.#loads.get(kind);
    if (running !== undefined) return running;
    const child = await this.#own(
      kind === "python" ? await this.#startPython() : Child.module(LOAD_MODULES[kind]),
    );
    await child.answer();
    this.#loads.set(kind, child);
    return child;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#resources.disposeAsync();
  }

  /** Keeps `resource` until the session ends; one that comes too late ends at once. */
  async #own<T extends AsyncDisposable>(resource: T): Promise<T> {
    if (!this.#resources.disposed) return this.#resources.use(resource);
    await resource[Symbol.asyncDispose]();
    throw new ChildFailed("the session has ended");
  }

  async #startServer(contender: Contender): Promise<MeasuredServer> {
    const { caFile, certFile, keyFile } = this.#certificates;
    const felixNames = { ...NAMES, token: "unchecked" };
    switch (contender) {
      case "felix":
        return await this.#startFelix(false);
      case "felix (fsync)":
        return await this.#startFelix(true);
      case "log":
      case "disk":
      case "disk (fsync)":
        return await this.#folder();
      case "raw":
        return await this.#startModule("raw/raw_server.ts", [certFile, keyFile], { caFile });
      case "least": {
        const args = [certFile, keyFile, String(VALUE_BYTES)];
        return await this.#startModule("least/least_broker.ts", args, { caFile, ...felixNames });
      }
      case "nats":
        return await this.#peer(await startNats(certFile, keyFile), caFile);
      case "jetstream (fsync)":
      case "jetstream (fsync 2 min)": {
        const always = contender === "jetstream (fsync)";
        const { directory = "" } = (await this.#folder()).target;
        return await this.#peer(await startJetStream(certFile, keyFile, directory, always), caFile);
      }
      case "redis":
        return await this.#peer(await startRedis(null));
      case "redis (fsync)":
      case "redis (fsync 1 s)": {
        const fsync = contender === "redis (fsync)" ? "always" : "everysec";
        const { directory = "" } = (await this.#folder()).target;
        return await this.#peer(await startRedis({ directory, fsync }));
      }
    }
  }

  /** A folder where there is no server: its load does everything. */
  async #folder(): Promise<MeasuredServer> {
    const { path: directory } = this.#resources.use(await temporaryFolder("felix-bench-"));
    const target = { hostname: "", port: 0, directory };
    return { target, cpuMicroseconds: () => 0, residentBytes: () => 0 };
  }

  async #startFelix(durable: boolean): Promise<MeasuredServer> {
    const broker = await this.#own(await DevBroker.start({ env: LOSSLESS, durable }));
    const { caFile, port, token, tenant, namespace, pid } = broker;
    const { stream, cache } = NAMES;
    return {
      target: { hostname: "127.0.0.1", port, caFile, token, tenant, namespace, stream, cache },
      cpuMicroseconds: () => cpuMicroseconds(pid),
      residentBytes: () => residentBytes(pid),
    };
  }

  async #startModule(
    module: string,
    args: string[],
    names: Omit<Target, "hostname" | "port">,
  ): Promise<MeasuredServer> {
    const child = await this.#own(Child.module(module, args));
    const { port } = await child.answer<{ port: number }>();
    return {
      target: { hostname: "127.0.0.1", port, ...names },
      cpuMicroseconds: () => child.cpuMicroseconds(),
      residentBytes: () => child.residentBytes(),
    };
  }

  async #peer(peer: PeerServer | null, caFile?: string): Promise<MeasuredServer> {
    if (peer === null) throw new NotInstalled("not found in .peers or on PATH");
    const { port, pid } = await this.#own(peer);
    return {
      target: { hostname: "127.0.0.1", port, ...(caFile === undefined ? {} : { caFile }) },
      cpuMicroseconds: () => cpuMicroseconds(pid),
      residentBytes: () => residentBytes(pid),
    };
  }

  async #startPython(): Promise<Child> {
    const command = await findPython();
    if (command === null) throw new NotInstalled("run tests/interop/venv.ts first");
    const script = new URL("load/python_load.py", import.meta.url).pathname;
    return new Child({ command, args: [script] });
  }
}

/** Files of the certificate that every server of this run shows. */
export interface Certificates {
  readonly caFile: string;
  readonly certFile: string;
  readonly keyFile: string;
}

/** Makes the certificates of a run in `folder`. */
export async function makeCertificates(folder: string): Promise<Certificates> {
  return await ensureDevelopmentCertificates(folder, ["localhost", "127.0.0.1"]);
}
