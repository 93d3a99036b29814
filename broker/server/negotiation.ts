// What this broker advertises and what one stream's client can read. The bits follow from what is
// served, nowhere else; everything sent to a client depends on the offer that its own stream made
// (spec/wire.md §3).

import {
  FEATURE_ACK_ON_COMMIT,
  FEATURE_CACHE_CONDITIONAL,
  FEATURE_CACHE_DELETE,
  FEATURE_CACHE_SHARDS,
  FEATURE_CACHE_WATCH,
  FEATURE_CACHE_WATCH_RETAINED,
  FEATURE_COUNTERS,
  FEATURE_ERROR_CODES,
  FEATURE_EXTENDED,
  FEATURE_HI_EXPLICIT_SHARD,
  FEATURE_HI_STREAM_DELETED,
  FEATURE_IDEMPOTENT_PRODUCER,
  FEATURE_PUBLISH_PIPELINE,
  FEATURE_SEQUENCE_REUSED,
  FEATURE_STREAM_PUBLISH_WINDOW,
  FEATURE_STREAM_SHARDS,
  FEATURE_SUBSCRIBE_QUEUE,
  FEATURE_SUBSCRIPTION_LAGGED,
  FEATURE_UNSUPPORTED,
  FLAG_BINARY_EVENT_BATCH,
  FLAG_BINARY_EVENT_BATCH_SHARED,
  FLAG_BINARY_PUBLISH_ACK,
  FLAG_BINARY_PUBLISH_ACK_CODE,
  FLAG_BINARY_PUBLISH_ACK_DETAIL,
  FLAG_BINARY_PUBLISH_ACK_OFFSET,
  FLAG_BINARY_PUBLISH_ACKED,
  FLAG_BINARY_PUBLISH_BATCH,
  FLAG_BINARY_PUBLISH_IDEMPOTENT,
  FLAG_BINARY_PUBLISH_KEYED,
  FLAG_EVENT_BATCH_OFFSETS,
} from "@felix/wire";
import type { AuthMessage, AuthOkMessage } from "@felix/wire";
import type { Grants } from "../auth/grants.ts";

/**
 * Flag bits this broker understands. `EVENT_BATCH_OFFSETS` is among them so that clients ask for
 * `earliest` and positions, which the replay ring serves; in-memory streams put no offsets on
 * frames, and no ack of theirs carries one either.
 */
const SERVER_FLAGS = FLAG_BINARY_PUBLISH_BATCH | FLAG_BINARY_EVENT_BATCH |
  FLAG_BINARY_EVENT_BATCH_SHARED | FLAG_BINARY_PUBLISH_ACKED | FLAG_BINARY_PUBLISH_ACK |
  FLAG_EVENT_BATCH_OFFSETS | FLAG_BINARY_PUBLISH_KEYED | FLAG_BINARY_PUBLISH_ACK_CODE |
  FLAG_BINARY_PUBLISH_ACK_DETAIL | FLAG_BINARY_PUBLISH_IDEMPOTENT;

const BASE_FEATURES = (FEATURE_CACHE_DELETE | FEATURE_STREAM_SHARDS | FEATURE_CACHE_SHARDS |
  FEATURE_ERROR_CODES | FEATURE_UNSUPPORTED | FEATURE_SUBSCRIBE_QUEUE |
  FEATURE_IDEMPOTENT_PRODUCER | FEATURE_SEQUENCE_REUSED) >>> 0;

/** What needs logs: positions of subscriptions, and caches that are kept. */
const DURABLE_FEATURES = FEATURE_SUBSCRIPTION_LAGGED | FEATURE_CACHE_WATCH |
  FEATURE_CACHE_WATCH_RETAINED | FEATURE_COUNTERS | FEATURE_CACHE_CONDITIONAL;

const HIGH_FEATURES = (FEATURE_HI_STREAM_DELETED | FEATURE_HI_EXPLICIT_SHARD) >>> 0;

/** What the settings add to the advertisement. */
export interface AdvertiseSettings {
  /** Acked publishes a stream may have unanswered; 0 serves no pipelining. */
  readonly publishWindow: number;
  /** Whether acks follow the write. */
  readonly ackOnCommit: boolean;
  /** Where durable streams are kept; `null`: there are none, and no ack carries an offset. */
  readonly durableStorageDir: string | null;
}

/** The client behind one authenticated stream, shared by its streams that made the same offer. */
export interface Peer {
  readonly tenant: string;
  readonly grants: Grants;
  /** Flag bits the client can read. */
  readonly flags: number;
  /** First word of its features. */
  readonly features: number;
  /** Second word, 0 unless the first one carries the marker. */
  readonly featuresHigh: number;
  /** Unanswered acked publishes granted; 0 = no window, answers leave as they come. */
  readonly publishWindow: number;
  /** Whether `error` may carry code, retry class and detail. */
  readonly readsCodes: boolean;
}

/** Reads a client's offer (spec/wire.md §3.1): absent words mean nothing offered. */
export function peerOf(auth: AuthMessage, grants: Grants, settings: AdvertiseSettings): Peer {
  const negotiates = auth.client_flags !== undefined;
  const features = (auth.client_features ?? 0) >>> 0;
  const extended = (features & FEATURE_EXTENDED) !== 0;
  const pipelines = negotiates && (features & FEATURE_PUBLISH_PIPELINE) !== 0;
  return {
    tenant: auth.tenant_id,
    grants,
    flags: auth.client_flags ?? 0,
    features,
    featuresHigh: extended ? (auth.client_features_hi ?? 0) >>> 0 : 0,
    publishWindow: pipelines ? settings.publishWindow : 0,
    readsCodes: (features & FEATURE_ERROR_CODES) !== 0,
  };
}

/** Whether the client offered a feature of the first word. */
export function offers(peer: Peer, feature: number): boolean {
  return (peer.features & feature) !== 0;
}

/** Whether the client offered a feature of the second word. */
export function offersHigh(peer: Peer, feature: number): boolean {
  return (peer.featuresHigh & feature) !== 0;
}

/** The answer to an accepted `auth` with `client_flags` (spec/wire.md §3.2). */
export function authOk(peer: Peer, settings: AdvertiseSettings): AuthOkMessage {
  let features = BASE_FEATURES;
  if (settings.ackOnCommit) features |= FEATURE_ACK_ON_COMMIT;
  if (settings.publishWindow > 0) {
    features |= FEATURE_PUBLISH_PIPELINE | FEATURE_STREAM_PUBLISH_WINDOW;
  }
  const durable = settings.durableStorageDir !== null;
  if (durable) features |= DURABLE_FEATURES;
  const extended = (peer.features & FEATURE_EXTENDED) !== 0;
  if (extended) features |= FEATURE_EXTENDED;
  return {
    type: "auth_ok",
    server_flags: durable ? SERVER_FLAGS | FLAG_BINARY_PUBLISH_ACK_OFFSET : SERVER_FLAGS,
    server_features: features >>> 0,
    ...(extended ? { server_features_hi: HIGH_FEATURES } : {}),
    ...(peer.publishWindow > 0 ? { publish_window: peer.publishWindow } : {}),
  };
}
