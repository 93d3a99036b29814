// The engine on the quiche binding: client certificates, window sizes and resets, no unstable
// API, at a fraction of the native engine's speed. Rule: meant for trusted, mutually authenticated
// networks, because quiche 0.18 is not current; nothing loads until somebody listens or dials.

import { X509Certificate } from "node:crypto";
import { Buffer } from "node:buffer";
import { formatAddress, isIpLiteral } from "../address.ts";
import { connectionSettings, DEFAULT_HANDSHAKE_TIMEOUT_MS } from "../defaults.ts";
import { dialHost } from "../dial.ts";
import { messageOf } from "../ended.ts";
import {
  type Connection,
  type ConnectOptions,
  type Listener,
  type ListenOptions,
  type Transport,
  TransportError,
} from "../transport.ts";
import { loadQuiche } from "./binding.ts";
import { connectConfiguration, listenConfiguration } from "./configuration.ts";
import { LOCAL_ID_BYTES } from "./packet.ts";
import { QuicheConnection } from "./quiche_connection.ts";
import { QuicheListener } from "./quiche_listener.ts";
import { type BindUdp, bindUdp } from "./udp_socket.ts";

/** quiche over the binding that `@matrixai/quic` ships. Needs `--allow-ffi` and `--allow-net`. */
export const quicheTransport: Transport = createQuicheTransport(bindUdp);

/** The engine on a given kind of UDP socket. */
export function createQuicheTransport(bind: BindUdp): Transport {
  return {
    name: "quiche",
    canReset: true,
    canVerifyClients: true,
    async listen(options: ListenOptions): Promise<Listener> {
      const quiche = await loadQuiche();
      const config = listenConfiguration(quiche, options);
      return await QuicheListener.open(quiche, config, options, bind);
    },
    connect: (options) => dialHost(options, (one) => connect(one, bind)),
  };
}

async function connect(options: ConnectOptions, bind: BindUdp): Promise<Connection> {
  const quiche = await loadQuiche();
  const config = connectConfiguration(quiche, options);
  const peer = { host: options.hostname, port: options.port };
  const wildcard = peer.host.includes(":") ? "::" : "0.0.0.0";
  let connection: QuicheConnection | null = null;
  const socket = await bind(wildcard, 0, (datagram, from) => connection?.receive(datagram, from));
  const name = options.serverName ?? options.hostname;
  const id = crypto.getRandomValues(new Uint8Array(LOCAL_ID_BYTES));
  connection = new QuicheConnection({
    // quiche compares names only; an address is compared below.
    quic: quiche.Connection.connect(
      isIpLiteral(name) ? null : name,
      id,
      socket.local,
      peer,
      config,
    ),
    socket,
    peer,
    isServer: false,
    settings: connectionSettings(options),
    onReleased: () => socket.close(),
  });
  await handshake(connection, options);
  if (isIpLiteral(name)) await assertAddress(connection, name);
  return connection;
}

async function handshake(connection: QuicheConnection, options: ConnectOptions): Promise<void> {
  const target = formatAddress(options.hostname, options.port);
  const timeoutMs = options.handshakeTimeoutMs ?? DEFAULT_HANDSHAKE_TIMEOUT_MS;
  let givenUp: TransportError | null = null;
  const giveUp = (error: TransportError): void => {
    givenUp = error;
    connection.close();
  };
  const onAbort = (): void => {
    const cause = options.signal?.reason;
    giveUp(new TransportError("dial_failed", `${target}: given up`, 0, { cause }));
  };
  const timer = setTimeout(
    () => giveUp(new TransportError("timeout", `${target}: no handshake within ${timeoutMs} ms`)),
    timeoutMs,
  );
  if (options.signal?.aborted) onAbort();
  else options.signal?.addEventListener("abort", onAbort, { once: true });
  try {
    await connection.established;
  } catch (error) {
    await connection.closed; // the socket is free again
    if (givenUp !== null) throw givenUp;
    const code = /timed out/.test(messageOf(error)) ? "timeout" : "handshake_failed";
    throw new TransportError(code, `${target}: ${messageOf(error)}`, 0, { cause: error });
  } finally {
    clearTimeout(timer);
    options.signal?.removeEventListener("abort", onAbort);
  }
}

/** The chain was verified by quiche; that it names the address dialled is checked here. */
async function assertAddress(connection: QuicheConnection, address: string): Promise<void> {
  const certificate = connection.peerCertificate;
  const names = certificate !== null &&
    new X509Certificate(Buffer.from(certificate)).checkIP(address) !== undefined;
  if (names) return;
  connection.close();
  await connection.closed;
  throw new TransportError("handshake_failed", `the certificate does not name ${address}`);
}
