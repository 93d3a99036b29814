// The engine on Deno's built-in QUIC (`"unstable": ["net"]`): the fast one, for what clients see.
// It cannot ask for client certificates, set windows or send a reset. Rule: every option that
// matters is set, because the engine's own defaults are too small (`spec/wire.md §1.9`).

import { messageOf } from "../ended.ts";
import { formatAddress, isIpLiteral } from "../address.ts";
import { dialHost } from "../dial.ts";
import { connectionSettings, DEFAULT_HANDSHAKE_TIMEOUT_MS } from "../defaults.ts";
import {
  type CommonOptions,
  type Connection,
  type ConnectOptions,
  type Listener,
  type ListenOptions,
  type Transport,
  TransportError,
} from "../transport.ts";
import { NativeConnection } from "./native_connection.ts";
import { NativeListener } from "./native_listener.ts";

/** Deno's built-in QUIC. Needs `--unstable-net` and `--allow-net`. */
export const nativeTransport: Transport = {
  name: "native",
  canReset: false,
  canVerifyClients: false,
  listen,
  connect: (options) => dialHost(options, connect),
};

function transportOptions(options: CommonOptions): Deno.QuicTransportOptions & {
  readonly alpnProtocols: string[];
} {
  const settings = connectionSettings(options);
  return {
    alpnProtocols: [...settings.alpn],
    keepAliveInterval: settings.keepAliveMs,
    maxIdleTimeout: settings.idleTimeoutMs,
    maxConcurrentBidirectionalStreams: settings.maxBidirectionalStreams,
    maxConcurrentUnidirectionalStreams: settings.maxUnidirectionalStreams,
  };
}

function assertAvailable(): void {
  if (typeof Deno.QuicEndpoint === "function") return;
  throw new TransportError("unsupported", "built-in QUIC is off: run with --unstable-net");
}

// deno-lint-ignore require-await -- failures must reject, not throw
async function listen(options: ListenOptions): Promise<Listener> {
  assertAvailable();
  if (options.clientCa !== undefined) {
    throw new TransportError("unsupported", "the native engine cannot verify client certificates");
  }
  let endpoint: Deno.QuicEndpoint;
  try {
    endpoint = new Deno.QuicEndpoint({ hostname: options.hostname, port: options.port });
  } catch (error) {
    const address = formatAddress(options.hostname, options.port);
    throw new TransportError("bind_failed", `${address}: ${messageOf(error)}`, 0, { cause: error });
  }
  try {
    const { cert, key } = options;
    const listener = endpoint.listen({ cert, key, ...transportOptions(options) });
    return new NativeListener(endpoint, listener);
  } catch (error) {
    endpoint.close();
    throw new TransportError("bad_certificate", messageOf(error), 0, { cause: error });
  }
}

async function connect(options: ConnectOptions): Promise<Connection> {
  assertAvailable();
  const endpoint = dialingEndpoint(options.hostname);
  const dialing = Deno.connectQuic<false>({
    hostname: options.hostname,
    port: options.port,
    serverName: options.serverName ?? options.hostname,
    caCerts: [...(options.caCerts ?? [])],
    ...(options.clientCertificate ?? {}),
    ...(endpoint === null ? {} : { endpoint }),
    ...transportOptions(options),
  });
  return new NativeConnection(await withinTime(dialing, endpoint, options));
}

/**
 * An endpoint of our own lets us abandon a handshake at once. It takes the permission to bind;
 * without that the engine makes one by itself and an abandoned handshake ends at its idle timeout.
 */
function dialingEndpoint(hostname: string): Deno.QuicEndpoint | null {
  if (Deno.permissions.querySync({ name: "net" }).state !== "granted") return null;
  const wildcard = isIpLiteral(hostname) && !hostname.includes(":") ? "0.0.0.0" : "::";
  try {
    return new Deno.QuicEndpoint({ hostname: wildcard, port: 0 });
  } catch {
    return null;
  }
}

function withinTime(
  dialing: Promise<Deno.QuicConn>,
  endpoint: Deno.QuicEndpoint | null,
  options: ConnectOptions,
): Promise<Deno.QuicConn> {
  const target = formatAddress(options.hostname, options.port);
  const timeoutMs = options.handshakeTimeoutMs ?? DEFAULT_HANDSHAKE_TIMEOUT_MS;
  return new Promise((resolve, reject) => {
    let abandoned = false;
    const settle = (): void => {
      clearTimeout(timer);
      options.signal?.removeEventListener("abort", onAbort);
    };
    const abandon = (error: unknown): void => {
      abandoned = true;
      settle();
      endpoint?.close();
      reject(error);
    };
    const onAbort = (): void => {
      const cause = options.signal?.reason;
      abandon(new TransportError("dial_failed", `${target}: given up`, 0, { cause }));
    };
    const timer = setTimeout(() => {
      abandon(new TransportError("timeout", `${target}: no handshake within ${timeoutMs} ms`));
    }, timeoutMs);
    if (options.signal?.aborted) onAbort();
    else options.signal?.addEventListener("abort", onAbort, { once: true });
    dialing.then((quic) => {
      if (abandoned) return quic.close();
      settle();
      resolve(quic);
    }, (error) => {
      if (abandoned) return;
      settle();
      reject(dialError(error, target));
    });
  });
}

function dialError(error: unknown, target: string): TransportError {
  const message = `${target}: ${messageOf(error)}`;
  const code = /timed out/.test(message)
    ? "timeout"
    : /handshake|closed by peer|aborted by peer|refused|certificate/i.test(message)
    ? "handshake_failed"
    : "dial_failed";
  return new TransportError(code, message, 0, { cause: error });
}
