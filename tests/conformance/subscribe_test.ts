// spec/wire.md §1.5 and §4.5: hello, then the answer, then history, then live events, without a
// gap or a duplicate; positions that cannot be served; how a subscription ends.

import { assert, assertEquals } from "@std/assert";
import { poll } from "../support/poll.ts";
import { DevBroker } from "../support/servers.ts";
import { json, publish, readAck, readJson, textOf } from "./frames.ts";
import { RawConnection, type RawStream } from "./raw_client.ts";

const names = { tenant_id: "t1", namespace: "default" };
const subscribe = { type: "subscribe", ...names, stream: "events" };

function range(from: number, to: number): string[] {
  return Array.from({ length: to - from }, (_, index) => `e${from + index}`);
}

/** Publishes one batch per entry and waits for every ack. */
async function publishAll(stream: RawStream, payloads: readonly string[]): Promise<void> {
  const sending = (async () => {
    for (const [index, payload] of payloads.entries()) {
      await stream.send(publish({ payloads: [payload], requestId: index + 1 }));
    }
  })();
  for (const payload of payloads) assertEquals(readAck(await stream.frame()).ok, true, payload);
  await sending;
}

async function answersTo(
  connection: RawConnection,
  request: Record<string, unknown>,
): Promise<Record<string, unknown>> {
  const stream = await connection.stream();
  await stream.send(json({ ...subscribe, ...request }));
  await stream.finish();
  const frames = await stream.rest();
  assertEquals(frames.length, 1);
  return readJson(frames[0]!);
}

async function historyJoinsLive(connection: RawConnection): Promise<void> {
  const publisher = await connection.stream();
  await publishAll(publisher, range(0, 200));
  const live = publishAll(publisher, range(200, 600));
  const { events } = await connection.subscribe({ start: "earliest" });
  assertEquals((await events.events(600)).map(textOf), range(0, 600));
  await live;
  events.cancel();
  await publisher.finish();
}

async function positions(connection: RawConnection): Promise<void> {
  const middle = await connection.subscribe({ start: { offset: 590 } });
  assertEquals((await middle.events.events(10)).map(textOf), range(590, 600));
  const tail = await connection.subscribe({ start: { offset: 600 } });
  const latest = await connection.subscribe({ start: "latest" });
  const plain = await connection.subscribe();
  const publisher = await connection.stream();
  await publishAll(publisher, ["e600"]);
  for (const { events } of [middle, tail, latest, plain]) {
    assertEquals((await events.events(1)).map(textOf), ["e600"]);
    events.cancel();
  }
  await publisher.finish();
}

async function cursorErrors(connection: RawConnection): Promise<void> {
  const publisher = await connection.stream();
  await publishAll(publisher, range(601, 2000));
  assertEquals(await answersTo(connection, { start: { offset: 2001 } }), {
    type: "subscribe_cursor_error",
    reason: "in_future",
    requested: 2001,
    available: 2000,
  });
  const tooOld = await answersTo(connection, { start: { offset: 3 } });
  assertEquals({ ...tooOld, available: 0 }, {
    type: "subscribe_cursor_error",
    reason: "too_old",
    requested: 3,
    available: 0,
  });
  const oldest = Number(tooOld["available"]);
  assert(oldest > 3 && oldest < 2000, `the oldest record is ${oldest}`);
  const { events } = await connection.subscribe({ start: "earliest" });
  assertEquals((await events.events(2000 - oldest)).map(textOf), range(oldest, 2000));
  events.cancel();
  await publisher.finish();
}

async function identifiers(connection: RawConnection): Promise<void> {
  const first = await connection.subscribe({ subscription_id: 77 });
  assertEquals(first.subscribed["subscription_id"], 77);
  const again = await answersTo(connection, { subscription_id: 77 });
  assertEquals([again["type"], again["code"]], ["error", "invalid_request"]);
  const other = await connection.subscribe();
  assert(other.subscribed["subscription_id"] !== 77);
  other.events.cancel();
  first.events.cancel();
}

async function queueCapacity(connection: RawConnection): Promise<void> {
  const asked = await connection.subscribe({ queue_capacity: 7 });
  assertEquals(asked.subscribed["queue_capacity"], 7);
  const least = await connection.subscribe({ queue_capacity: 0 });
  assertEquals(least.subscribed["queue_capacity"], 1);
  const silent = await connection.subscribe();
  assert(!("queue_capacity" in silent.subscribed));
  for (const { events } of [asked, least, silent]) events.cancel();
}

async function shardOutOfRange(connection: RawConnection): Promise<void> {
  const answer = await answersTo(connection, { shard: 1 });
  assertEquals([answer["type"], answer["code"]], ["error", "invalid_request"]);
}

/** STOP_SENDING is noticed at a later write; then the subscriber and its queue are gone. */
async function cancelledSubscriptions(connection: RawConnection): Promise<void> {
  const { events } = await connection.subscribe();
  events.cancel();
  const publisher = await connection.stream();
  let id = 0;
  await poll(async () => {
    await publisher.send(publish({ payloads: ["x"], requestId: ++id }));
    assertEquals(readAck(await publisher.frame()).ok, true);
    return await connection.broker.metric("felix_sub_connection_subscribers") === 0;
  }, { what: "the end of cancelled subscriptions" });
  await publisher.finish();
}

Deno.test({
  name: "subscribing",
  sanitizeOps: true,
  sanitizeResources: true,
  fn: async (test) => {
    await using broker = await DevBroker.start();
    await using connection = await RawConnection.connect(broker);
    await test.step("history joins live", () => historyJoinsLive(connection));
    await test.step("positions", () => positions(connection));
    await test.step("positions that cannot be served", () => cursorErrors(connection));
    await test.step("identifiers", () => identifiers(connection));
    await test.step("queue capacity", () => queueCapacity(connection));
    await test.step("a shard outside the width", () => shardOutOfRange(connection));
    await test.step("cancelled by the client", () => cancelledSubscriptions(connection));
    await test.step("the connection still serves", () => connection.assertServes());
  },
});

Deno.test({
  name: "subscriptions of one connection are limited",
  sanitizeOps: true,
  sanitizeResources: true,
  fn: async () => {
    const env = { FELIX_MAX_SUBSCRIPTIONS_PER_CONN: "2" };
    await using broker = await DevBroker.start({ env });
    await using connection = await RawConnection.connect(broker);
    const first = await connection.subscribe();
    const second = await connection.subscribe();
    const third = await answersTo(connection, {});
    assertEquals([third["code"], third["message"]], [
      "limit_exceeded",
      "max subscriptions per connection exceeded",
    ]);
    await using other = await RawConnection.connect(broker);
    const elsewhere = await other.subscribe();
    for (const { events } of [first, second, elsewhere]) events.cancel();
  },
});

interface RoutingVector {
  /** Hex; `null`: a publish without a key. */
  readonly key_hex: string | null;
  /** Shard by width. */
  readonly modulo: Readonly<Record<string, number>>;
}

async function routingVectors(): Promise<RoutingVector[]> {
  const file = new URL("../vectors/routing_v1.json", import.meta.url);
  return JSON.parse(await Deno.readTextFile(file)) as RoutingVector[];
}

Deno.test({
  name: "a key goes to the shard that the routing vectors name, and nowhere else",
  sanitizeOps: true,
  sanitizeResources: true,
  fn: async () => {
    await using broker = await DevBroker.start();
    await using connection = await RawConnection.connect(broker);
    const control = await connection.stream();
    const question = { type: "stream_shards", ...names, stream: "wide", request_id: 1 };
    const width = Number((await control.ask(question))["shards"]);
    assert(width > 1, `the stream "wide" has ${width} shards`);
    const expected: string[][] = Array.from({ length: width }, () => []);
    const frames: Uint8Array[] = [];
    for (const [index, vector] of (await routingVectors()).entries()) {
      const payload = `#${index}`;
      expected[vector.modulo[width]!]!.push(payload);
      const key = vector.key_hex === null ? {} : { key: Uint8Array.fromHex(vector.key_hex) };
      frames.push(publish({ stream: "wide", payloads: [payload], requestId: index + 1, ...key }));
    }
    for (const bytes of frames) await control.send(bytes);
    for (const _ of frames) assertEquals(readAck(await control.frame()).ok, true);
    for (const [shard, payloads] of expected.entries()) {
      const { events } = await connection.subscribe({ stream: "wide", shard, start: "earliest" });
      assertEquals((await events.events(payloads.length)).map(textOf), payloads, `shard ${shard}`);
      events.cancel();
    }
    await control.finish();
  },
});
