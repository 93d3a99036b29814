// One broker as this client sees it: its address, its connections by kind, and what it serves.
// Connections are opened when needed, and whoever closes a broker waits until they have ended.

import type { CloseInfo } from "@felix/transport";
import type { BrokerAddress } from "../address.ts";
import type { Negotiated } from "../features.ts";
import { ClosedError, ConnectionError } from "../failure/classes.ts";
import type { ConnectionRole } from "../types.ts";
import type { ClientCore } from "./client_core.ts";
import { dial } from "./link.ts";
import type { Link } from "./link.ts";
import { LinkPool } from "./link_pool.ts";

/** What a stream is opened for. */
export type Workload = Exclude<ConnectionRole, "shared">;

/** Subscriptions from which another event connection is opened. */
const EVENT_BUSY = 64;

/** One broker. */
export class Broker {
  /** Where it is. */
  readonly address: BrokerAddress;
  /** What it serves, as last told; `null` before the first connection. */
  negotiated: Negotiated | null = null;
  /** Whether the last thing heard was that it is shutting down, or that it cannot be reached. */
  suspect = false;
  readonly #core: ClientCore;
  readonly #pools: ReadonlyMap<ConnectionRole, LinkPool>;
  readonly #closing = new AbortController();
  readonly #dials = new Set<Promise<unknown>>();
  #nextPort = 0;

  /** A broker without connections. */
  constructor(core: ClientCore, address: BrokerAddress) {
    this.#core = core;
    this.address = address;
    const { pools } = core.settings;
    const pool = (role: ConnectionRole, maximum: number, busyLoad: number): LinkPool =>
      new LinkPool({ maximum, busyLoad, dial: () => this.#dial(role) });
    this.#pools = pools.shared
      ? new Map([["shared", pool("shared", pools.sharedConnections, pools.sharedStreams)]])
      : new Map<ConnectionRole, LinkPool>([
        ["event", pool("event", pools.eventConnections, EVENT_BUSY)],
        ["cache", pool("cache", pools.cacheConnections, pools.cacheStreams)],
        ["publish", pool("publish", pools.publishConnections, Infinity)],
      ]);
  }

  /** The connections for a workload. */
  pool(workload: Workload): LinkPool {
    return this.#pools.get("shared") ?? this.#pools.get(workload)!;
  }

  /** All connections. */
  get links(): Link[] {
    return [...this.#pools.values()].flatMap((pool) => [...pool.links]);
  }

  /** Whether a connection to it is open. */
  get connected(): boolean {
    for (const pool of this.#pools.values()) if (pool.anyOpen !== undefined) return true;
    return false;
  }

  /** Any open connection, or a new one. */
  async anyLink(): Promise<Link> {
    for (const pool of this.#pools.values()) {
      const open = pool.anyOpen;
      if (open !== undefined) return open;
    }
    return await this.pool("publish").acquire();
  }

  /** Takes nothing new on its present connections. */
  retire(): void {
    for (const link of this.links) link.retire();
  }

  /** Closes everything and gives up what is being opened; resolves once it has ended. */
  async close(): Promise<void> {
    this.#closing.abort(new ClosedError({ message: "client closed", operation: "connect" }));
    const { links } = this;
    for (const link of links) link.close();
    await Promise.all([...this.#dials, ...links.map((link) => link.ended)]);
  }

  #dial(role: ConnectionRole): Promise<Link> {
    const dialling = this.#dialNow(role);
    const settled = dialling.then(() => undefined, () => undefined);
    this.#dials.add(settled);
    void settled.then(() => this.#dials.delete(settled));
    return dialling;
  }

  async #dialNow(role: ConnectionRole): Promise<Link> {
    try {
      const target = { address: this.address, port: this.#port(), role };
      const link = await dial(this.#core, { ...target, signal: this.#closing.signal }, {
        onClosed: (link, info) => this.#onClosed(link, info),
        onDistrusted: () => {
          this.suspect = true;
        },
      });
      this.negotiated = link.negotiated;
      this.suspect = false;
      return link;
    } catch (error) {
      if (error instanceof ConnectionError) this.suspect = true;
      throw error;
    }
  }

  /** Ports that the broker listens on are used in turn, on the host that was reached. */
  #port(): number {
    const more = this.negotiated?.listenerPorts ?? [];
    const ports = [this.address.port, ...more.filter((port) => port !== this.address.port)];
    return ports[this.#nextPort++ % ports.length]!;
  }

  #onClosed(link: Link, info: CloseInfo): void {
    for (const pool of this.#pools.values()) pool.remove(link);
    const { counters, hooks } = this.#core;
    counters.connections.open--;
    counters.connections.closed++;
    hooks.call("onDisconnect", {
      broker: link.broker,
      role: link.role,
      code: info.applicationCode,
      reason: info.reason,
      ...(info.by === "local" ? {} : {
        error: new ConnectionError("request", {
          message: `connection ${info.by === "lost" ? "lost" : "closed by the broker"}`,
          operation: "connect",
          broker: link.broker,
        }),
      }),
    });
    hooks.log("debug", "disconnected", {
      broker: link.broker,
      role: link.role,
      code: info.applicationCode,
      reason: info.reason,
    });
    if (info.by !== "local" && !this.connected) this.suspect = true;
  }
}
