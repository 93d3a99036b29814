// Options from the environment and from the file that `FELIX_CLIENT_CONFIG` names. The rule: the
// environment wins over the file, options in code win over both, and what cannot be read or is not
// known is an error, never a silent default (spec/client.md §17).

import { connect } from "./client.ts";
import type { FelixClient } from "./client_types.ts";
import { InvalidArgumentError } from "./failure/classes.ts";
import { parseFlatYaml } from "./flat_yaml.ts";
import type { ConnectOptions } from "./options.ts";
import { environmentVariable, readTextFileSync } from "./runtime/deno.ts";
import type { OverflowPolicy } from "./subscribe/subscribe_options.ts";
import { tokenFile } from "./token/token_file.ts";

/** Setting by the name of its variable; the second word is its key in the file, if it has one. */
const SETTINGS = {
  FELIX_BROKERS: null,
  FELIX_AUTH_TENANT: null,
  FELIX_NAMESPACE: null,
  FELIX_AUTH_TOKEN: null,
  FELIX_AUTH_TOKEN_FILE: null,
  FELIX_CA_FILE: null,
  FELIX_CLIENT_CERT_FILE: null,
  FELIX_CLIENT_KEY_FILE: null,
  FELIX_SERVER_NAME: null,
  FELIX_EVENT_CONN_POOL: "event_conn_pool",
  FELIX_CACHE_CONN_POOL: "cache_conn_pool",
  FELIX_CACHE_STREAMS_PER_CONN: "cache_streams_per_conn",
  FELIX_PUB_CONN_POOL: "publish_conn_pool",
  FELIX_PUB_STREAMS_PER_CONN: "publish_streams_per_conn",
  FELIX_PUB_SHARDING: "publish_sharding",
  FELIX_PUB_SHARD_STREAMS: "publish_shard_streams",
  FELIX_CLUSTER_CONN_POOL: "cluster_conn_pool",
  FELIX_CLUSTER_STREAMS_PER_CONN: "cluster_streams_per_conn",
  FELIX_PUBLISH_QUEUE_DEPTH: "publish_queue_depth",
  FELIX_PUBLISH_INFLIGHT_BYTES: "publish_inflight_bytes",
  FELIX_PUBLISH_CHUNK_BYTES: "publish_chunk_bytes",
  FELIX_CLIENT_SUB_QUEUE_CAPACITY: "client_sub_queue_capacity",
  FELIX_CLIENT_SUB_QUEUE_POLICY: "client_sub_queue_policy",
  FELIX_EVENT_ROUTER_MAX_PENDING: "event_router_max_pending",
  FELIX_MAX_FRAME_BYTES: "max_frame_bytes",
  FELIX_KEEPALIVE_MS: null,
  FELIX_MAX_IDLE_TIMEOUT_MS: null,
  FELIX_EVENT_CONN_RECV_WINDOW: "event_conn_recv_window",
  FELIX_EVENT_STREAM_RECV_WINDOW: "event_stream_recv_window",
  FELIX_EVENT_SEND_WINDOW: "event_send_window",
  FELIX_CACHE_CONN_RECV_WINDOW: "cache_conn_recv_window",
  FELIX_CACHE_STREAM_RECV_WINDOW: "cache_stream_recv_window",
  FELIX_CACHE_SEND_WINDOW: "cache_send_window",
  FELIX_BENCH_EMBED_TS: "bench_embed_ts",
} as const;

type Variable = keyof typeof SETTINGS;

const ALIASES: Partial<Record<Variable, string>> = {
  FELIX_EVENT_CONN_POOL: "FELIX_SUB_CONNS",
  FELIX_PUB_SHARDING: "FELIX_PUBLISH_SHARDING",
};

/** Accepted and checked, but without effect here: the QUIC engine's windows cannot be set. */
const WITHOUT_EFFECT: readonly Variable[] = [
  "FELIX_PUBLISH_CHUNK_BYTES",
  "FELIX_EVENT_CONN_RECV_WINDOW",
  "FELIX_EVENT_STREAM_RECV_WINDOW",
  "FELIX_EVENT_SEND_WINDOW",
  "FELIX_CACHE_CONN_RECV_WINDOW",
  "FELIX_CACHE_STREAM_RECV_WINDOW",
  "FELIX_CACHE_SEND_WINDOW",
];

function refuse(message: string): never {
  throw new InvalidArgumentError({ message, operation: "configure" });
}

/** Reads values by variable name, environment first. */
class Source {
  readonly #file: ReadonlyMap<string, string>;
  readonly #variable: (name: string) => string | undefined;

  constructor(variable: (name: string) => string | undefined) {
    this.#variable = variable;
    const path = variable("FELIX_CLIENT_CONFIG");
    this.#file = path === undefined || path === "" ? new Map() : readFile(path);
  }

  text(name: Variable): string | undefined {
    const alias = ALIASES[name];
    const key = SETTINGS[name];
    const value = this.#variable(name) ??
      (alias === undefined ? undefined : this.#variable(alias)) ??
      (key === null ? undefined : this.#file.get(key));
    return value === "" ? undefined : value;
  }

  count(name: Variable, least = 1): number | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    const value = /^\d+$/.test(text) ? Number(text) : NaN;
    if (!Number.isSafeInteger(value) || value < least) {
      refuse(`${name} must be a whole number of at least ${least}, not ${JSON.stringify(text)}`);
    }
    return value;
  }

  word<T>(name: Variable, words: Readonly<Record<string, T>>): T | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    if (!Object.hasOwn(words, text)) {
      refuse(
        `${name} must be one of ${Object.keys(words).join(", ")}, not ${JSON.stringify(text)}`,
      );
    }
    return words[text];
  }
}

function readFile(path: string): Map<string, string> {
  const values = parseFlatYaml(readTextFileSync(path));
  const known: ReadonlySet<string | null> = new Set(Object.values(SETTINGS));
  for (const key of values.keys()) {
    if (!known.has(key)) refuse(`unknown key in ${path}: ${key}`);
  }
  return values;
}

/** Leaves out members that are not set, because an option that is there must have a value. */
function present<T extends object>(members: { [K in keyof T]: T[K] | undefined }): T {
  const entries = Object.entries(members).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as T;
}

function some<T extends object>(members: T): T | undefined {
  return Object.keys(members).length === 0 ? undefined : members;
}

function pools(source: Source): ConnectOptions["pools"] {
  return some(present<NonNullable<ConnectOptions["pools"]>>({
    topology: undefined,
    eager: undefined,
    event: some(present({ connections: source.count("FELIX_EVENT_CONN_POOL") })),
    cache: some(present({
      connections: source.count("FELIX_CACHE_CONN_POOL"),
      streamsPerConnection: source.count("FELIX_CACHE_STREAMS_PER_CONN"),
    })),
    publish: some(present({
      connections: source.count("FELIX_PUB_CONN_POOL"),
      streamsPerConnection: source.count("FELIX_PUB_STREAMS_PER_CONN"),
      sharding: source.word("FELIX_PUB_SHARDING", {
        rr: "roundRobin" as const,
        hash_stream: "hashStream" as const,
      }),
      shardStreams: source.count("FELIX_PUB_SHARD_STREAMS", 0),
    })),
    shared: some(present({
      maxConnections: source.count("FELIX_CLUSTER_CONN_POOL"),
      streamsPerConnection: source.count("FELIX_CLUSTER_STREAMS_PER_CONN"),
    })),
  }));
}

function limits(source: Source): ConnectOptions["limits"] {
  return some(present({
    publishQueueDepth: source.count("FELIX_PUBLISH_QUEUE_DEPTH"),
    publishInflightBytes: source.count("FELIX_PUBLISH_INFLIGHT_BYTES"),
    eventRouterMaxPending: source.count("FELIX_EVENT_ROUTER_MAX_PENDING"),
  }));
}

function subscribe(source: Source): ConnectOptions["subscribe"] {
  const overflow = source.word<OverflowPolicy>("FELIX_CLIENT_SUB_QUEUE_POLICY", {
    block: "block",
    drop_new: "dropNew",
    drop_old: "dropOld",
  });
  const maxEvents = source.count("FELIX_CLIENT_SUB_QUEUE_CAPACITY");
  const buffer = some(present({ overflow, maxEvents }));
  return buffer === undefined ? undefined : { buffer };
}

function tls(source: Source): ConnectOptions["tls"] {
  const certFile = source.text("FELIX_CLIENT_CERT_FILE");
  const keyFile = source.text("FELIX_CLIENT_KEY_FILE");
  if ((certFile === undefined) !== (keyFile === undefined)) {
    refuse("FELIX_CLIENT_CERT_FILE and FELIX_CLIENT_KEY_FILE go together");
  }
  return some(present<NonNullable<ConnectOptions["tls"]>>({
    caCerts: undefined,
    offerAlpn: undefined,
    caFile: source.text("FELIX_CA_FILE"),
    clientCert: certFile === undefined || keyFile === undefined
      ? undefined
      : { cert: readTextFileSync(certFile), key: readTextFileSync(keyFile) },
  }));
}

/**
 * Options from the environment (`FELIX_BROKERS`, `FELIX_AUTH_TENANT`, …) and the flat YAML file at
 * `FELIX_CLIENT_CONFIG`; members that neither sets are left out. Needs `--allow-env` unless `env`
 * is given, and `--allow-read` for the files named.
 *
 * @example
 * ```ts
 * import { configFromEnv } from "@felix/client";
 *
 * const options = configFromEnv({ FELIX_BROKERS: "localhost:5000", FELIX_AUTH_TENANT: "t1" });
 * ```
 * @throws {InvalidArgumentError} an unknown key in the file, or a value that makes no sense
 */
export function configFromEnv(
  env?: Readonly<Record<string, string | undefined>>,
): Partial<ConnectOptions> {
  const source = new Source(env === undefined ? environmentVariable : (name) => env[name]);
  for (const name of WITHOUT_EFFECT) source.count(name, 0);
  source.word("FELIX_BENCH_EMBED_TS", { true: true, false: false, "1": true, "0": false });
  const file = source.text("FELIX_AUTH_TOKEN_FILE");
  return present<Partial<ConnectOptions>>(
    {
      addresses: source.text("FELIX_BROKERS"),
      tenant: source.text("FELIX_AUTH_TENANT"),
      namespace: source.text("FELIX_NAMESPACE"),
      token: source.text("FELIX_AUTH_TOKEN") ?? (file === undefined ? undefined : tokenFile(file)),
      serverName: source.text("FELIX_SERVER_NAME"),
      tls: tls(source),
      pools: pools(source),
      limits: limits(source),
      subscribe: subscribe(source),
      maxFrameBytes: source.count("FELIX_MAX_FRAME_BYTES", 1024),
      keepAliveMs: source.count("FELIX_KEEPALIVE_MS", 0),
      idleTimeoutMs: source.count("FELIX_MAX_IDLE_TIMEOUT_MS"),
    } as { [K in keyof Partial<ConnectOptions>]: Partial<ConnectOptions>[K] | undefined },
  );
}

/**
 * Connects with what `configFromEnv` finds; `overrides` win over it.
 * @throws {InvalidArgumentError} addresses, tenant or token are set nowhere
 */
export async function connectFromEnv(
  overrides: Partial<ConnectOptions> = {},
): Promise<FelixClient> {
  const options = { ...configFromEnv(), ...overrides };
  const source = new Source(environmentVariable);
  const idle = WITHOUT_EFFECT.filter((name) => source.text(name) !== undefined);
  if (idle.length > 0) {
    overrides.logger?.info("settings without effect", { reason: idle.join(", ") });
  }
  const { addresses, tenant, token } = options;
  if (addresses === undefined) refuse("no addresses: set FELIX_BROKERS");
  if (tenant === undefined) refuse("no tenant: set FELIX_AUTH_TENANT");
  if (token === undefined) refuse("no token: set FELIX_AUTH_TOKEN or FELIX_AUTH_TOKEN_FILE");
  return await connect({ ...options, addresses, tenant, token });
}
