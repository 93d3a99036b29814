// From command line, environment and file to one validated `BrokerSettings`.
// Nothing is bound, opened or started here; files are reached through what the caller hands in.

import { parseArguments } from "./arguments.ts";
import type { Mode } from "./arguments.ts";
import { checkCombinations, combinationWarnings } from "./combinations.ts";
import { ConfigError } from "./config_error.ts";
import { TEST_ONLY_NAMES } from "./known_names.ts";
import { resolveSettings } from "./resolve.ts";
import type { ResolvedSettings } from "./resolve.ts";
import type { FsyncMode } from "@felix/storage";
import type { BrokerSettings, LogFormat, QueuePolicy } from "./settings.ts";
import { unknownVariables } from "./suggestions.ts";
import type { UnknownVariable } from "./suggestions.ts";
import { parseSettingsFile } from "./yaml_file.ts";
import type { FileSettings } from "./yaml_file.ts";

/** File that is read when none is named, if it is there. */
export const DEFAULT_CONFIG_PATH = "/usr/local/felix/config.yml";

/** What loading needs from outside. */
export interface LoadInput {
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** The text of a file, or `null` if there is none; other failures are thrown. */
  readFile(path: string): string | null;
}

/** Settings ready to run with. */
export interface LoadedConfig {
  readonly mode: Mode;
  readonly settings: BrokerSettings;
  /** Every setting with its source. */
  readonly resolved: ResolvedSettings;
  /** The file that was read; `null`: none. */
  readonly configPath: string | null;
  /** Variables that nothing reads. */
  readonly unknown: readonly UnknownVariable[];
  /** Further lines for an operator. */
  readonly warnings: readonly string[];
  /** Settings that are set and not applied: this runtime has no such lever. */
  readonly notApplied: readonly string[];
  /** Settings that are set and whose feature is not in this build. */
  readonly absent: readonly string[];
}

/** What a command line asks for: settings, or just a text. */
export type LoadOutcome = LoadedConfig | { readonly mode: "help" | "version" };

/** @throws {ConfigError} whatever is wrong first */
export function loadConfig(input: LoadInput): LoadOutcome {
  const args = parseArguments(input.args);
  if (args.mode === "help" || args.mode === "version") return { mode: args.mode };
  const { path, file } = readConfigFile(args.configPath, input);
  const resolved = resolveSettings({ sets: args.sets, env: input.env, file });
  checkCombinations(resolved);
  const warnings = combinationWarnings(resolved);
  for (const key of file?.deprecated ?? []) warnings.push(`${path}: ${key} is an old key; drop it`);
  for (const name of TEST_ONLY_NAMES) {
    if ((input.env[name] ?? "") !== "") warnings.push(`${name} is set, which only tests should do`);
  }
  return {
    mode: args.mode,
    settings: toBrokerSettings(resolved),
    resolved,
    configPath: path,
    unknown: unknownVariables(Object.keys(input.env).filter((name) => input.env[name] !== "")),
    warnings,
    notApplied: withoutEffect(resolved, "accepted"),
    absent: withoutEffect(resolved, "absent"),
  };
}

function readConfigFile(
  flag: string | null,
  input: LoadInput,
): { path: string | null; file: FileSettings | null } {
  const variable = input.env["FELIX_BROKER_CONFIG"] ?? "";
  const path = flag ?? (variable === "" ? DEFAULT_CONFIG_PATH : variable);
  let text: string | null;
  try {
    text = input.readFile(path);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new ConfigError("bad_file", `${path}: cannot be read: ${reason}`, { cause: error });
  }
  if (text !== null) return { path, file: parseSettingsFile(path, text) };
  if (flag === null && variable === "") return { path: null, file: null };
  const from = flag === null ? "FELIX_BROKER_CONFIG" : "--config";
  throw new ConfigError("bad_file", `${from}: there is no file ${path}`);
}

function withoutEffect(resolved: ResolvedSettings, effect: "accepted" | "absent"): string[] {
  const names: string[] = [];
  for (const { setting, source } of resolved.all.values()) {
    if (setting.effect === effect && source !== "default") names.push(setting.name);
  }
  return names;
}

function toBrokerSettings(values: ResolvedSettings): BrokerSettings {
  return {
    quicBind: values.address("FELIX_QUIC_BIND"),
    quicAlpnBind: values.addressOrNull("FELIX_QUIC_ALPN_BIND"),
    quicEngine: values.text("FELIX_QUIC_ENGINE") as "native" | "quiche",
    tlsCert: values.textOrNull("FELIX_TLS_CERT"),
    tlsKey: values.textOrNull("FELIX_TLS_KEY"),
    tlsRequireCert: values.boolean("FELIX_TLS_REQUIRE_CERT"),
    tlsCertExport: values.textOrNull("FELIX_TLS_CERT_EXPORT"),
    tlsRequireAlpn: values.boolean("FELIX_TLS_REQUIRE_ALPN"),
    metricsBind: values.address("FELIX_BROKER_METRICS_BIND"),
    controlplaneUrl: values.textOrNull("FELIX_CONTROLPLANE_URL"),
    controlplaneCa: values.textOrNull("FELIX_CONTROLPLANE_CA"),
    jwksFile: values.textOrNull("FELIX_JWKS_FILE"),
    jwksUrl: values.textOrNull("FELIX_JWKS_URL"),
    jwksStaleMaxSeconds: values.number("FELIX_JWKS_STALE_MAX_SECONDS"),
    catalogFile: values.textOrNull("FELIX_CATALOG_FILE"),
    clientAdvertiseAddr: values.textOrNull("FELIX_CLIENT_ADVERTISE_ADDR"),
    regionId: values.text("FELIX_REGION_ID"),
    pubWorkersPerConn: values.number("FELIX_BROKER_PUB_WORKERS_PER_CONN"),
    pubQueueDepth: values.number("FELIX_BROKER_PUB_QUEUE_DEPTH"),
    publishInflightBytes: values.number("FELIX_BROKER_PUBLISH_INFLIGHT_BYTES"),
    publishConnInflightBytes: values.number("FELIX_BROKER_PUBLISH_CONN_INFLIGHT_BYTES"),
    publishWindow: values.number("FELIX_BROKER_PUBLISH_WINDOW"),
    pubIngressWait: values.boolean("FELIX_PUB_INGRESS_WAIT"),
    publishQueueWaitMs: values.number("FELIX_PUBLISH_QUEUE_WAIT_MS"),
    ackOnCommit: values.boolean("FELIX_ACK_ON_COMMIT"),
    ackWaitTimeoutMs: values.number("FELIX_ACK_WAIT_TIMEOUT_MS"),
    maxFrameBytes: values.number("FELIX_MAX_FRAME_BYTES"),
    preauthMaxFrameBytes: values.number("FELIX_PREAUTH_MAX_FRAME_BYTES"),
    preauthMaxStreamsPerConn: values.number("FELIX_PREAUTH_MAX_STREAMS_PER_CONN"),
    authTimeoutMs: values.number("FELIX_AUTH_TIMEOUT_MS"),
    maxClientConnections: values.number("FELIX_MAX_CLIENT_CONNECTIONS"),
    maxConnectionsPerIp: values.number("FELIX_MAX_CONNECTIONS_PER_IP"),
    maxSubscriptionsPerConn: values.number("FELIX_MAX_SUBSCRIPTIONS_PER_CONN"),
    tenantMetricsMax: values.number("FELIX_TENANT_METRICS_MAX"),
    ...deliverySettings(values),
    ...storageSettings(values),
    pubConnRecvWindow: values.number("FELIX_BROKER_PUB_CONN_RECV_WINDOW"),
    pubStreamRecvWindow: values.number("FELIX_BROKER_PUB_STREAM_RECV_WINDOW"),
    keepaliveMs: values.number("FELIX_KEEPALIVE_MS"),
    maxIdleTimeoutMs: values.number("FELIX_MAX_IDLE_TIMEOUT_MS"),
    shutdownDrainTimeoutMs: values.number("FELIX_SHUTDOWN_DRAIN_TIMEOUT_MS"),
    shutdownPredrainMs: values.number("FELIX_SHUTDOWN_PREDRAIN_MS"),
    log: values.text("FELIX_LOG"),
    logFormat: values.textOrNull("FELIX_LOG_FORMAT") as LogFormat | null,
    devFile: values.textOrNull("FELIX_DEV_FILE"),
    devInfo: values.textOrNull("FELIX_DEV_INFO"),
    stopWithStdin: values.boolean("FELIX_STOP_WITH_STDIN"),
  };
}

type DeliveryMember =
  | `eventBatch${string}`
  | `sub${string}`
  | `stream${string}`
  | "cacheMemoryBytes";

function deliverySettings(
  values: ResolvedSettings,
): Pick<BrokerSettings, Extract<keyof BrokerSettings, DeliveryMember>> {
  return {
    eventBatchMaxEvents: values.number("FELIX_EVENT_BATCH_MAX_EVENTS"),
    eventBatchMaxBytes: values.number("FELIX_EVENT_BATCH_MAX_BYTES"),
    eventBatchMaxDelayUs: values.number("FELIX_EVENT_BATCH_MAX_DELAY_US"),
    subscriberQueueCapacity: values.number("FELIX_SUBSCRIBER_QUEUE_CAPACITY"),
    subscriberQueueCapacityMax: values.number("FELIX_SUBSCRIBER_QUEUE_CAPACITY_MAX"),
    subscriberQueueBytes: values.number("FELIX_SUBSCRIBER_QUEUE_BYTES"),
    subQueuePolicy: values.text("FELIX_SUB_QUEUE_POLICY") as QueuePolicy,
    subFlushMaxItems: values.number("FELIX_SUB_FLUSH_MAX_ITEMS"),
    subMaxBytesPerWrite: values.number("FELIX_SUB_MAX_BYTES_PER_WRITE"),
    streamRingRecords: values.number("FELIX_STREAM_RING_RECORDS"),
    streamRingBytes: values.number("FELIX_STREAM_RING_BYTES"),
    cacheMemoryBytes: values.number("FELIX_CACHE_MEMORY_BYTES"),
  };
}

function storageSettings(values: ResolvedSettings) {
  return {
    durableStorageDir: values.textOrNull("FELIX_DURABLE_STORAGE_DIR"),
    fsyncMode: values.text("FELIX_DURABLE_FSYNC_MODE") as FsyncMode,
    fsyncIntervalMs: values.number("FELIX_DURABLE_FSYNC_INTERVAL_MS"),
    segmentBytes: values.number("FELIX_DURABLE_SEGMENT_BYTES"),
    retentionBytes: values.numberOrNull("FELIX_DURABLE_RETENTION_BYTES"),
    retentionSeconds: values.numberOrNull("FELIX_DURABLE_RETENTION_SECONDS"),
    retentionIntervalSeconds: values.number("FELIX_DURABLE_RETENTION_INTERVAL_SECONDS"),
    indexSpacingBytes: values.number("FELIX_DURABLE_INDEX_SPACING_BYTES"),
    maxRecordsPerRead: values.number("FELIX_DURABLE_MAX_RECORDS_PER_READ"),
    verifyAllOnOpen: values.boolean("FELIX_DURABLE_VERIFY_ALL_ON_OPEN"),
    compactionBytesPerSecond: values.number("FELIX_STORAGE_COMPACTION_BYTES_PER_SEC"),
    repairChecksumTail: values.boolean("FELIX_DURABLE_REPAIR_CHECKSUM_TAIL"),
  };
}
