// The brokers that this client knows and which of them is the entry, the one that requests for no
// particular shard go to. The rule: seeds are never forgotten, everything else is what the entry
// last told; and after a failure the other brokers are tried before the one that failed
// (spec/client.md §12.1, §12.2).

import { parseToldAddress } from "../address.ts";
import type { BrokerAddress } from "../address.ts";
import { AuthError, ClosedError, ConnectionError } from "../failure/classes.ts";
import { FelixError } from "../failure/felix_error.ts";
import type { BrokerInfo, ConnectionInfo } from "../types.ts";
import { Broker } from "./broker.ts";
import type { ClientCore } from "./client_core.ts";

/** The brokers of one client. */
export class Fleet {
  readonly #core: ClientCore;
  readonly #seeds: readonly BrokerAddress[];
  readonly #brokers = new Map<string, Broker>();
  readonly #onEntryChanged: (entry: Broker) => void;
  #discovered: readonly BrokerInfo[] = [];
  #entry: Broker;

  /** Knows the seeds; `onEntryChanged` is told about every connection to a new entry. */
  constructor(core: ClientCore, onEntryChanged: (entry: Broker) => void) {
    this.#core = core;
    this.#seeds = core.settings.addresses;
    this.#onEntryChanged = onEntryChanged;
    this.#entry = this.broker(this.#seeds[0]!);
  }

  /** The entry broker, connected or not. */
  get entry(): Broker {
    return this.#entry;
  }

  /** Brokers that were told by the entry. */
  get discovered(): readonly BrokerInfo[] {
    return this.#discovered;
  }

  /** All connections. */
  connections(): ConnectionInfo[] {
    return [...this.#brokers.values()].flatMap((broker) => broker.links.map((link) => link.info()));
  }

  /** All brokers that a connection was opened to or tried. */
  get brokers(): IterableIterator<Broker> {
    return this.#brokers.values();
  }

  /** Addresses that a client may use: discovered ones and seeds. */
  endpoints(): BrokerAddress[] {
    const all = new Map<string, BrokerAddress>();
    for (const { addr } of this.#discovered) {
      const address = parseToldAddress(addr);
      if (address !== null) all.set(address.text, address);
    }
    for (const seed of this.#seeds) all.set(seed.text, seed);
    return [...all.values()];
  }

  /** Replaces what was discovered. */
  discover(brokers: readonly BrokerInfo[]): void {
    this.#discovered = brokers;
  }

  /** Address of a node by name; `null` when it is not known. */
  addressOfNode(nodeId: string): BrokerAddress | null {
    const found = this.#discovered.find((info) => info.nodeId === nodeId);
    return parseToldAddress(found?.addr);
  }

  /** The broker at an address. */
  broker(address: BrokerAddress): Broker {
    let broker = this.#brokers.get(address.text);
    if (broker === undefined) {
      broker = new Broker(this.#core, address);
      this.#brokers.set(address.text, broker);
    }
    return broker;
  }

  /**
   * A connected entry broker. Tries the present one first unless it is suspect, then the others.
   * @throws {AuthError} a token was refused; no further broker is tried
   * @throws {ConnectionError} nobody could be reached
   */
  async reach(): Promise<Broker> {
    if (this.#entry.connected && !this.#entry.suspect) return this.#entry;
    let last: unknown;
    for (const broker of this.#order()) {
      if (this.#core.closed) throw this.#closed();
      try {
        if (!broker.connected) await broker.anyLink();
        this.#becomeEntry(broker);
        return broker;
      } catch (error) {
        if (error instanceof AuthError) throw error;
        last = error;
      }
    }
    if (last instanceof FelixError) throw last;
    throw new ConnectionError("dial", {
      message: "no broker could be reached",
      operation: "connect",
      cause: last,
    });
  }

  /** Closes all connections; resolves once they have ended. */
  async close(): Promise<void> {
    await Promise.all([...this.#brokers.values()].map((broker) => broker.close()));
  }

  #order(): Broker[] {
    const entry = this.#entry;
    const others = this.endpoints().map((address) => this.broker(address))
      .filter((broker) => broker !== entry);
    if (!entry.suspect) return [entry, ...others];
    for (let at = others.length - 1; at > 0; at--) {
      const with_ = Math.floor(this.#core.random() * (at + 1));
      [others[at], others[with_]] = [others[with_]!, others[at]!];
    }
    return [...others, entry];
  }

  #becomeEntry(broker: Broker): void {
    broker.suspect = false;
    this.#entry = broker;
    this.#onEntryChanged(broker);
  }

  #closed(): ClosedError {
    return new ClosedError({ message: "client closed", operation: "connect" });
  }
}
