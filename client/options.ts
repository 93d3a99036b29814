// What `connect` takes. Defaults and limits are in `settings.ts`, which turns these into one
// checked object.

import type { Transport } from "@felix/transport";
import type { ClientHooks, FelixLogger } from "./hooks.ts";
import type { ReconnectPolicy } from "./retry_policy.ts";
import type { SubscribeOptions } from "./subscribe/subscribe_options.ts";
import type { TokenProvider } from "./token/token_provider.ts";
import type { AckMode } from "./types.ts";

/** TLS settings. Private CAs are added to the runtime's own roots, they do not replace them. */
export interface TlsOptions {
  /** Root certificates in PEM. */
  readonly caCerts?: readonly string[];
  /** File with root certificates in PEM, read once; needs `--allow-read`. */
  readonly caFile?: string | URL;
  /** Client certificate and key in PEM (experimental: depends on the runtime). */
  readonly clientCert?: { readonly cert: string; readonly key: string };
  /** Offer the ALPN id `felix/1`; default false, see `spec/wire.md §1.2`. */
  readonly offerAlpn?: boolean;
}

/** How many connections and streams to keep. Sizes are maxima: each is opened when needed. */
export interface PoolOptions {
  /** Connections of their own for events, caches and publishes, or one for all. */
  readonly topology?: "perWorkload" | "shared";
  /** Connections that carry subscriptions; default 8. */
  readonly event?: { readonly connections?: number };
  /** Connections (default 8) and streams on each (default 4) that carry cache requests. */
  readonly cache?: { readonly connections?: number; readonly streamsPerConnection?: number };
  /** Connections (default 4) and streams on each (default 2) that carry publishes. */
  readonly publish?: {
    readonly connections?: number;
    readonly streamsPerConnection?: number;
    /** `hashStream` keeps one stream's publishes in order; `roundRobin` does not. */
    readonly sharding?: "hashStream" | "roundRobin";
    /** Shards with a stream of their own per broker; default 16. */
    readonly shardStreams?: number;
  };
  /** `shared` topology: connections (default 8) and streams on each (default 1024). */
  readonly shared?: { readonly maxConnections?: number; readonly streamsPerConnection?: number };
  /** Open one connection of each kind at connect; default false. */
  readonly eager?: boolean;
}

/** Bounds on what may be on its way. */
export interface FlowLimits {
  /** Unanswered publishes on a stream whose broker granted no window; default 64. */
  readonly publishQueueDepth?: number;
  /** Bytes of publish frames on their way; default 4 MiB. */
  readonly publishInflightBytes?: number;
  /** Unanswered cache requests; further ones wait. Default 1024. */
  readonly cacheInflight?: number;
  /** Event streams and subscriptions on a connection that wait for each other; default 16384. */
  readonly eventRouterMaxPending?: number;
}

/** Settings of {@link connect}. */
export interface ConnectOptions {
  /** `host:port`, several as an array or comma-separated; IPv6 as `[::1]:5000`. Port 5000. */
  readonly addresses: string | readonly string[];
  /** Tenant that everything happens in. */
  readonly tenant: string;
  /** Namespace of handles that name none; default `default`. */
  readonly namespace?: string;
  /** Access token, or where it comes from. A function is called again before the token ends. */
  readonly token: string | TokenProvider | (() => string | Promise<string>);
  /** Name on every broker's certificate. Default: the host dialled; `localhost` for an IP. */
  readonly serverName?: string;
  /** TLS. */
  readonly tls?: TlsOptions;
  /** Free text for logs. */
  readonly clientName?: string;
  /** Learn about further brokers from the first; default true. */
  readonly discovery?: boolean;
  /** Connections and streams. */
  readonly pools?: PoolOptions;
  /** Retries. */
  readonly reconnect?: ReconnectPolicy;
  /** Bounds. */
  readonly limits?: FlowLimits;
  /** Defaults of publishes; `ackOnCommit` asks brokers to answer only after the write. */
  readonly publish?: { readonly ack?: AckMode; readonly ackOnCommit?: boolean };
  /** Defaults of subscriptions. */
  readonly subscribe?: Pick<SubscribeOptions, "buffer" | "onGap" | "onCursorError">;
  /** Ask who published each record; default false. */
  readonly publishers?: boolean;
  /** Milliseconds for a call; default 30 000. */
  readonly requestTimeoutMs?: number;
  /** Milliseconds for a QUIC handshake and the first authentication; default 5000. */
  readonly dialTimeoutMs?: number;
  /** Milliseconds between keep-alive packets; default 2000. */
  readonly keepAliveMs?: number;
  /** Milliseconds of silence after which a broker counts as gone; default 6000. */
  readonly idleTimeoutMs?: number;
  /** Largest frame payload in bytes, sent or read; default 16 MiB. */
  readonly maxFrameBytes?: number;
  /** Log lines; none by default. */
  readonly logger?: FelixLogger;
  /** Called as things happen. */
  readonly hooks?: ClientHooks;
  /** QUIC engine; default: the one built into Deno. */
  readonly transport?: Transport;
  /** Gives up connecting; has no effect afterwards. */
  readonly signal?: AbortSignal;
}
