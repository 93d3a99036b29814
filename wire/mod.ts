/**
 * The Felix client wire protocol, version 1: frames, messages, binary layouts, routing, error
 * codes. No input or output, no clock, no transport.
 *
 * @module
 */
export * from "./wire_error.ts";
export * from "./flags.ts";
export * from "./features.ts";
export * from "./error_codes.ts";
export * from "./byte_writer.ts";
export * from "./frame.ts";
export * from "./frame_reader.ts";
export * from "./base64.ts";
export * from "./publish.ts";
export * from "./publish_ack.ts";
export * from "./event_batch.ts";
export * from "./routing.ts";
export * from "./message_values.ts";
export * from "./messages_session.ts";
export * from "./messages_publish.ts";
export * from "./messages_subscribe.ts";
export * from "./messages_cache.ts";
export * from "./messages_group.ts";
export * from "./messages.ts";
export * from "./json_decode.ts";
export * from "./json_encode.ts";
