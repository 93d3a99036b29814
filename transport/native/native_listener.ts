// A listening socket of the built-in engine. Rules: nothing of an incoming connection is read
// before it is accepted (its address would break it); `accept` never rejects and ends with `null`
// as soon as accepting stops, although the engine's own call stays pending until the socket closes.

import { messageOf } from "../ended.ts";
import { formatAddress } from "../address.ts";
import {
  type Connection,
  type IncomingConnection,
  type Listener,
  TransportError,
} from "../transport.ts";
import { NativeConnection } from "./native_connection.ts";

/** Milliseconds for CONNECTION_CLOSE packets to leave before `close` lets a process exit. */
const CLOSE_GRACE_MS = 20;

/** A listening socket of the built-in engine. */
export class NativeListener implements Listener {
  readonly address: string;
  readonly port: number;
  readonly #endpoint: Deno.QuicEndpoint;
  readonly #listener: Deno.QuicListener;
  readonly #connections = new Set<Connection>();
  readonly #waiting = new Set<(incoming: IncomingConnection | null) => void>();
  #stopped = false;
  #closing: Promise<void> | null = null;

  constructor(endpoint: Deno.QuicEndpoint, listener: Deno.QuicListener) {
    this.#endpoint = endpoint;
    this.#listener = listener;
    const { hostname, port } = endpoint.addr;
    this.address = formatAddress(hostname, port);
    this.port = port;
  }

  accept(): Promise<IncomingConnection | null> {
    if (this.#stopped) return Promise.resolve(null);
    return new Promise((resolve) => {
      this.#waiting.add(resolve);
      this.#listener.incoming().then(
        (incoming) => {
          if (!this.#waiting.delete(resolve)) return incoming.refuse(); // stopped meanwhile
          resolve({
            accept: () => this.#complete(incoming),
            refuse: () => refuse(incoming),
          });
        },
        () => {
          this.#waiting.delete(resolve);
          resolve(null);
        },
      );
    });
  }

  stopAccepting(): void {
    if (this.#stopped) return;
    this.#stopped = true;
    this.#listener.stop();
    for (const resolve of this.#waiting) resolve(null);
    this.#waiting.clear();
  }

  close(applicationCode = 0, reason = ""): Promise<void> {
    this.#closing ??= this.#close(applicationCode, reason);
    return this.#closing;
  }

  async #close(applicationCode: number, reason: string): Promise<void> {
    this.stopAccepting();
    const open = [...this.#connections];
    for (const connection of open) connection.close(applicationCode, reason);
    this.#endpoint.close({ closeCode: applicationCode, reason });
    await Promise.all(open.map((connection) => connection.closed));
    await new Promise((resolve) => setTimeout(resolve, CLOSE_GRACE_MS));
  }

  async #complete(incoming: Deno.QuicIncoming): Promise<Connection> {
    let quic: Deno.QuicConn;
    try {
      quic = await incoming.accept();
    } catch (error) {
      throw new TransportError("handshake_failed", messageOf(error), 0, { cause: error });
    }
    const connection = new NativeConnection(quic);
    this.#connections.add(connection);
    void connection.closed.then(() => this.#connections.delete(connection));
    return connection;
  }
}

function refuse(incoming: Deno.QuicIncoming): void {
  try {
    incoming.refuse();
  } catch {
    // answered before, or the socket is closed: nothing is left to refuse
  }
}
