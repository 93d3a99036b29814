// What a token does not grant is refused (spec/wire.md §4.2, §8.2 and §10): a JSON request ends its
// stream, an acked binary publish is answered and the stream goes on, an unacked one ends it.

import { assertEquals } from "@std/assert";
import { DevBroker } from "../support/servers.ts";
import { json, publish, readAck, readJson } from "./frames.ts";
import { FULL_OFFER, RawConnection } from "./raw_client.ts";

const names = { tenant_id: "t1", namespace: "default" };
const FORBIDDEN = { message: "forbidden", code: "forbidden", retry: "fatal" };

async function readerMayNotWrite(connection: RawConnection, token: string): Promise<void> {
  const acked = await connection.stream(FULL_OFFER, token);
  await acked.send(publish({ payloads: ["x"], requestId: 1 }));
  const { ok, message, code, retry } = readAck(await acked.frame());
  assertEquals({ ok, message, code, retry }, {
    ok: false,
    message: "forbidden",
    code: 2,
    retry: 5,
  });
  assertEquals((await acked.ask({ type: "topology" }))["type"], "topology_view");
  await acked.finish();
  const unacked = await connection.stream(FULL_OFFER, token);
  await unacked.send(publish({ payloads: ["x"] }));
  assertEquals(await unacked.rest(), []);
  const text = await connection.stream(FULL_OFFER, token);
  await text.send(
    json({ type: "publish", ...names, stream: "events", payload: "eA==", request_id: 2 }),
  );
  const answers = (await text.rest()).map(readJson);
  assertEquals(answers, [{ type: "publish_error", request_id: 2, ...FORBIDDEN }]);
}

async function writerMayNotRead(connection: RawConnection, token: string): Promise<void> {
  const requests = [
    { type: "subscribe", ...names, stream: "events" },
    { type: "cache_get", ...names, cache: "sessions", key: "k", request_id: 1 },
    { type: "cache_put", ...names, cache: "sessions", key: "k", value: "", request_id: 1 },
    { type: "cache_delete", ...names, cache: "sessions", key: "k", request_id: 1 },
  ];
  for (const request of requests) {
    const stream = await connection.stream(FULL_OFFER, token);
    await stream.send(json(request));
    const answers = (await stream.rest()).map(readJson);
    assertEquals(answers, [{ type: "error", ...FORBIDDEN }], request.type);
  }
}

/** Streams of one connection may carry different tokens; what one may, another may not. */
async function tokensDoNotMix(
  connection: RawConnection,
  reader: string,
  writer: string,
): Promise<void> {
  const writing = await connection.stream(FULL_OFFER, writer);
  const reading = await connection.stream(FULL_OFFER, reader);
  await writing.send(publish({ payloads: ["x"], requestId: 1 }));
  await reading.send(publish({ payloads: ["x"], requestId: 1 }));
  assertEquals(readAck(await writing.frame()).ok, true);
  assertEquals(readAck(await reading.frame()).ok, false);
  await writing.finish();
  await reading.finish();
}

async function partOfAScope(connection: RawConnection, token: string): Promise<void> {
  const stream = await connection.stream(FULL_OFFER, token);
  await stream.send(publish({ stream: "events", payloads: ["x"], requestId: 1 }));
  await stream.send(publish({ stream: "wide", payloads: ["x"], requestId: 2 }));
  await stream.send(publish({ stream: "events", payloads: ["x"], requestId: 3 }));
  const acks = [await stream.frame(), await stream.frame(), await stream.frame()].map(readAck);
  assertEquals(acks.map((ack) => ack.ok), [true, false, true]);
  await stream.finish();
}

Deno.test({
  name: "a token's permissions",
  sanitizeOps: true,
  sanitizeResources: true,
  fn: async (test) => {
    await using broker = await DevBroker.start();
    await using connection = await RawConnection.connect(broker);
    const reader = await broker.mintToken([
      "stream.subscribe:stream:t1/default/*",
      "cache.read:cache:t1/default/*",
    ]);
    const writer = await broker.mintToken(["stream.publish:stream:t1/default/events"]);
    await test.step("a reader may not write", () => readerMayNotWrite(connection, reader));
    await test.step("a writer may not read", () => writerMayNotRead(connection, writer));
    await test.step("tokens do not mix", () => tokensDoNotMix(connection, reader, writer));
    await test.step("one stream of a namespace", () => partOfAScope(connection, writer));
    await test.step("the connection still serves", () => connection.assertServes());
  },
});
