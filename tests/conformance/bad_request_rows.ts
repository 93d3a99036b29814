// Rows of the bad-input table about requests that can be read and must be refused
// (spec/wire.md §4.2, §8.2 and §10).

import { type BadInputRow, error } from "./bad_input_row.ts";
import { concat, frame, json, publish, publishBody, uint, utf8 } from "./frames.ts";
import { FULL_OFFER, NO_OFFER } from "./raw_client.ts";

const names = { tenant_id: "t1", namespace: "default" };

const unknown: BadInputRow[] = [
  {
    name: "unknown type, UNSUPPORTED offered",
    offer: FULL_OFFER,
    send: json('{"type":"stream_fork","request_id":18446744073709551615,"x":{"y":[null]}}'),
    answers: [{ json: { type: "unsupported", request_type: "stream_fork" } }],
    then: "goes on",
  },
  {
    name: "unknown type, request id that is no u64 reads as absent",
    offer: FULL_OFFER,
    send: json({ type: "stream_fork", request_id: -1 }),
    answers: [{
      json: { type: "unsupported", request_type: "stream_fork", request_id: undefined },
    }],
    then: "goes on",
  },
  {
    name: "unknown type, UNSUPPORTED not offered",
    offer: NO_OFFER,
    send: json({ type: "stream_fork", request_id: 1 }),
    answers: [],
    then: "ends",
  },
  {
    name: "extension",
    offer: FULL_OFFER,
    send: json({ type: "extension", name: "acme.x", request_id: 4, body: { a: 1 } }),
    answers: [{
      json: {
        type: "unsupported",
        request_type: "extension",
        extension: "acme.x",
        request_id: 4,
      },
    }],
    then: "goes on",
  },
  {
    name: "broker-only type",
    offer: FULL_OFFER,
    send: json({ type: "ok" }),
    answers: [error("unexpected message type", "invalid_request")],
    then: "ends",
  },
  {
    name: "error from a client",
    offer: FULL_OFFER,
    send: json({ type: "error", message: "you first" }),
    answers: [],
    then: "ends",
  },
  {
    name: "publish_width is never answered",
    offer: FULL_OFFER,
    send: json({ type: "publish_width", ...names, stream: "wide", shards: 4 }),
    answers: [],
    then: "goes on",
  },
  {
    name: "request of a feature not served, UNSUPPORTED offered",
    offer: FULL_OFFER,
    send: json({
      type: "group_describe",
      ...names,
      stream: "events",
      shard: 0,
      group: "g",
      request_id: 9,
    }),
    answers: [{ json: { type: "unsupported", request_type: "group_describe", request_id: 9 } }],
    then: "goes on",
  },
  {
    name: "request of a feature not served, UNSUPPORTED not offered",
    offer: NO_OFFER,
    send: json({
      type: "group_describe",
      ...names,
      stream: "events",
      shard: 0,
      group: "g",
      request_id: 9,
    }),
    answers: [{ json: { type: "error", code: undefined } }],
    then: "goes on",
  },
];

const tenancy: BadInputRow[] = [
  ...["stream_shards", "cache_get", "subscribe"].map((type): BadInputRow => ({
    name: `tenant mismatch: ${type}`,
    offer: FULL_OFFER,
    send: json({
      type,
      tenant_id: "t2",
      namespace: "default",
      ...(type === "cache_get" ? { cache: "sessions", key: "k" } : { stream: "events" }),
      request_id: 1,
    }),
    answers: [error("tenant mismatch", "forbidden")],
    then: "ends",
  })),
];

const publishes: BadInputRow[] = [
  {
    name: "acked binary: payload under 9 bytes",
    offer: FULL_OFFER,
    send: frame(0x0009, uint(1, 8)),
    answers: [],
    then: "ends",
  },
  {
    name: "acked binary: ack mode 3",
    offer: FULL_OFFER,
    send: publish({ payloads: ["x"], requestId: 1, ackMode: 3 }),
    answers: [],
    then: "ends",
  },
  ...([
    ["bad body", concat(uint(7, 8), uint(1, 1), utf8("??"))],
    [
      "huge count",
      concat(
        uint(7, 8),
        uint(1, 1),
        publishBody({ payloads: [] }).slice(0, -4),
        uint(0xffff_ffff, 4),
      ),
    ],
    [
      "record longer than the frame",
      concat(
        uint(7, 8),
        uint(1, 1),
        publishBody({ payloads: [] }).slice(0, -4),
        uint(1, 4),
        uint(9, 4),
        utf8("x"),
      ),
    ],
    [
      "not UTF-8",
      concat(
        uint(7, 8),
        uint(1, 1),
        uint(2, 2),
        new Uint8Array([0xff, 0xfe]),
        publishBody({ payloads: ["x"] }).slice(4),
      ),
    ],
  ] as const).map(([name, payload]): BadInputRow => ({
    name: `acked binary: ${name}`,
    offer: FULL_OFFER,
    send: frame(0x0009, payload),
    answers: [{
      ack: { ok: false, requestId: 7, message: "malformed publish batch", code: 4, retry: 5 },
    }],
    then: "goes on",
  })),
  {
    name: "acked binary: truncated producer prefix",
    offer: FULL_OFFER,
    send: frame(0x0109, concat(uint(7, 8), uint(2, 1), uint(1, 4))),
    answers: [{
      ack: { ok: false, requestId: 7, message: "malformed publish batch", code: 4, retry: 5 },
    }],
    then: "goes on",
  },
  {
    name: "acked binary: tenant mismatch",
    offer: FULL_OFFER,
    send: publish({ tenant: "t2", payloads: ["x"], requestId: 8 }),
    answers: [{ ack: { ok: false, requestId: 8, message: "forbidden", code: 2, retry: 5 } }],
    then: "goes on",
  },
  {
    name: "acked binary: unknown stream",
    offer: FULL_OFFER,
    send: publish({ stream: "nowhere", payloads: ["x"], requestId: 9 }),
    answers: [{
      ack: {
        ok: false,
        requestId: 9,
        message: "stream not found: tenant=t1 namespace=default stream=nowhere",
        code: 3,
        retry: 2,
      },
    }],
    then: "goes on",
  },
  {
    name: "acked binary: unknown stream, no codes offered",
    offer: NO_OFFER,
    send: publish({ stream: "nowhere", payloads: ["x"], requestId: 9 }),
    answers: [{ ack: { ok: false, requestId: 9, code: undefined, retry: undefined } }],
    then: "goes on",
  },
  ...([
    ["bad body", frame(0x0001, utf8("??"))],
    ["tenant mismatch", publish({ tenant: "t2", payloads: ["x"] })],
  ] as const).map(([name, send]): BadInputRow => ({
    name: `unacked binary: ${name}`,
    offer: FULL_OFFER,
    send,
    answers: [],
    then: "ends",
  })),
  {
    name: "unacked binary: unknown stream",
    offer: FULL_OFFER,
    send: publish({ stream: "nowhere", payloads: ["x"] }),
    answers: [],
    then: "goes on",
  },
  {
    name: "idempotent bit without the acked bit",
    offer: FULL_OFFER,
    send: frame(0x0101, concat(uint(1, 8), uint(0, 8), publishBody({ payloads: ["x"] }))),
    answers: [],
    then: "ends",
  },
  ...(["publish", "publish_batch"] as const).map((type): BadInputRow => ({
    name: `acked ${type} without a request id`,
    offer: FULL_OFFER,
    send: json({
      type,
      ...names,
      stream: "events",
      ...(type === "publish" ? { payload: "eA==" } : { payloads: ["eA=="] }),
    }),
    answers: [error(
      `missing request_id for acked ${type === "publish" ? "publish" : "publish batch"}`,
      "invalid_request",
    )],
    then: "goes on",
  })),
  {
    name: "JSON publish to an unknown stream",
    offer: FULL_OFFER,
    send: json({ type: "publish", ...names, stream: "nowhere", payload: "eA==", request_id: 3 }),
    answers: [{
      json: { type: "publish_error", request_id: 3, code: "not_found", retry: "retry_after" },
    }],
    then: "goes on",
  },
  {
    name: "JSON publish to a shard outside the width",
    offer: FULL_OFFER,
    send: json({
      type: "publish",
      ...names,
      stream: "events",
      payload: "eA==",
      shard: 64,
      request_id: 3,
    }),
    answers: [{
      json: { type: "publish_error", request_id: 3, code: "invalid_request", retry: "fatal" },
    }],
    then: "goes on",
  },
  {
    name: "unacked JSON publish to a shard outside the width",
    offer: FULL_OFFER,
    send: json({
      type: "publish",
      ...names,
      stream: "events",
      payload: "eA==",
      shard: 64,
      ack: "none",
    }),
    answers: [],
    then: "goes on",
  },
];

const lookups: BadInputRow[] = [
  {
    name: "subscribe to an unknown stream",
    offer: FULL_OFFER,
    send: json({ type: "subscribe", ...names, stream: "nowhere" }),
    answers: [error(
      "stream not found: tenant=t1 namespace=default stream=nowhere",
      "not_found",
      "retry_after",
    )],
    then: "ends",
  },
  {
    name: "unknown cache, with a request id",
    offer: FULL_OFFER,
    send: json({ type: "cache_get", ...names, cache: "nowhere", key: "k", request_id: 1 }),
    answers: [error("cache scope not found: t1/default/nowhere", "not_found", "retry_after")],
    then: "goes on",
  },
  {
    name: "unknown cache, without a request id",
    offer: FULL_OFFER,
    send: json({ type: "cache_get", ...names, cache: "nowhere", key: "k" }),
    answers: [error("cache scope not found: t1/default/nowhere", "not_found", "retry_after")],
    then: "ends",
  },
];

/** Rows about what must be refused, in the order of the table. */
export const BAD_REQUEST_ROWS: readonly BadInputRow[] = [
  ...unknown,
  ...tenancy,
  ...publishes,
  ...lookups,
];
