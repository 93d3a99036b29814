// One broker process from its settings to its exit code: certificate, keys, catalog, probes,
// listener, then signals until it is told to stop. Everything that it started, it stops.

import { nativeTransport, quicheTransport, TransportError } from "@felix/transport";
import type { Transport } from "@felix/transport";
import { Pace, StorageError, ValueMemory } from "@felix/storage";
import type { CacheEnvironment, LogStore, RetentionPolicy } from "@felix/storage";
import { createTokenVerifier } from "../auth/token_verifier.ts";
import { FileCatalog } from "../catalog/catalog.ts";
import { formatAddress } from "../config/setting.ts";
import type { BrokerSettings } from "../config/settings.ts";
import type { BrokerLog } from "../log/broker_log.ts";
import { createBrokerMetrics } from "../metrics/counters.ts";
import type { BrokerMetrics } from "../metrics/counters.ts";
import { createExporter } from "../metrics/exporter.ts";
import { measureLoopLag } from "../metrics/loop_lag.ts";
import { startProbeServer } from "../metrics/probe_server.ts";
import type { ProbeServer, ProbeState } from "../metrics/probe_server.ts";
import { startBroker } from "../server/server.ts";
import type { RunningBroker } from "../server/server.ts";
import { applyCatalog, reloadCatalog } from "./catalog_reload.ts";
import { describeRunning, forgetRunning } from "./dev_file.ts";
import { keyFile } from "./files.ts";
import type { Prepared } from "./prepare.ts";
import { beginShutdown, interruptibleSleep } from "./shutdown.ts";
import type { Shutdown } from "./shutdown.ts";
import { onSignals, onStdinEnd } from "./stop_signals.ts";
import { watchCertificate } from "./certificate_watch.ts";
import { generateTlsIdentity } from "./tls_identity.ts";
import { openStorage } from "./storage.ts";
import { COMMIT, VERSION } from "./version.ts";

/** Exit codes (spec/operations.md §7). */
export const EXIT = { clean: 0, failed: 1, configuration: 2, internal: 70 } as const;

/** Runs until told to stop; resolves with the exit code. */
export async function runBroker(
  settings: BrokerSettings,
  prepared: Prepared,
  log: BrokerLog,
): Promise<number> {
  const metrics = createBrokerMetrics({ tenantMetricsMax: settings.tenantMetricsMax });
  const { durableStorageDir } = settings;
  const storage = durableStorageDir === null
    ? null
    : await openStorage(settings, durableStorageDir, log);
  if (storage === null && durableStorageDir !== null) return EXIT.failed;
  const store = storage?.store ?? null;
  const catalog = makeCatalog(settings, store, metrics, log);
  const code = await serve(settings, prepared, { catalog, store }, metrics, log);
  await catalog.close();
  const closed = storage === null || await storage.close();
  if (code === EXIT.clean) log.info("broker stopped");
  return closed ? code : EXIT.failed;
}

async function serve(
  settings: BrokerSettings,
  prepared: Prepared,
  { catalog, store }: { readonly catalog: FileCatalog; readonly store: LogStore | null },
  metrics: BrokerMetrics,
  log: BrokerLog,
): Promise<number> {
  const state: ProbeState = { ready: "starting" };
  if (prepared.catalog !== null) await applyCatalog(catalog, prepared.catalog, log);
  const probes = bindProbes(settings, metrics, { catalog, store }, state, log);
  if (probes === null) return EXIT.failed;
  const stopLag = measureLoopLag(metrics.process.eventLoopLag);
  const broker = await bindBroker(settings, prepared, catalog, metrics, log);
  if (broker === null) {
    stopLag();
    await probes.close();
    return EXIT.failed;
  }
  const stopWatching = watchCertificate(settings, log);
  state.ready = "ready";
  metrics.process.ready = 1;
  describeRunning(settings, broker, probes, log);
  log.info("broker started", {
    version: VERSION,
    storage: store === null ? "memory" : "durable",
    region: settings.regionId,
    addr: broker.address,
    metrics: probes.address,
  });
  await stopped(settings, broker, catalog, { state, metrics, log });
  forgetRunning(settings);
  stopWatching();
  stopLag();
  await probes.close();
  return EXIT.clean;
}

function makeCatalog(
  settings: BrokerSettings,
  store: LogStore | null,
  metrics: BrokerMetrics,
  log: BrokerLog,
): FileCatalog {
  return new FileCatalog({
    store,
    retention: retentionOf(settings),
    streams: {
      ringRecords: settings.streamRingRecords,
      ringBytes: settings.streamRingBytes,
      encodeStats: metrics.encodes,
      deliveryCounters: metrics.delivery,
    },
    cacheMemoryBytes: settings.cacheMemoryBytes,
    cacheEnvironment: cacheEnvironment(settings, log),
  });
}

function retentionOf({ retentionBytes, retentionSeconds }: BrokerSettings): RetentionPolicy {
  return {
    ...(retentionBytes === null ? {} : { maxBytes: retentionBytes }),
    ...(retentionSeconds === null ? {} : { maxAgeMicros: retentionSeconds * 1_000_000 }),
  };
}

function cacheEnvironment(settings: BrokerSettings, log: BrokerLog): CacheEnvironment {
  const pace = new Pace(
    settings.compactionBytesPerSecond,
    () => performance.now(),
    interruptibleSleep,
  );
  return {
    values: new ValueMemory(settings.cacheMemoryBytes),
    pace,
    nowMs: () => Date.now(),
    onCompactionFailed: (shard, error) => {
      const code = error instanceof StorageError ? error.code : "internal";
      log.error("a compaction failed; it is tried again", { shard, code, error });
    },
  };
}

function bindProbes(
  settings: BrokerSettings,
  metrics: BrokerMetrics,
  { catalog, store }: { readonly catalog: FileCatalog; readonly store: LogStore | null },
  state: ProbeState,
  log: BrokerLog,
): ProbeServer | null {
  const exporter = createExporter(metrics, {
    version: VERSION,
    commit: COMMIT,
    startedSeconds: Date.now() / 1000,
    memory: () => Deno.memoryUsage(),
    caches: catalog.caches.memory,
    store,
  });
  try {
    const probes = startProbeServer({ ...settings.metricsBind, ...exporter, state });
    log.child("metrics").info("metrics listener started", { addr: probes.address });
    return probes;
  } catch (error) {
    log.error("metrics listener cannot be bound", {
      addr: formatAddress(settings.metricsBind),
      setting: "FELIX_BROKER_METRICS_BIND",
      code: "bind_failed",
      error,
    });
    return null;
  }
}

async function bindBroker(
  settings: BrokerSettings,
  prepared: Prepared,
  catalog: FileCatalog,
  metrics: BrokerMetrics,
  log: BrokerLog,
): Promise<RunningBroker | null> {
  const tls = prepared.tls ?? await generateTlsIdentity(settings);
  if (tls.generated) {
    log.warn("using a generated self-signed certificate", {
      export: settings.tlsCertExport ?? "none; set FELIX_TLS_CERT_EXPORT for clients to trust it",
    });
  }
  const { keyServerCa } = prepared;
  const client = keyServerCa === null ? undefined : Deno.createHttpClient({
    caCerts: [keyServerCa],
  });
  const tokens = createTokenVerifier({
    source: prepared.keySource,
    clock: { wallMs: () => Date.now(), monotonicMs: () => performance.now() },
    file: keyFile,
    fetch: client === undefined
      ? fetch
      : (input: RequestInfo | URL, init?: RequestInit) => fetch(input, { ...init, client }),
    log: log.child("auth"),
    metrics: metrics.auth,
    ...(prepared.catalog === null ? {} : {
      tenantExists: (tenant: string) => catalog.tenants.has(tenant),
    }),
  });
  const transport: Transport = settings.quicEngine === "quiche" ? quicheTransport : nativeTransport;
  try {
    const broker = await startBroker({ settings, transport, tls, catalog, tokens, log, metrics });
    log.info("quic listener started", {
      addr: broker.address,
      listeners: settings.quicAlpnBind === null ? 1 : 2,
      engine: transport.name,
    });
    return broker;
  } catch (error) {
    if (!(error instanceof TransportError)) throw error;
    log.error("quic listener cannot be started", {
      addr: formatAddress(settings.quicBind),
      setting: "FELIX_QUIC_BIND",
      code: error.code,
      error,
    });
    return null;
  }
}

interface RunningParts {
  readonly state: ProbeState;
  readonly metrics: BrokerMetrics;
  readonly log: BrokerLog;
}

/** Resolves when the broker has been told to stop and has drained. */
async function stopped(
  settings: BrokerSettings,
  broker: RunningBroker,
  catalog: FileCatalog,
  { state, metrics, log }: RunningParts,
): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<Shutdown>();
  let shutdown: Shutdown | null = null;
  const stop = (cause: string): void => {
    if (shutdown !== null) {
      log.warn("second stop request; cutting the waits short", { reason: cause });
      return shutdown.hurry();
    }
    shutdown = beginShutdown(cause, {
      predrainMs: settings.shutdownPredrainMs,
      drainMs: settings.shutdownDrainTimeoutMs,
      state,
      metrics: metrics.process,
      log,
      drain: (budgetMs) => broker.drain(budgetMs),
      close: () => broker.close(),
      nowMs: () => performance.now(),
      sleep: interruptibleSleep,
    });
    resolve(shutdown);
  };
  let reloading = Promise.resolve();
  const ignore = onSignals({
    stop,
    reload: () => {
      reloading = reloading.then(() => reloadCatalog(settings.catalogFile, catalog, log));
    },
  });
  if (settings.stopWithStdin) onStdinEnd(() => stop("standard input ended"));
  await (await promise).done;
  ignore();
}
