// The part of the quiche binding that this engine uses, and the one place that loads it. Rule: the
// native module is loaded on first use, so that only a process that asks for this engine needs
// `--allow-ffi`. What is typed here was checked against the module; no other member is touched.

import { TransportError } from "../transport.ts";

/** A UDP address as the binding takes it. */
export interface Host {
  readonly host: string;
  readonly port: number;
}

/** Why a connection ended, as one side said it. */
export interface QuicheError {
  readonly isApp: boolean;
  readonly errorCode: number;
  readonly reason: Uint8Array;
}

/** Settings of connections to come. */
export interface QuicheConfig {
  setApplicationProtos(protocols: string[]): void;
  setMaxIdleTimeout(timeoutMs: number): void;
  setMaxRecvUdpPayloadSize(bytes: number): void;
  setMaxSendUdpPayloadSize(bytes: number): void;
  setInitialMaxData(bytes: number): void;
  setInitialMaxStreamDataBidiLocal(bytes: number): void;
  setInitialMaxStreamDataBidiRemote(bytes: number): void;
  setInitialMaxStreamDataUni(bytes: number): void;
  setInitialMaxStreamsBidi(count: number): void;
  setInitialMaxStreamsUni(count: number): void;
  setMaxConnectionWindow(bytes: number): void;
  setMaxStreamWindow(bytes: number): void;
  setDisableActiveMigration(disabled: boolean): void;
  enablePacing(enabled: boolean): void;
}

/** One QUIC connection without a socket or a clock. `null` stands for quiche's `Done`. */
export interface QuicheNative {
  recv(datagram: Uint8Array, info: { readonly from: Host; readonly to: Host }): number;
  send(into: Uint8Array): [number, { readonly to: Host }] | null;
  streamRecv(id: number, into: Uint8Array): [number, boolean] | null;
  streamSend(id: number, bytes: Uint8Array, fin: boolean): number | null;
  streamShutdown(id: number, direction: number, code: number): void;
  streamPriority(id: number, urgency: number, incremental: boolean): void;
  streamCapacity(id: number): number;
  peerStreamsLeftBidi(): number;
  peerStreamsLeftUni(): number;
  readable(): Iterable<number>;
  timeout(): number | null;
  onTimeout(): void;
  close(application: boolean, code: number, reason: Uint8Array): void;
  isEstablished(): boolean;
  isDraining(): boolean;
  isClosed(): boolean;
  isTimedOut(): boolean;
  peerError(): QuicheError | null;
  localError(): QuicheError | null;
  peerCertChain(): Uint8Array[] | null;
  pathStats(): { readonly active: boolean; readonly rtt: number }[];
  sendAckEliciting(): void;
  pathEventNext(): unknown;
  retiredScidNext(): Uint8Array | null;
}

/** The native module. */
export interface Quiche {
  readonly Config: {
    withBoringSslCtx(
      verifyPeer: boolean,
      verifyAllowFail: boolean,
      ca: Uint8Array | null,
      keys: Uint8Array[] | null,
      chains: Uint8Array[] | null,
      signatureAlgorithms: string | null,
    ): QuicheConfig;
  };
  readonly Connection: {
    connect(
      serverName: string | null,
      scid: Uint8Array,
      local: Host,
      peer: Host,
      config: QuicheConfig,
    ): QuicheNative;
    accept(
      scid: Uint8Array,
      originalDcid: Uint8Array | null,
      local: Host,
      peer: Host,
      config: QuicheConfig,
    ): QuicheNative;
  };
  versionIsSupported(version: number): boolean;
  negotiateVersion(scid: Uint8Array, dcid: Uint8Array, into: Uint8Array): number;
}

/** `streamShutdown` directions. */
export const SHUTDOWN_READ = 0;
export const SHUTDOWN_WRITE = 1;

/**
 * Loads the native module; later calls get the loaded one.
 *
 * @throws {TransportError} `unsupported`: no `--allow-ffi`, or no build for this platform
 */
export async function loadQuiche(): Promise<Quiche> {
  try {
    const module = await import("@matrixai/quic/native");
    const found = module as unknown as { quiche?: Quiche; default?: { quiche?: Quiche } };
    const quiche = found.quiche ?? found.default?.quiche;
    if (quiche !== undefined) return quiche;
  } catch (error) {
    const message = `the quiche engine cannot be loaded (it needs --allow-ffi): ${String(error)}`;
    throw new TransportError("unsupported", message, 0, { cause: error });
  }
  throw new TransportError("unsupported", "the quiche binding has no quiche in it");
}
