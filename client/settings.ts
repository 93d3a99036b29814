// `ConnectOptions` checked and completed: one object that everything in a client reads. Files are
// read here, before the first packet, and so are all refusals of options.

import type { Transport } from "@felix/transport";
import { parseAddresses } from "./address.ts";
import type { BrokerAddress } from "./address.ts";
import { requireName } from "./bytes.ts";
import { InvalidArgumentError } from "./failure/classes.ts";
import { offerOf } from "./features.ts";
import type { Offer } from "./features.ts";
import type { ConnectOptions, PoolOptions } from "./options.ts";
import { resolvePolicy } from "./retry_policy.ts";
import type { ResolvedPolicy } from "./retry_policy.ts";
import { defaultTransport, readTextFile } from "./runtime/deno.ts";
import type { AckMode } from "./types.ts";

/** Pool sizes with their defaults. */
export interface PoolSettings {
  readonly shared: boolean;
  readonly eventConnections: number;
  readonly cacheConnections: number;
  readonly cacheStreams: number;
  readonly publishConnections: number;
  readonly publishStreams: number;
  readonly roundRobin: boolean;
  readonly shardStreams: number;
  readonly sharedConnections: number;
  readonly sharedStreams: number;
  readonly eager: boolean;
}

/** Everything a client needs to know about its configuration. */
export interface Settings {
  readonly addresses: readonly BrokerAddress[];
  readonly tenant: string;
  readonly namespace: string;
  readonly serverName: string | undefined;
  readonly caCerts: readonly string[];
  readonly clientCert: { readonly cert: string; readonly key: string } | undefined;
  readonly alpn: readonly string[];
  readonly discovery: boolean;
  readonly pools: PoolSettings;
  readonly policy: ResolvedPolicy;
  readonly publishQueueDepth: number;
  readonly publishInflightBytes: number;
  readonly cacheInflight: number;
  readonly eventRouterMaxPending: number;
  readonly ack: AckMode | undefined;
  readonly offer: Offer;
  readonly subscribe: NonNullable<ConnectOptions["subscribe"]>;
  readonly requestTimeoutMs: number;
  readonly dialTimeoutMs: number;
  readonly keepAliveMs: number;
  readonly idleTimeoutMs: number;
  readonly maxFrameBytes: number;
  readonly transport: Transport;
}

function refuse(message: string): never {
  throw new InvalidArgumentError({ message, operation: "connect" });
}

/** A whole number of at least `least`; @throws {InvalidArgumentError} */
function count(value: number | undefined, name: string, fallback: number, least = 1): number {
  if (value === undefined) return fallback;
  if (Number.isSafeInteger(value) && value >= least) return value;
  return refuse(`${name} must be a whole number of at least ${least}, not ${value}`);
}

function resolvePools(pools: PoolOptions = {}): PoolSettings {
  const { event, cache, publish, shared } = pools;
  const topology = pools.topology ?? "perWorkload";
  if (topology !== "perWorkload" && topology !== "shared") refuse(`no such topology: ${topology}`);
  const sharding = publish?.sharding ?? "hashStream";
  if (sharding !== "hashStream" && sharding !== "roundRobin") {
    refuse(`no such sharding: ${sharding}`);
  }
  return {
    shared: topology === "shared",
    eventConnections: count(event?.connections, "pools.event.connections", 8),
    cacheConnections: count(cache?.connections, "pools.cache.connections", 8),
    cacheStreams: count(cache?.streamsPerConnection, "pools.cache.streamsPerConnection", 4),
    publishConnections: count(publish?.connections, "pools.publish.connections", 4),
    publishStreams: count(publish?.streamsPerConnection, "pools.publish.streamsPerConnection", 2),
    roundRobin: sharding === "roundRobin",
    shardStreams: count(publish?.shardStreams, "pools.publish.shardStreams", 16, 0),
    sharedConnections: count(shared?.maxConnections, "pools.shared.maxConnections", 8),
    sharedStreams: count(shared?.streamsPerConnection, "pools.shared.streamsPerConnection", 1024),
    eager: pools.eager ?? false,
  };
}

async function resolveRoots(options: ConnectOptions): Promise<string[]> {
  const roots = [...options.tls?.caCerts ?? []];
  if (options.tls?.caFile !== undefined) roots.push(await readTextFile(options.tls.caFile));
  return roots;
}

function checkPolicy(options: ConnectOptions): ResolvedPolicy {
  const given = options.reconnect ?? {};
  count(given.attempts, "reconnect.attempts", 5);
  for (const name of ["backoffMs", "maxBackoffMs", "deadlineMs"] as const) {
    const value = given[name];
    if (value !== undefined && !(value >= 0)) refuse(`reconnect.${name} must not be negative`);
  }
  return resolvePolicy(given);
}

/**
 * Checks options and fills in defaults.
 * @throws {InvalidArgumentError} before anything was dialled
 * @throws {UnsupportedError} `runtime_unsupported`
 */
export async function resolveSettings(options: ConnectOptions): Promise<Settings> {
  const addresses = parseAddresses(options.addresses);
  const tenant = requireName(options.tenant, "tenant", "connect");
  const namespace = requireName(options.namespace ?? "default", "namespace", "connect");
  if (typeof options.token === "string") requireName(options.token, "token", "connect");
  else if (options.token === undefined) refuse("token is missing");
  const ack = options.publish?.ack;
  if (ack !== undefined && !["none", "perMessage", "perBatch"].includes(ack)) {
    refuse(`no such ack mode: ${ack}`);
  }
  const limits = options.limits ?? {};
  const checked = {
    pools: resolvePools(options.pools),
    policy: checkPolicy(options),
    publishQueueDepth: count(limits.publishQueueDepth, "limits.publishQueueDepth", 64),
    publishInflightBytes: count(
      limits.publishInflightBytes,
      "limits.publishInflightBytes",
      4 * 1024 * 1024,
    ),
    cacheInflight: count(limits.cacheInflight, "limits.cacheInflight", 1024),
    eventRouterMaxPending: count(
      limits.eventRouterMaxPending,
      "limits.eventRouterMaxPending",
      16384,
    ),
    requestTimeoutMs: count(options.requestTimeoutMs, "requestTimeoutMs", 30_000),
    dialTimeoutMs: count(options.dialTimeoutMs, "dialTimeoutMs", 5000),
    keepAliveMs: count(options.keepAliveMs, "keepAliveMs", 2000, 0),
    idleTimeoutMs: count(options.idleTimeoutMs, "idleTimeoutMs", 6000),
    maxFrameBytes: count(options.maxFrameBytes, "maxFrameBytes", 16 * 1024 * 1024, 1024),
  };
  const transport = options.transport ?? defaultTransport();
  return {
    ...checked,
    addresses,
    tenant,
    namespace,
    serverName: options.serverName,
    caCerts: await resolveRoots(options),
    clientCert: options.tls?.clientCert,
    alpn: options.tls?.offerAlpn === true ? ["felix/1"] : [],
    discovery: options.discovery ?? true,
    ack,
    offer: offerOf({
      ackOnCommit: options.publish?.ackOnCommit ?? false,
      publishers: options.publishers ?? false,
    }),
    subscribe: options.subscribe ?? {},
    transport,
  };
}
