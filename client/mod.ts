/**
 * A client for Felix: streams, caches and counters over QUIC.
 *
 * Needs Deno with QUIC (`--unstable-net`, or `"unstable": ["net"]` in `deno.json`) and
 * `--allow-net` for the brokers.
 *
 * @example
 * ```ts
 * import { connect } from "@felix/client";
 *
 * await using client = await connect({
 *   addresses: "localhost:5000",
 *   tenant: "t1",
 *   token: "…",
 *   tls: { caFile: "ca.pem" },
 * });
 *
 * const orders = client.stream("orders");
 * await using subscription = await orders.subscribe();
 * await orders.publish("hello");
 * const event = await subscription.next();
 * console.log(event?.text());
 * ```
 *
 * @module
 */
export { connect } from "./client.ts";
export { configFromEnv, connectFromEnv } from "./configuration.ts";
export type { FelixClient, NamespaceView } from "./client_types.ts";
export type { StreamHandle } from "./stream_handle.ts";
export type { CacheHandle, CachePutOptions, CacheWriteOptions } from "./cache/cache_handle.ts";
export type { CacheMirror } from "./cache/cache_mirror.ts";
export type { CacheChange } from "./cache/mirror_state.ts";
export type { CacheChangeItem, CacheWatch, WatchItem, WatchOptions } from "./cache/watch_types.ts";
export type { CounterHandle } from "./cache/counter_handle.ts";
export type { ConnectOptions, FlowLimits, PoolOptions, TlsOptions } from "./options.ts";
export type { ReconnectPolicy } from "./retry_policy.ts";
export type { PublishOptions, PublishResult } from "./publish/publish_options.ts";
export type {
  IdempotentProducer,
  ProducerOptions,
  ProducerPublishOptions,
} from "./publish/producer_types.ts";
export type { Batcher, BatcherOptions, WritableRecord } from "./publish/batcher.ts";
export type { OverflowPolicy, SubscribeOptions } from "./subscribe/subscribe_options.ts";
export type { Subscription, SubscriptionStats } from "./subscribe/subscription.ts";
export type { FelixEvent } from "./subscribe/event.ts";
export type {
  ShardedSubscribeOptions,
  ShardedSubscription,
  ShardItem,
  ShardPositions,
  StreamCheckpoint,
} from "./subscribe/sharded_types.ts";
export type { FeatureName } from "./features.ts";
export type { ClientHooks, FelixLogger, LogFields } from "./hooks.ts";
export type { ClientMetrics } from "./metrics.ts";
export type { TokenProvider } from "./token/token_provider.ts";
export type {
  AckMode,
  BrokerInfo,
  BytesLike,
  CallOptions,
  ConnectionInfo,
  ConnectionRole,
  Offset,
  ShardOwner,
  StartPosition,
  StreamRouting,
} from "./types.ts";
export type { FelixError } from "./failure/felix_error.ts";
export type {
  ByteStream,
  CloseInfo,
  CommonOptions,
  Connection,
  ConnectOptions as TransportConnectOptions,
  IncomingConnection,
  Listener,
  ListenOptions,
  ReceiveStream,
  SendStream,
  Transport,
} from "@felix/transport";
