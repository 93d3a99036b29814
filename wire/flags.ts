// The flag bits of a frame header (spec/wire.md §2.2). `flags = 0` is a JSON message; otherwise one
// base bit says what the payload is and modifier bits change its layout.

/** Base, client to broker: a publish batch (§5.1). */
export const FLAG_BINARY_PUBLISH_BATCH = 0x0001;
/** Base, broker to client: an event batch of one subscription, legacy (§5.6). */
export const FLAG_BINARY_EVENT_BATCH = 0x0002;
/** Base, broker to client: a shared event batch (§5.6). */
export const FLAG_BINARY_EVENT_BATCH_SHARED = 0x0004;
/** Modifier of a publish: request id and ack mode in front, an answer is owed (§5.3). */
export const FLAG_BINARY_PUBLISH_ACKED = 0x0008;
/** Base, broker to client: the answer to an acked publish (§5.5). */
export const FLAG_BINARY_PUBLISH_ACK = 0x0010;
/** Modifier of an event batch: the offset of its first event. */
export const FLAG_EVENT_BATCH_OFFSETS = 0x0020;
/** Modifier of a publish: a routing key in front (§5.2). */
export const FLAG_BINARY_PUBLISH_KEYED = 0x0040;
/** Modifier of an ack: the batch was forwarded, its owner is named. */
export const FLAG_BINARY_PUBLISH_ACK_OWNER = 0x0080;
/** Modifier of an acked publish: producer id and sequence (§5.4). */
export const FLAG_BINARY_PUBLISH_IDEMPOTENT = 0x0100;
/** Modifier of a failed ack: error code and retry class. */
export const FLAG_BINARY_PUBLISH_ACK_CODE = 0x0200;
/** Modifier of a failed ack with a code: error detail. */
export const FLAG_BINARY_PUBLISH_ACK_DETAIL = 0x0400;
/** Modifier of an event batch with offsets: offsets just before it that hold no event. */
export const FLAG_EVENT_BATCH_SKIPPED = 0x0800;
/** Modifier of a successful ack: log offset of the first record. */
export const FLAG_BINARY_PUBLISH_ACK_OFFSET = 0x1000;
/** Modifier of an event batch: the publishing principal. */
export const FLAG_EVENT_BATCH_PUBLISHER = 0x2000;
/** Modifier of an event batch: append time of every event. */
export const FLAG_EVENT_BATCH_TIMESTAMPS = 0x4000;

/** Every bit that this version defines. */
export const KNOWN_FLAGS = 0x7fff;
/** What a peer that advertises nothing supports; frozen for ever. */
export const ORIGINAL_FLAGS = 0x0007;
