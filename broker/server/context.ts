// What every connection and stream of one broker shares. Built once by `startBroker`.

import type { BrokerSettings } from "../config/settings.ts";
import type { Catalog } from "../catalog/catalog.ts";
import type { TokenVerifier } from "../auth/grants.ts";
import type { BrokerLog } from "../log/broker_log.ts";
import type { BrokerMetrics } from "../metrics/counters.ts";
import type { PublishPipeline } from "../core/mod.ts";
import type { WriterPool } from "./outbox.ts";
import type { QuickRequest } from "./quick_cache.ts";
import type { TurnQueue } from "./turn.ts";

/** The parts of a running broker that its sessions use. */
export interface BrokerContext {
  readonly settings: BrokerSettings;
  readonly catalog: Catalog;
  readonly tokens: TokenVerifier;
  readonly log: BrokerLog;
  readonly metrics: BrokerMetrics;
  readonly pipeline: PublishPipeline;
  readonly turn: TurnQueue;
  readonly writers: WriterPool;
  /** Used within one turn only. */
  readonly quickRequest: QuickRequest;
  /** Monotonic milliseconds. */
  nowMs(): number;
  /** Milliseconds since the Unix epoch. */
  wallMs(): number;
  /** Runs the pipeline and arms its deadline. */
  pump(): void;
  /** Says in the log, at most once in a while, that storage did not do what was asked. */
  onStorageFailure(what: string, error: unknown): void;
  /** A subscription id that no other subscription of this process has. */
  nextSubscriptionId(): bigint;
  /** `true` once shutdown began. */
  draining(): boolean;
  /** Address that topology answers name; `null` = none. */
  readonly advertisedAddress: string | null;
}
