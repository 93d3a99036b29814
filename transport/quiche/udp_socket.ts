// UDP under the quiche engine, in two ways: `Deno.listenDatagram` where the runtime has it (needs
// `--unstable-net`; several times cheaper per packet), `node:dgram` elsewhere. Rules: what a packet
// is built in is never reused while a send may still read it; a send that fails is a lost packet,
// which QUIC repairs, and never an error of the socket.

import { Buffer } from "node:buffer";
import { setImmediate } from "node:timers";
import { createSocket, type Socket } from "node:dgram";
import { messageOf } from "../ended.ts";
import { formatAddress } from "../address.ts";
import { TransportError } from "../transport.ts";
import type { Host } from "./binding.ts";
import { MAX_SEND_BYTES } from "./configuration.ts";

/** Called for every datagram; `datagram` is only valid during the call, and may be written to. */
export type OnDatagram = (datagram: Uint8Array, from: Host) => void;

/** A bound UDP socket. */
export interface UdpSocket {
  readonly local: Host;
  /** Room for the next packet, at least `MAX_SEND_BYTES`. */
  space(): Uint8Array;
  /** Sends the first `length` bytes of what `space` returned last. */
  send(length: number, to: Host): void;
  /** Releases the socket. Idempotent. */
  close(): void;
}

/** Binds a socket. @throws {TransportError} `bind_failed` */
export type BindUdp = (hostname: string, port: number, on: OnDatagram) => Promise<UdpSocket>;

const SLAB_BYTES = 64 * 1024;
const DATAGRAM_BYTES = 64 * 1024;

/** The better of the two. */
export const bindUdp: BindUdp = (hostname, port, on) =>
  typeof Deno.listenDatagram === "function"
    ? bindDenoUdp(hostname, port, on)
    : bindNodeUdp(hostname, port, on);

/** A socket of `Deno.listenDatagram`. */
// deno-lint-ignore require-await -- failures must reject, not throw
export const bindDenoUdp: BindUdp = async (hostname, port, on) => {
  try {
    return new DenoUdpSocket(Deno.listenDatagram({ transport: "udp", hostname, port }), on);
  } catch (error) {
    throw bindError(hostname, port, error);
  }
};

/** A socket of `node:dgram`. */
export const bindNodeUdp: BindUdp = (hostname, port, on) => {
  const family = hostname.includes(":") ? 6 : 4;
  const socket = createSocket({
    type: family === 6 ? "udp6" : "udp4",
    // Only literals come here, so that no packet waits for a resolver.
    lookup: (host, _options, callback) => callback(null, host, family),
  });
  return new Promise((resolve, reject) => {
    socket.once("error", (error) => {
      socket.close();
      reject(bindError(hostname, port, error));
    });
    socket.bind(port, hostname, () => {
      socket.removeAllListeners("error");
      resolve(new NodeUdpSocket(socket, on));
    });
  });
};

/** Packets are cut from a slab that is left to the garbage collector when it is used up. */
class PacketSlab {
  #slab = Buffer.allocUnsafeSlow(SLAB_BYTES);
  #at = 0;

  space(): Buffer {
    if (this.#at + MAX_SEND_BYTES > SLAB_BYTES) {
      this.#slab = Buffer.allocUnsafeSlow(SLAB_BYTES);
      this.#at = 0;
    }
    return this.#slab.subarray(this.#at, this.#at + MAX_SEND_BYTES);
  }

  take(length: number): Buffer {
    const packet = this.#slab.subarray(this.#at, this.#at + length);
    this.#at += length;
    return packet;
  }
}

class DenoUdpSocket implements UdpSocket {
  readonly local: Host;
  readonly #socket: Deno.DatagramConn;
  readonly #slab = new PacketSlab();
  #closed = false;

  constructor(socket: Deno.DatagramConn, on: OnDatagram) {
    this.#socket = socket;
    const { hostname, port } = socket.addr as Deno.NetAddr;
    this.local = { host: hostname, port };
    void this.#receive(on);
  }

  space(): Uint8Array {
    return this.#slab.space();
  }

  send(length: number, to: Host): void {
    if (this.#closed) return;
    this.#socket.send(this.#slab.take(length), {
      transport: "udp",
      hostname: to.host,
      port: to.port,
    }).catch(ignore);
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#socket.close();
  }

  async #receive(on: OnDatagram): Promise<void> {
    const buffer = new Uint8Array(DATAGRAM_BYTES);
    while (!this.#closed) {
      try {
        const [datagram, from] = await this.#socket.receive(buffer);
        const { hostname, port } = from as Deno.NetAddr;
        on(datagram, { host: hostname, port });
      } catch (error) {
        // An ICMP answer to one of our packets surfaces here; only the end of the socket ends us.
        if (error instanceof Deno.errors.BadResource) return;
        if (error instanceof Deno.errors.Interrupted) return;
        await new Promise((resolve) => setImmediate(resolve));
      }
    }
  }
}

class NodeUdpSocket implements UdpSocket {
  readonly local: Host;
  readonly #socket: Socket;
  readonly #slab = new PacketSlab();
  #closed = false;

  constructor(socket: Socket, on: OnDatagram) {
    this.#socket = socket;
    const { address, port } = socket.address();
    this.local = { host: address, port };
    socket.on("error", ignore);
    socket.on("message", (datagram, { address, port }) => on(datagram, { host: address, port }));
  }

  space(): Uint8Array {
    return this.#slab.space();
  }

  send(length: number, to: Host): void {
    if (!this.#closed) this.#socket.send(this.#slab.take(length), to.port, to.host, ignore);
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#socket.close();
  }
}

function bindError(hostname: string, port: number, error: unknown): TransportError {
  const message = `${formatAddress(hostname, port)}: ${messageOf(error)}`;
  return new TransportError("bind_failed", message, 0, { cause: error });
}

function ignore(): void {}
