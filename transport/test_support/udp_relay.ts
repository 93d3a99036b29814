// A UDP relay on loopback that can be told to go silent: a peer that has died without a word. Also
// keeps what it forwarded, so that a test can send it again or bend it.

import { createSocket, type Socket } from "node:dgram";

/** A running relay. */
export interface UdpRelay {
  /** Where a client dials. */
  readonly port: number;
  /** Drops everything from now on, in both directions. */
  silence(): void;
  /** Datagrams that went towards the server so far, the first 64 at most. */
  readonly toServer: readonly Uint8Array[];
  close(): Promise<void>;
}

const KEPT = 64;

/** Relays between whoever sends to it first and `targetPort` on loopback. */
export async function udpRelay(targetPort: number): Promise<UdpRelay> {
  const front = await bound();
  const back = await bound();
  const toServer: Uint8Array[] = [];
  let silent = false;
  let clientPort = 0;
  front.on("message", (datagram, from) => {
    clientPort = from.port;
    if (silent) return;
    if (toServer.length < KEPT) toServer.push(datagram.slice());
    back.send(datagram, targetPort, "127.0.0.1");
  });
  back.on("message", (datagram) => {
    if (!silent && clientPort !== 0) front.send(datagram, clientPort, "127.0.0.1");
  });
  return {
    port: front.address().port,
    silence: () => silent = true,
    toServer,
    close: async () => {
      await Promise.all([closed(front), closed(back)]);
    },
  };
}

function bound(): Promise<Socket> {
  const socket = createSocket("udp4");
  socket.on("error", () => {}); // a lost packet
  return new Promise((resolve) => socket.bind(0, "127.0.0.1", () => resolve(socket)));
}

function closed(socket: Socket): Promise<void> {
  return new Promise((resolve) => socket.close(() => resolve()));
}
