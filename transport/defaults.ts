// Connection settings where a caller names none (`spec/wire.md §1.3`), and the place that checks
// them. Rule: a keep-alive must come well before the peer's idle timeout, so that idle is not dead.

import type { CommonOptions } from "./transport.ts";

/** Milliseconds between keep-alive packets. */
export const DEFAULT_KEEP_ALIVE_MS = 2000;
/** Milliseconds of silence after which a peer counts as dead. */
export const DEFAULT_IDLE_TIMEOUT_MS = 6000;
/** Concurrent streams that a peer may open, per kind. */
export const DEFAULT_MAX_STREAMS = 1024;
/** Milliseconds that a handshake may take. */
export const DEFAULT_HANDSHAKE_TIMEOUT_MS = 5000;

/** `CommonOptions` with every number filled in; windows are the quiche engine's business. */
export interface ConnectionSettings {
  readonly alpn: readonly string[];
  readonly keepAliveMs: number;
  readonly idleTimeoutMs: number;
  readonly maxBidirectionalStreams: number;
  readonly maxUnidirectionalStreams: number;
}

/** Fills in defaults. A keep-alive of 0, or of half the idle timeout or more, becomes a third. */
export function connectionSettings(options: CommonOptions): ConnectionSettings {
  const idleTimeoutMs = options.idleTimeoutMs ?? DEFAULT_IDLE_TIMEOUT_MS;
  const asked = options.keepAliveMs ?? DEFAULT_KEEP_ALIVE_MS;
  const sensible = asked > 0 && asked * 2 < idleTimeoutMs;
  return {
    alpn: options.alpn ?? [],
    keepAliveMs: sensible ? asked : Math.max(1, Math.floor(idleTimeoutMs / 3)),
    idleTimeoutMs,
    maxBidirectionalStreams: options.maxBidirectionalStreams ?? DEFAULT_MAX_STREAMS,
    maxUnidirectionalStreams: options.maxUnidirectionalStreams ?? DEFAULT_MAX_STREAMS,
  };
}
