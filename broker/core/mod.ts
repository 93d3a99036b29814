// The broker core: streams, their publish pipeline and subscribers, and caches. It knows plain
// types and the log only: no wire message, no transport, no clock, timer, randomness or file.

export { CacheRegistry } from "./cache_registry.ts";
export type { Cache, CacheDefinition, CacheLogs } from "./cache_registry.ts";
export { CacheMemory, CacheStore, ENTRY_OVERHEAD_BYTES } from "./cache_store.ts";
export { CacheLimitError, CoreError } from "./core_error.ts";
export type { CoreErrorCode } from "./core_error.ts";
export { HEADROOM_BYTES } from "./envelope.ts";
export type { Delivery, EncodeStats, Envelope, FrameEncoder, FrameShape } from "./envelope.ts";
export { FairQueue, QUANTUM } from "./fair_queue.ts";
export type { Lane, QueuedJob, TenantQueue } from "./fair_queue.ts";
export type { ProducerStamp, SequenceRefusal } from "./idempotent_publish.ts";
export { MAX_CLAIM_JOBS, OVERFLOW_TENANT, PublishCounters } from "./publish_counters.ts";
export type { QueueFullRow } from "./publish_counters.ts";
export type {
  ConnectionBudget,
  PipelineSettings,
  PublishJob,
  PublishOutcome,
} from "./publish_job.ts";
export { PublishPipeline } from "./publish_pipeline.ts";
export type { Submitted } from "./publish_pipeline.ts";
export { hasRecordOver, recordBatchOf, recordsAt } from "./record_batch.ts";
export type { RecordBatch } from "./record_batch.ts";
export { MAX_SHARDS } from "./scope.ts";
export { noDeliveries, StreamRegistry } from "./stream_registry.ts";
export type { Stream, StreamDefinition, StreamRegistryOptions } from "./stream_registry.ts";
export type { StreamShard, SubscribeResult, SubscribeStart } from "./stream_shard.ts";
export { DEFAULT_SUBSCRIBER_BYTES } from "./subscriber.ts";
export type { DeliveryCounters, QueuePolicy, Subscriber, SubscriberOptions } from "./subscriber.ts";
