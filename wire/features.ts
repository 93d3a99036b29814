// Feature bits: a bit says that a message or a field exists; it never appears on a frame
// (spec/wire.md §3.5). Two words of 32 bits; the second one counts only with `FEATURE_EXTENDED`.

/** Request `topology`. */
export const FEATURE_TOPOLOGY = 0x0000_0001;
/** `not_leader` answers. */
export const FEATURE_REDIRECT = 0x0000_0002;
/** `cache_delete`. */
export const FEATURE_CACHE_DELETE = 0x0000_0004;
/** `group_poll`, `group_ack`, `group_nack`. */
export const FEATURE_CONSUMER_GROUP = 0x0000_0008;
/** `group_dead_letters`, `group_discard`, `group_redrive`. */
export const FEATURE_GROUP_DEAD_LETTERS = 0x0000_0010;
/** `stream_shards`. */
export const FEATURE_STREAM_SHARDS = 0x0000_0020;
/** `cache_watch`. */
export const FEATURE_CACHE_WATCH = 0x0000_0040;
/** `retained` on `cache_watch`. */
export const FEATURE_CACHE_WATCH_RETAINED = 0x0000_0080;
/** `counter_add`, `counter_get`. */
export const FEATURE_COUNTERS = 0x0000_0100;
/** `producer_init`, `publish_idempotent`, `publish_refused`. */
export const FEATURE_IDEMPOTENT_PRODUCER = 0x0000_0200;
/** `cache_shards`. */
export const FEATURE_CACHE_SHARDS = 0x0000_0400;
/** `code`, `retry`, `detail` on `error` and `publish_error`. */
export const FEATURE_ERROR_CODES = 0x0000_0800;
/** `shard_moved` as last frame of an event stream. */
export const FEATURE_SHARD_MOVED = 0x0000_1000;
/** Unknown requests are answered `unsupported`. */
export const FEATURE_UNSUPPORTED = 0x0000_2000;
/** Refusal reason `sequence_reused`. */
export const FEATURE_SEQUENCE_REUSED = 0x0000_4000;
/** `publish_window` and answers in request order. */
export const FEATURE_PUBLISH_PIPELINE = 0x0000_8000;
/** `commit`, `state_get`. */
export const FEATURE_ATOMIC_COMMIT = 0x0001_0000;
/** The publish window is per stream, not per connection. */
export const FEATURE_STREAM_PUBLISH_WINDOW = 0x0002_0000;
/** `shard_owners`. */
export const FEATURE_SHARD_OWNERS = 0x0004_0000;
/** Acked publishes are answered after the write. */
export const FEATURE_ACK_ON_COMMIT = 0x0008_0000;
/** `consumer`, `reclaim` on `group_poll`. */
export const FEATURE_GROUP_CONSUMER = 0x0010_0000;
/** `subscription_lagged`. */
export const FEATURE_SUBSCRIPTION_LAGGED = 0x0020_0000;
/** `skipped_before` on group records. */
export const FEATURE_GROUP_SKIPPED = 0x0040_0000;
/** `publisher` on group records. */
export const FEATURE_GROUP_PUBLISHER = 0x0080_0000;
/** `group_seek`, `group_describe`, `group_delete`. */
export const FEATURE_GROUP_ADMIN = 0x0100_0000;
/** `cache_put_if`, `cache_delete_if`, `version` on `cache_value`. */
export const FEATURE_CACHE_CONDITIONAL = 0x0200_0000;
/** `offset_for_time`, `timestamp_micros` on group records. */
export const FEATURE_RECORD_TIMESTAMPS = 0x0400_0000;
/** `group_extend`, `group_dead_letter`, claim control fields. */
export const FEATURE_GROUP_CLAIM_CONTROL = 0x0800_0000;
/** `publish_if`, `expected_offset` on `commit`. */
export const FEATURE_PUBLISH_CONDITIONAL = 0x1000_0000;
/** `stream_read`. */
export const FEATURE_STREAM_READ = 0x2000_0000;
/** `queue_capacity` on `subscribe`. */
export const FEATURE_SUBSCRIBE_QUEUE = 0x4000_0000;
/** Not a feature: the second word follows. */
export const FEATURE_EXTENDED = 0x8000_0000;

/** Second word: `shard_inspect`, `subscriptions_list`. */
export const FEATURE_HI_INSPECT = 0x01;
/** Second word: `stream_deleted` as last frame of an event stream. */
export const FEATURE_HI_STREAM_DELETED = 0x02;
/** Second word: `publish_width`, refusals `stale_width`. */
export const FEATURE_HI_PUBLISH_WIDTH = 0x04;
/** Second word: `shard` on publishes. */
export const FEATURE_HI_EXPLICIT_SHARD = 0x08;
/** Second word: `trim_before`, `trim_headers`. */
export const FEATURE_HI_HEAD_TRIM = 0x10;
