// What this client offers in `auth`, and the names under which `supports()` tells what a broker
// serves (spec/wire.md §3.5, spec/client.md §2). Only bits whose messages this client implements
// are offered.

import {
  FEATURE_ACK_ON_COMMIT,
  FEATURE_CACHE_DELETE,
  FEATURE_CACHE_SHARDS,
  FEATURE_CACHE_WATCH,
  FEATURE_CACHE_WATCH_RETAINED,
  FEATURE_COUNTERS,
  FEATURE_ERROR_CODES,
  FEATURE_EXTENDED,
  FEATURE_GROUP_PUBLISHER,
  FEATURE_HI_PUBLISH_WIDTH,
  FEATURE_HI_STREAM_DELETED,
  FEATURE_IDEMPOTENT_PRODUCER,
  FEATURE_PUBLISH_PIPELINE,
  FEATURE_REDIRECT,
  FEATURE_SEQUENCE_REUSED,
  FEATURE_SHARD_MOVED,
  FEATURE_SHARD_OWNERS,
  FEATURE_STREAM_PUBLISH_WINDOW,
  FEATURE_STREAM_SHARDS,
  FEATURE_SUBSCRIBE_QUEUE,
  FEATURE_SUBSCRIPTION_LAGGED,
  FEATURE_TOPOLOGY,
  FEATURE_UNSUPPORTED,
  FLAG_BINARY_EVENT_BATCH,
  FLAG_BINARY_EVENT_BATCH_SHARED,
  FLAG_BINARY_PUBLISH_ACK,
  FLAG_BINARY_PUBLISH_ACK_CODE,
  FLAG_BINARY_PUBLISH_ACK_DETAIL,
  FLAG_BINARY_PUBLISH_ACK_OFFSET,
  FLAG_BINARY_PUBLISH_ACK_OWNER,
  FLAG_BINARY_PUBLISH_ACKED,
  FLAG_BINARY_PUBLISH_BATCH,
  FLAG_BINARY_PUBLISH_IDEMPOTENT,
  FLAG_BINARY_PUBLISH_KEYED,
  FLAG_EVENT_BATCH_OFFSETS,
  FLAG_EVENT_BATCH_PUBLISHER,
  FLAG_EVENT_BATCH_SKIPPED,
} from "@felix/wire";

/** What a broker may or may not serve; see `FelixClient.supports`. */
export type FeatureName =
  | "ackOffset"
  | "ackOnCommit"
  | "binaryIdempotent"
  | "cacheDelete"
  | "cacheShards"
  | "cacheWatch"
  | "cacheWatchRetained"
  | "counters"
  | "errorCodes"
  | "eventOffsets"
  | "eventSkipped"
  | "idempotentProducer"
  | "publishers"
  | "publishPipeline"
  | "publishWidth"
  | "redirect"
  | "sequenceReused"
  | "shardMoved"
  | "shardOwners"
  | "streamDeleted"
  | "streamPublishWindow"
  | "streamShards"
  | "subscribeQueue"
  | "subscriptionLagged"
  | "topology"
  | "unsupported";

/** The two words of a broker's features and its flags, as one stream was told them. */
export interface Negotiated {
  /** Flag bits the broker understands. */
  readonly flags: number;
  /** First word of its features, as an unsigned number. */
  readonly features: number;
  /** Second word. */
  readonly featuresHigh: number;
  /** Unanswered acked publishes that it allows; 0 = it granted no window. */
  readonly publishWindow: number;
  /** Client ports it listens on besides the one dialled; usually empty. */
  readonly listenerPorts: readonly number[];
}

type Place = "flags" | "features" | "featuresHigh";

const BITS: Readonly<Record<FeatureName, readonly [Place, number]>> = {
  ackOffset: ["flags", FLAG_BINARY_PUBLISH_ACK_OFFSET],
  ackOnCommit: ["features", FEATURE_ACK_ON_COMMIT],
  binaryIdempotent: ["flags", FLAG_BINARY_PUBLISH_IDEMPOTENT],
  cacheDelete: ["features", FEATURE_CACHE_DELETE],
  cacheShards: ["features", FEATURE_CACHE_SHARDS],
  cacheWatch: ["features", FEATURE_CACHE_WATCH],
  cacheWatchRetained: ["features", FEATURE_CACHE_WATCH_RETAINED],
  counters: ["features", FEATURE_COUNTERS],
  errorCodes: ["features", FEATURE_ERROR_CODES],
  eventOffsets: ["flags", FLAG_EVENT_BATCH_OFFSETS],
  eventSkipped: ["flags", FLAG_EVENT_BATCH_SKIPPED],
  idempotentProducer: ["features", FEATURE_IDEMPOTENT_PRODUCER],
  publishers: ["flags", FLAG_EVENT_BATCH_PUBLISHER],
  publishPipeline: ["features", FEATURE_PUBLISH_PIPELINE],
  publishWidth: ["featuresHigh", FEATURE_HI_PUBLISH_WIDTH],
  redirect: ["features", FEATURE_REDIRECT],
  sequenceReused: ["features", FEATURE_SEQUENCE_REUSED],
  shardMoved: ["features", FEATURE_SHARD_MOVED],
  shardOwners: ["features", FEATURE_SHARD_OWNERS],
  streamDeleted: ["featuresHigh", FEATURE_HI_STREAM_DELETED],
  streamPublishWindow: ["features", FEATURE_STREAM_PUBLISH_WINDOW],
  streamShards: ["features", FEATURE_STREAM_SHARDS],
  subscribeQueue: ["features", FEATURE_SUBSCRIBE_QUEUE],
  subscriptionLagged: ["features", FEATURE_SUBSCRIPTION_LAGGED],
  topology: ["features", FEATURE_TOPOLOGY],
  unsupported: ["features", FEATURE_UNSUPPORTED],
};

/** Whether a broker that negotiated `with_` serves `feature`. */
export function serves(with_: Negotiated, feature: FeatureName): boolean {
  const [place, bit] = BITS[feature];
  return (with_[place] & bit) !== 0;
}

/** Names of everything a broker serves, in alphabetical order. */
export function servedFeatures(with_: Negotiated): FeatureName[] {
  return (Object.keys(BITS) as FeatureName[]).filter((name) => serves(with_, name));
}

/** What `auth` offers. */
export interface Offer {
  readonly client_flags: number;
  readonly client_features: number;
  readonly client_features_hi: number;
}

const OFFERED_FLAGS = FLAG_BINARY_PUBLISH_BATCH | FLAG_BINARY_EVENT_BATCH |
  FLAG_BINARY_EVENT_BATCH_SHARED | FLAG_BINARY_PUBLISH_ACKED | FLAG_BINARY_PUBLISH_ACK |
  FLAG_EVENT_BATCH_OFFSETS | FLAG_BINARY_PUBLISH_KEYED | FLAG_BINARY_PUBLISH_ACK_OWNER |
  FLAG_BINARY_PUBLISH_ACK_CODE | FLAG_BINARY_PUBLISH_ACK_DETAIL | FLAG_EVENT_BATCH_SKIPPED |
  FLAG_BINARY_PUBLISH_ACK_OFFSET | FLAG_BINARY_PUBLISH_IDEMPOTENT;

const OFFERED_FEATURES = FEATURE_TOPOLOGY | FEATURE_REDIRECT | FEATURE_CACHE_DELETE |
  FEATURE_STREAM_SHARDS | FEATURE_CACHE_SHARDS | FEATURE_ERROR_CODES | FEATURE_SHARD_MOVED |
  FEATURE_UNSUPPORTED | FEATURE_PUBLISH_PIPELINE | FEATURE_STREAM_PUBLISH_WINDOW |
  FEATURE_SHARD_OWNERS | FEATURE_SUBSCRIPTION_LAGGED | FEATURE_SUBSCRIBE_QUEUE |
  FEATURE_IDEMPOTENT_PRODUCER | FEATURE_SEQUENCE_REUSED | FEATURE_CACHE_WATCH |
  FEATURE_CACHE_WATCH_RETAINED | FEATURE_COUNTERS | FEATURE_EXTENDED;

/** The offer of a client with these wishes. */
export function offerOf(wishes: { ackOnCommit: boolean; publishers: boolean }): Offer {
  let features = OFFERED_FEATURES;
  if (wishes.ackOnCommit) features |= FEATURE_ACK_ON_COMMIT;
  if (wishes.publishers) features |= FEATURE_GROUP_PUBLISHER;
  return {
    client_flags: OFFERED_FLAGS | (wishes.publishers ? FLAG_EVENT_BATCH_PUBLISHER : 0),
    client_features: features >>> 0,
    client_features_hi: (FEATURE_HI_STREAM_DELETED | FEATURE_HI_PUBLISH_WIDTH) >>> 0,
  };
}
