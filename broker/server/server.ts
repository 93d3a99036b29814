// The broker as a running thing: listens, lets connections in up to the limits, and shuts down in
// order: accept nothing new, answer what was read, flush what subscribers are owed, close.

import type { Connection, IncomingConnection, Listener, Transport } from "@felix/transport";
import { StorageError } from "@felix/storage";
import { PublishPipeline } from "../core/mod.ts";
import type { Catalog } from "../catalog/catalog.ts";
import type { BrokerSettings } from "../config/settings.ts";
import type { TokenVerifier } from "../auth/grants.ts";
import type { BrokerLog } from "../log/broker_log.ts";
import { LogGate } from "../log/log_gate.ts";
import type { BrokerMetrics } from "../metrics/counters.ts";
import { ClientConnection, CLOSE_SHUTDOWN } from "./connection.ts";
import type { BrokerContext } from "./context.ts";
import { WriterPool } from "./outbox.ts";
import { QuickRequest } from "./quick_cache.ts";
import { TurnQueue } from "./turn.ts";

/** What a broker is made of. */
export interface BrokerOptions {
  readonly settings: BrokerSettings;
  readonly transport: Transport;
  /** Certificate chain and key in PEM. */
  readonly tls: { readonly cert: string; readonly key: string };
  readonly catalog: Catalog;
  readonly tokens: TokenVerifier;
  readonly log: BrokerLog;
  readonly metrics: BrokerMetrics;
}

/** A broker that serves. */
export interface RunningBroker {
  /** Bound client address as `host:port`. */
  readonly address: string;
  /** Bound client port. */
  readonly port: number;
  /**
   * Shuts down within `budgetMs` milliseconds (spec/operations.md §13): stops accepting, serves
   * open streams for up to half the budget, then closes every connection with code 0. Answers
   * what had to be cut off.
   */
  drain(budgetMs: number): Promise<{ readonly forced: readonly string[] }>;
  /** Closes at once whatever is still open. Idempotent. */
  close(): Promise<void>;
}

/** How often expired cache entries and dropped events are looked for; entries per look. */
const SWEEP_MS = 1000;
const SWEEP_ENTRIES = 1000;
/** How long a drain waits for quiet, and how long written bytes get to leave before the close. */
const QUIET_MS = 500;
const LINGER_MS = 200;
const POLL_MS = 20;
/** Deadlines of waiting publishes are looked at this often, at most. */
const DEADLINE_MS = 25;

/** Starts serving. @throws {TransportError} `bind_failed`, `bad_certificate` */
export async function startBroker(options: BrokerOptions): Promise<RunningBroker> {
  const { settings, transport, tls } = options;
  const alpn = settings.tlsRequireAlpn ? ["felix/1"] : [];
  const listen = (bind: { hostname: string; port: number }, alpn: readonly string[]) =>
    transport.listen({
      ...bind,
      ...tls,
      alpn,
      keepAliveMs: settings.keepaliveMs,
      idleTimeoutMs: settings.maxIdleTimeoutMs,
      connectionWindowBytes: settings.pubConnRecvWindow,
      streamWindowBytes: settings.pubStreamRecvWindow,
    });
  const listeners = [await listen(settings.quicBind, alpn)];
  if (settings.quicAlpnBind !== null) {
    listeners.push(await listen(settings.quicAlpnBind, ["felix/1"]));
  }
  return new BrokerServer(options, listeners);
}

class BrokerServer implements RunningBroker {
  readonly address: string;
  readonly port: number;
  readonly #options: BrokerOptions;
  readonly #listeners: readonly Listener[];
  readonly #context: BrokerContext;
  readonly #pipeline: PublishPipeline;
  readonly #connections = new Set<ClientConnection>();
  readonly #perAddress = new Map<string, number>();
  /** Failures of storage come in crowds: one line in a while says enough. */
  readonly #storageLog = new LogGate();
  readonly #sweep: ReturnType<typeof setInterval>;
  #deadline: ReturnType<typeof setTimeout> | undefined;
  #draining = false;
  /** Answers or events were on their way when the connections were closed. */
  #cutOff = false;
  #handshakes = 0;
  #subscriptionId = 0n;

  constructor(options: BrokerOptions, listeners: readonly Listener[]) {
    const { settings, metrics, catalog } = options;
    this.#options = options;
    this.#listeners = listeners;
    this.address = listeners[0]!.address;
    this.port = listeners[0]!.port;
    this.#pipeline = new PublishPipeline({
      executors: settings.pubWorkersPerConn,
      queueDepth: settings.pubQueueDepth,
      inflightBytes: settings.publishInflightBytes,
      connectionInflightBytes: settings.publishConnInflightBytes,
      ingressWait: settings.pubIngressWait,
      // A publish that is acked on enqueue is refused at once where it finds no room.
      queueWaitMs: settings.ackOnCommit ? settings.publishQueueWaitMs : 0,
      ackWaitMs: settings.ackWaitTimeoutMs,
    }, metrics.pipeline);
    this.#context = this.#makeContext();
    this.#pipeline.onRunnable = (): void => this.#context.turn.pumpLater();
    this.#pipeline.onFault = (error): void => {
      options.log.error("publish failed", { error: String(error), code: "internal" });
    };
    this.#pipeline.onStorageFailure = ({ stream, index }, failure): void => {
      const { tenant, namespace, stream: name } = stream.definition;
      const shard = `${tenant}/${namespace}/${name}/${index}`;
      this.#storageFailed("storage did not keep a publish", failure, { shard });
    };
    metrics.publish.queueDepth = (): number => this.#pipeline.queuedJobs;
    this.#sweep = setInterval(() => {
      catalog.caches.sweep(Date.now(), SWEEP_ENTRIES);
      catalog.caches.sweepLogs(Date.now(), SWEEP_ENTRIES);
      for (const client of this.#connections) client.reportDrops();
    }, SWEEP_MS);
    for (const listener of listeners) this.#accept(listener);
  }

  #makeContext(): BrokerContext {
    const pump = (): void => this.#pump();
    const { settings, catalog, tokens, log, metrics } = this.#options;
    return {
      settings,
      catalog,
      tokens,
      log,
      metrics,
      pipeline: this.#pipeline,
      turn: new TurnQueue(pump),
      writers: new WriterPool(),
      quickRequest: new QuickRequest(),
      nowMs: () => performance.now(),
      wallMs: () => Date.now(),
      pump,
      onStorageFailure: (what, error) => this.#storageFailed(what, error),
      nextSubscriptionId: () => ++this.#subscriptionId,
      draining: () => this.#draining,
      advertisedAddress: settings.clientAdvertiseAddr,
    };
  }

  #storageFailed(what: string, error: unknown, fields: Record<string, string> = {}): void {
    if (!this.#storageLog.open(performance.now())) return;
    const code = error instanceof StorageError ? error.code : "internal";
    this.#options.log.error(what, { ...fields, code, error });
  }

  #pump(): void {
    this.#pipeline.pump();
    if (this.#deadline === undefined && this.#pipeline.nextDeadline() !== null) this.#armDeadline();
  }

  /** Only while publishes wait for something: nothing here runs on the way of a publish. */
  #armDeadline(): void {
    this.#deadline = setTimeout(() => {
      this.#deadline = undefined;
      this.#pipeline.expire(performance.now());
      if (this.#pipeline.nextDeadline() !== null) this.#armDeadline();
    }, DEADLINE_MS);
  }

  async #accept(listener: Listener): Promise<void> {
    for (;;) {
      const incoming = await listener.accept();
      if (incoming === null) return;
      const { connections } = this.#options.metrics;
      const open = this.#connections.size + this.#handshakes;
      if (this.#draining || open >= this.#options.settings.maxClientConnections) {
        connections.refusedLimit++;
        incoming.refuse();
      } else this.#admit(incoming);
    }
  }

  async #admit(incoming: IncomingConnection): Promise<void> {
    const { metrics, log } = this.#options;
    this.#handshakes++;
    let connection: Connection | null = null;
    try {
      connection = await incoming.accept();
    } catch (error) {
      metrics.connections.handshakeFailures++;
      log.debug("handshake failed", { error: String(error) });
    }
    this.#handshakes--;
    if (connection !== null) await this.#serve(connection);
  }

  async #serve(connection: Connection): Promise<void> {
    const { metrics, settings } = this.#options;
    const address = hostOf(connection.remoteAddress);
    const same = this.#perAddress.get(address) ?? 0;
    if (settings.maxConnectionsPerIp > 0 && same >= settings.maxConnectionsPerIp) {
      metrics.connections.refusedPerIp++;
      connection.close(CLOSE_SHUTDOWN, "too many connections from this address");
      return;
    }
    this.#perAddress.set(address, same + 1);
    const client = new ClientConnection(this.#context, connection);
    this.#connections.add(client);
    metrics.connections.accepted++;
    metrics.connections.open++;
    await client.run();
    metrics.connections.open--;
    this.#connections.delete(client);
    const left = this.#perAddress.get(address)! - 1;
    if (left === 0) this.#perAddress.delete(address);
    else this.#perAddress.set(address, left);
  }

  async drain(budgetMs: number): Promise<{ readonly forced: readonly string[] }> {
    const started = performance.now();
    this.#draining = true;
    for (const listener of this.#listeners) listener.stopAccepting();
    const serveUntil = started + Math.max(1000, budgetMs / 2);
    await this.#quiet(serveUntil);
    for (const client of this.#connections) client.stopReading();
    await this.#quiet(Math.max(serveUntil, started + budgetMs - LINGER_MS));
    if (this.#connections.size > 0) await sleep(LINGER_MS);
    await this.close();
    return { forced: this.#cutOff ? ["connections"] : [] };
  }

  /** Waits until nothing has come in or been under way for a moment, or until `deadline`. */
  async #quiet(deadline: number): Promise<void> {
    const { wire } = this.#options.metrics;
    let quietSince = performance.now();
    let reads = wire.reads;
    while (performance.now() < deadline && this.#connections.size > 0) {
      const now = performance.now();
      if (wire.reads !== reads) quietSince = now;
      reads = wire.reads;
      for (const client of this.#connections) if (client.busy) quietSince = now;
      if (now - quietSince >= QUIET_MS) return;
      await sleep(POLL_MS);
    }
  }

  async close(): Promise<void> {
    this.#draining = true;
    clearInterval(this.#sweep);
    clearTimeout(this.#deadline);
    const reason = "broker shutting down";
    this.#cutOff ||= [...this.#connections].some((client) => client.busy);
    for (const client of this.#connections) client.close(CLOSE_SHUTDOWN, reason);
    for (const listener of this.#listeners) await listener.close(CLOSE_SHUTDOWN, reason);
  }
}

function hostOf(address: string): string {
  const host = address.slice(0, address.lastIndexOf(":"));
  return host.startsWith("[::ffff:") ? host.slice(8, -1) : host;
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
