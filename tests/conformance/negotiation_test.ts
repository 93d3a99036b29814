// spec/wire.md §3: what a client is sent follows from what its own stream offered. A client that
// offers nothing gets the plain forms, byte for byte.

import { assert, assertEquals } from "@std/assert";
import { DevBroker } from "../support/servers.ts";
import { concat, json, publish, readEvents, textOf, uint, utf8 } from "./frames.ts";
import { FULL_OFFER, NO_OFFER, RawConnection } from "./raw_client.ts";

const names = { tenant_id: "t1", namespace: "default" };
const ERROR_CODES = 0x0800;
const PIPELINE = 0x8000;
const EXTENDED = 0x8000_0000;

async function plainAuth(connection: RawConnection): Promise<void> {
  const stream = await connection.open();
  await stream.send(json(connection.auth(NO_OFFER)));
  assertEquals(await stream.text(), '{"type":"ok"}');
  await stream.finish();
}

async function plainAcks(connection: RawConnection): Promise<void> {
  const stream = await connection.stream(NO_OFFER);
  await stream.send(publish({ payloads: ["a"], requestId: 5 }));
  const ok = await stream.frame();
  assertEquals(ok.flags, 0x0010);
  assertEquals(ok.payload, concat(uint(0, 1), uint(5, 8), uint(0, 2)));
  await stream.send(publish({ stream: "nowhere", payloads: ["a"], requestId: 6, ackMode: 2 }));
  const failed = await stream.frame();
  assertEquals(failed.flags, 0x0010);
  const message = utf8("stream not found: tenant=t1 namespace=default stream=nowhere");
  const expected = concat(uint(1, 1), uint(6, 8), uint(message.length, 2), message);
  assertEquals(failed.payload, expected);
  await stream.finish();
}

async function plainJson(connection: RawConnection): Promise<void> {
  const stream = await connection.stream(NO_OFFER);
  const exchanges: [Record<string, unknown>, string][] = [
    [
      { type: "publish", ...names, stream: "events", payload: "YQ==", request_id: 1 },
      '{"type":"publish_ok","request_id":1}',
    ],
    [
      { type: "publish", ...names, stream: "nowhere", payload: "YQ==", request_id: 2 },
      '{"type":"publish_error","request_id":2,' +
      '"message":"stream not found: tenant=t1 namespace=default stream=nowhere"}',
    ],
    [
      { type: "cache_put", ...names, cache: "sessions", key: "n", value: "dg==", request_id: 3 },
      '{"type":"cache_ok","request_id":3}',
    ],
    [
      { type: "cache_get", ...names, cache: "sessions", key: "n", request_id: 4 },
      '{"type":"cache_value","tenant_id":"t1","namespace":"default","cache":"sessions",' +
      '"key":"n","value":"dg==","request_id":4}',
    ],
    [
      { type: "cache_get", ...names, cache: "nowhere", key: "n", request_id: 5 },
      '{"type":"error","message":"cache scope not found: t1/default/nowhere"}',
    ],
    [
      { type: "stream_shards", ...names, stream: "events", request_id: 6 },
      '{"type":"stream_shards_view","shards":1,"request_id":6}',
    ],
  ];
  for (const [request, answer] of exchanges) {
    await stream.send(json(request));
    assertEquals(await stream.text(), answer);
  }
  await stream.finish();
}

async function plainEvents(connection: RawConnection): Promise<void> {
  const { subscribed, events } = await connection.subscribe({}, NO_OFFER);
  assertEquals(Object.keys(subscribed), ["type", "subscription_id"]);
  const publisher = await connection.stream();
  await publisher.send(publish({ payloads: ["hi", "yo!"], requestId: 1 }));
  const frame = await events.frame();
  assertEquals(frame.flags, 0x0004);
  const body = concat(uint(2, 4), uint(2, 4), utf8("hi"), uint(3, 4), utf8("yo!"));
  assertEquals(frame.payload, body);
  events.cancel();
  await publisher.finish();
}

Deno.test({
  name: "a client that offers nothing gets the plain forms",
  sanitizeOps: true,
  sanitizeResources: true,
  fn: async (test) => {
    await using broker = await DevBroker.start();
    await using connection = await RawConnection.connect(broker);
    await test.step("auth", () => plainAuth(connection));
    await test.step("binary acks", () => plainAcks(connection));
    await test.step("JSON answers", () => plainJson(connection));
    await test.step("events", () => plainEvents(connection));
  },
});

async function fullOffer(connection: RawConnection): Promise<void> {
  const { stream, answer } = await connection.authenticated(FULL_OFFER);
  const flags = Number(answer["server_flags"]);
  const features = Number(answer["server_features"]);
  assertEquals(flags & 0x007d, 0x007d, "flags that the published client needs");
  assertEquals(flags & ~0x7fff, 0, "no unknown flag");
  assertEquals(features & ERROR_CODES, ERROR_CODES);
  assertEquals(answer["publish_window"], 256);
  const hasHigh = "server_features_hi" in answer;
  assertEquals((features & EXTENDED) !== 0, hasHigh, "the marker goes with the second word");
  assertEquals(answer["server_features_hi"] !== 0, true, "a second word of 0 is left out");
  await stream.finish();
}

async function partialOffers(connection: RawConnection): Promise<void> {
  const noFeatures = await connection.authenticated({ client_flags: 0x1fff });
  assert(!("publish_window" in noFeatures.answer));
  assert(!("server_features_hi" in noFeatures.answer));
  assertEquals(Number(noFeatures.answer["server_features"] ?? 0) & EXTENDED, 0);
  const unmarked = await connection.authenticated({
    client_flags: 0x1fff,
    client_features: PIPELINE,
    client_features_hi: 0x0f,
  });
  assertEquals(unmarked.answer["publish_window"], 256);
  assert(!("server_features_hi" in unmarked.answer), "the second word needs the marker");
  await noFeatures.stream.finish();
  await unmarked.stream.finish();
}

/** An in-memory stream has no log, so neither acks nor events carry an offset. */
async function noOffsetsInMemory(connection: RawConnection): Promise<void> {
  const { events } = await connection.subscribe({ start: "latest" });
  const publisher = await connection.stream();
  await publisher.send(publish({ payloads: ["a"], requestId: 1 }));
  const ack = await publisher.frame();
  assertEquals(ack.flags, 0x0010);
  const frame = await events.frame();
  assertEquals(frame.flags, 0x0004);
  assertEquals(readEvents(frame).payloads.map(textOf), ["a"]);
  events.cancel();
  await publisher.finish();
}

Deno.test({
  name: "what a client is sent follows its offer",
  sanitizeOps: true,
  sanitizeResources: true,
  fn: async (test) => {
    await using broker = await DevBroker.start();
    await using connection = await RawConnection.connect(broker);
    await test.step("the published client's offer", () => fullOffer(connection));
    await test.step("parts of it", () => partialOffers(connection));
    await test.step("no offsets without a log", () => noOffsetsInMemory(connection));
  },
});
