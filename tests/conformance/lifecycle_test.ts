// spec/wire.md §1.5 and §1.6: how streams begin and end, the limits before authentication, and
// the timer that closes a connection on which nobody authenticates.

import { assertEquals } from "@std/assert";
import { sleep } from "../support/poll.ts";
import { DevBroker } from "../support/servers.ts";
import { frame, json, publish, readAck, utf8 } from "./frames.ts";
import { NO_OFFER, RawConnection, type RawStream } from "./raw_client.ts";

const names = { tenant_id: "t1", namespace: "default" };

async function closesWithoutAuth(broker: DevBroker): Promise<void> {
  await using connection = await RawConnection.connect(broker);
  const stream = await connection.open();
  await stream.send(utf8("FLX1"));
  const info = await connection.closed();
  assertEquals(info, { by: "peer", applicationCode: 1, reason: "authentication timeout" });
}

async function authStopsTheTimer(broker: DevBroker, waitMs: number): Promise<void> {
  await using connection = await RawConnection.connect(broker);
  const stream = await connection.stream();
  await stream.finish();
  await sleep(waitMs);
  await connection.assertServes();
}

async function announcementStopsTheTimer(broker: DevBroker, waitMs: number): Promise<void> {
  await using connection = await RawConnection.connect(broker);
  const announcement = await connection.oneWay();
  await announcement.write(json(connection.auth(NO_OFFER)));
  await announcement.finish();
  await sleep(waitMs);
  await connection.assertServes();
}

Deno.test({
  name: "a connection without an authenticated stream is closed with code 1",
  sanitizeOps: true,
  sanitizeResources: true,
  fn: async (test) => {
    await using broker = await DevBroker.start({ env: { FELIX_AUTH_TIMEOUT_MS: "1500" } });
    await test.step("no auth: closed", () => closesWithoutAuth(broker));
    await test.step("auth stops the timer", () => authStopsTheTimer(broker, 2500));
    await test.step(
      "an announcement on a one-way stream stops it too",
      () => announcementStopsTheTimer(broker, 2500),
    );
  },
});

/** `auth` of exactly `bytes` payload bytes, filled up with a member nobody knows. */
function paddedAuth(connection: RawConnection, bytes: number): Uint8Array {
  const bare = JSON.stringify({ ...connection.auth(), pad: "" });
  const padded = JSON.stringify({ ...connection.auth(), pad: "x".repeat(bytes - bare.length) });
  return frame(0, utf8(padded));
}

async function largestFrameBeforeAuth(connection: RawConnection): Promise<void> {
  const fits = await connection.open();
  await fits.send(paddedAuth(connection, 65_536));
  assertEquals((await fits.message())["type"], "auth_ok");
  await fits.finish();
  const tooLarge = await connection.open();
  await tooLarge.offer(paddedAuth(connection, 65_537));
  assertEquals(await tooLarge.rest(), []);
}

async function frameInPieces(connection: RawConnection): Promise<void> {
  const stream = await connection.open();
  const bytes = json(connection.auth());
  for (const [from, to] of [[0, 1], [1, 11], [11, 12], [12, 40], [40, bytes.length]]) {
    await stream.send(bytes.subarray(from, to));
    await sleep(5);
  }
  assertEquals((await stream.message())["type"], "auth_ok");
  await stream.finish();
}

async function answersBeforeTheEnd(connection: RawConnection): Promise<void> {
  const stream = await connection.stream();
  for (let id = 1; id <= 20; id++) await stream.send(publish({ payloads: ["x"], requestId: id }));
  await stream.finish();
  const acks = (await stream.rest()).map(readAck);
  assertEquals(acks.map((ack) => ack.requestId), Array.from({ length: 20 }, (_, at) => at + 1));
  assertEquals(acks.every((ack) => ack.ok), true);
}

async function cacheRequestWithoutId(connection: RawConnection): Promise<void> {
  const put = await connection.stream();
  await put.send(json({ type: "cache_put", ...names, cache: "sessions", key: "l", value: "dg==" }));
  assertEquals(await put.text(), '{"type":"ok"}');
  assertEquals(await put.rest(), []);
  const get = await connection.stream();
  await get.send(json({ type: "cache_get", ...names, cache: "sessions", key: "l" }));
  assertEquals((await get.message())["value"], "dg==");
  assertEquals(await get.rest(), []);
}

async function nothingAfterSubscribe(connection: RawConnection): Promise<void> {
  const stream = await connection.stream();
  await stream.send(json({ type: "subscribe", ...names, stream: "events" }));
  await stream.offer(json({ type: "topology" }));
  const events = await connection.acceptEvents();
  assertEquals((await events.message())["type"], "event_stream_hello");
  assertEquals((await stream.message())["type"], "subscribed");
  assertEquals(await stream.rest(), []);
  events.cancel();
}

async function fortyStreams(connection: RawConnection): Promise<void> {
  const streams = await Promise.all(Array.from({ length: 40 }, () => connection.stream()));
  const answers = await Promise.all(streams.map((stream) => stream.ask({ type: "topology" })));
  assertEquals(answers.every((answer) => answer["type"] === "topology_view"), true);
  await Promise.all(streams.map((stream) => stream.finish()));
}

Deno.test({
  name: "streams begin and end as agreed",
  sanitizeOps: true,
  sanitizeResources: true,
  fn: async (test) => {
    await using broker = await DevBroker.start();
    await using connection = await RawConnection.connect(broker);
    await test.step("frames of 64 KiB before auth", () => largestFrameBeforeAuth(connection));
    await test.step("a frame in pieces", () => frameInPieces(connection));
    await test.step("answers owed, then the end", () => answersBeforeTheEnd(connection));
    await test.step("a cache request without id", () => cacheRequestWithoutId(connection));
    await test.step("nothing is read after subscribe", () => nothingAfterSubscribe(connection));
    await test.step("forty streams at once", () => fortyStreams(connection));
    await test.step("the connection still serves", () => connection.assertServes());
  },
});

Deno.test({
  name: "at most 16 streams are read before they authenticate; further ones wait",
  sanitizeOps: true,
  sanitizeResources: true,
  fn: async () => {
    await using broker = await DevBroker.start();
    await using connection = await RawConnection.connect(broker);
    const silent: RawStream[] = [];
    for (let count = 0; count < 16; count++) {
      const stream = await connection.open();
      await stream.send(utf8("FLX1"));
      silent.push(stream);
    }
    await sleep(200);
    const late = await connection.open();
    await late.send(json(connection.auth()));
    let answered = false;
    const answer = late.message().then((message) => {
      answered = true;
      return message;
    });
    await sleep(500);
    assertEquals(answered, false, "the 17th stream was read");
    await silent[0]!.finish();
    assertEquals((await answer)["type"], "auth_ok");
    await late.finish();
    for (const stream of silent) await stream.finish();
  },
});

Deno.test({
  name: "an idle connection outlives the idle timeout",
  sanitizeOps: true,
  sanitizeResources: true,
  fn: async () => {
    await using broker = await DevBroker.start();
    await using connection = await RawConnection.connect(broker);
    const stream = await connection.stream();
    await sleep(8000);
    assertEquals((await stream.ask({ type: "topology" }))["type"], "topology_view");
    await stream.finish();
  },
});
