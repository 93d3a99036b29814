// Turns transport options into a quiche configuration and checks the certificates first, because
// the binding accepts a key that belongs to another certificate and fails every handshake later.
// Rule: a server that is given a client CA lets nobody in without a certificate from it.

import { createPrivateKey, X509Certificate } from "node:crypto";
import { connectionSettings } from "../defaults.ts";
import {
  type CommonOptions,
  type ConnectOptions,
  type ListenOptions,
  TransportError,
} from "../transport.ts";
import type { Quiche, QuicheConfig } from "./binding.ts";

/**
 * The id that stands for "no ALPN". BoringSSL refuses a QUIC handshake without the extension on
 * either side, so an empty list offers and requires this one (`spec/wire.md §1.2`).
 */
export const DEFAULT_ALPN = "felix/1";

/** Receive window of a connection and of a stream (`spec/wire.md §1.3`, client listeners). */
export const DEFAULT_WINDOW_BYTES = 16 * 1024 * 1024;

/** Datagrams sent: fits an Ethernet path with IPv6 and a tunnel header. */
export const MAX_SEND_BYTES = 1350;
/** Datagrams accepted: whatever UDP can carry. */
const MAX_RECEIVE_BYTES = 65_527;

/**
 * Configuration of a listener.
 *
 * @throws {TransportError} `bad_certificate`
 */
export function listenConfiguration(quiche: Quiche, options: ListenOptions): QuicheConfig {
  assertPair(options.cert, options.key);
  if (options.clientCa !== undefined) assertCertificates([options.clientCa]);
  return build(quiche, options, {
    verifyPeer: options.clientCa !== undefined,
    ca: options.clientCa ?? null,
    pair: options,
  });
}

/**
 * Configuration of a dialler. Without `caCerts` nothing is trusted: the binding knows no platform
 * store.
 *
 * @throws {TransportError} `bad_certificate`
 */
export function connectConfiguration(quiche: Quiche, options: ConnectOptions): QuicheConfig {
  const pair = options.clientCertificate ?? null;
  if (pair !== null) assertPair(pair.cert, pair.key);
  const roots = options.caCerts ?? [];
  assertCertificates(roots);
  return build(quiche, options, {
    verifyPeer: true,
    ca: roots.length === 0 ? null : roots.join("\n"),
    pair,
  });
}

interface Identity {
  readonly verifyPeer: boolean;
  readonly ca: string | null;
  readonly pair: { readonly cert: string; readonly key: string } | null;
}

function build(quiche: Quiche, options: CommonOptions, identity: Identity): QuicheConfig {
  const config = tlsContext(quiche, identity);
  const settings = connectionSettings(options);
  const connectionBytes = options.connectionWindowBytes ?? DEFAULT_WINDOW_BYTES;
  const streamBytes = options.streamWindowBytes ??
    Math.min(DEFAULT_WINDOW_BYTES, connectionBytes);
  config.setApplicationProtos(settings.alpn.length === 0 ? [DEFAULT_ALPN] : [...settings.alpn]);
  config.setMaxIdleTimeout(settings.idleTimeoutMs);
  config.setMaxRecvUdpPayloadSize(MAX_RECEIVE_BYTES);
  config.setMaxSendUdpPayloadSize(MAX_SEND_BYTES);
  config.setInitialMaxData(connectionBytes);
  config.setInitialMaxStreamDataBidiLocal(streamBytes);
  config.setInitialMaxStreamDataBidiRemote(streamBytes);
  config.setInitialMaxStreamDataUni(streamBytes);
  // Upper bounds too: quiche would otherwise widen the windows by itself.
  config.setMaxConnectionWindow(connectionBytes);
  config.setMaxStreamWindow(streamBytes);
  config.setInitialMaxStreamsBidi(settings.maxBidirectionalStreams);
  config.setInitialMaxStreamsUni(settings.maxUnidirectionalStreams);
  config.setDisableActiveMigration(true);
  config.enablePacing(false);
  return config;
}

function tlsContext(quiche: Quiche, identity: Identity): QuicheConfig {
  const encoder = new TextEncoder();
  const { ca, pair } = identity;
  try {
    return quiche.Config.withBoringSslCtx(
      identity.verifyPeer,
      false,
      ca === null ? null : encoder.encode(ca),
      pair === null ? null : [encoder.encode(pair.key)],
      pair === null ? null : [encoder.encode(pair.cert)],
      null,
    );
  } catch (error) {
    throw new TransportError("bad_certificate", String(error), 0, { cause: error });
  }
}

function assertPair(cert: string, key: string): void {
  let matches: boolean;
  try {
    matches = new X509Certificate(cert).checkPrivateKey(createPrivateKey(key));
  } catch (error) {
    throw new TransportError("bad_certificate", String(error), 0, { cause: error });
  }
  if (!matches) {
    throw new TransportError("bad_certificate", "the private key is not the certificate's");
  }
}

function assertCertificates(certificates: readonly string[]): void {
  for (const certificate of certificates) {
    try {
      new X509Certificate(certificate);
    } catch (error) {
      throw new TransportError("bad_certificate", `CA: ${String(error)}`, 0, { cause: error });
    }
  }
}
