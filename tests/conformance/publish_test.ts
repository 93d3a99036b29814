// spec/wire.md §8: one answer for every acked publish, in the order of the stream under a window,
// and what was acknowledged arrives once and in order.

import { assertEquals } from "@std/assert";
import { DevBroker } from "../support/servers.ts";
import { concat, json, publish, type RawFrame, readAck, readJson, textOf } from "./frames.ts";
import { RawConnection, type RawStream } from "./raw_client.ts";

const names = { tenant_id: "t1", namespace: "default" };
const WITHOUT_WINDOW = { client_flags: 0x1fff, client_features: 0x0800 };

function requestIdOf(frame: RawFrame): number {
  return frame.flags === 0 ? Number(readJson(frame)["request_id"]) : readAck(frame).requestId;
}

/** Publishes of every kind: binary, JSON, batches, and some that are refused at once. */
function mixed(requestId: number): Uint8Array {
  switch (requestId % 5) {
    case 0:
      return publish({ payloads: [`m${requestId}`], requestId });
    case 1:
      return publish({ payloads: [`m${requestId}`], requestId, ackMode: 2, key: "k" });
    case 2:
      return publish({ stream: "nowhere", payloads: ["x"], requestId });
    case 3:
      return json({
        type: "publish",
        ...names,
        stream: "events",
        payload: btoa(`m${requestId}`),
        request_id: requestId,
      });
    default:
      return publish({ tenant: "t2", payloads: ["x"], requestId });
  }
}

async function readAnswers(stream: RawStream, count: number): Promise<number[]> {
  const ids: number[] = [];
  while (ids.length < count) ids.push(requestIdOf(await stream.frame()));
  return ids;
}

const COUNT = 2000;

async function answersInOrder(connection: RawConnection): Promise<void> {
  const stream = await connection.stream();
  const ids = Array.from({ length: COUNT }, (_, index) => index + 1);
  const reading = readAnswers(stream, COUNT);
  for (let from = 0; from < COUNT; from += 100) {
    await stream.send(concat(...ids.slice(from, from + 100).map(mixed)));
  }
  assertEquals(await reading, ids);
  await stream.finish();
  assertEquals(await stream.rest(), []);
}

async function oneAnswerEach(connection: RawConnection): Promise<void> {
  const stream = await connection.stream(WITHOUT_WINDOW);
  const ids = Array.from({ length: COUNT }, (_, index) => index + 1);
  const reading = readAnswers(stream, COUNT);
  for (const id of ids) await stream.send(mixed(id));
  assertEquals((await reading).toSorted((left, right) => left - right), ids);
  await stream.finish();
  assertEquals(await stream.rest(), []);
}

async function deliveredInOrder(connection: RawConnection): Promise<void> {
  const { events } = await connection.subscribe();
  const publisher = await connection.stream();
  const sent: string[] = [];
  for (let batch = 0; batch < 100; batch++) {
    const payloads = Array.from({ length: 1 + (batch % 7) }, (_, index) => `b${batch}.${index}`);
    sent.push(...payloads);
    await publisher.send(publish({ payloads, requestId: batch + 1 }));
  }
  assertEquals((await events.events(sent.length)).map(textOf), sent);
  events.cancel();
  await publisher.finish();
}

async function unansweredForms(connection: RawConnection): Promise<void> {
  const { events } = await connection.subscribe();
  const stream = await connection.stream();
  await stream.send(publish({ payloads: ["plain"] }));
  await stream.send(publish({ payloads: ["keyed"], key: "" }));
  await stream.send(json({
    type: "publish_batch",
    ...names,
    stream: "events",
    payloads: [btoa("json")],
    request_id: 9,
    ack: "none",
  }));
  assertEquals((await events.events(3)).map(textOf), ["plain", "keyed", "json"]);
  assertEquals((await stream.ask({ type: "topology" }))["type"], "topology_view");
  events.cancel();
  await stream.finish();
}

async function emptyBatch(connection: RawConnection): Promise<void> {
  const { events } = await connection.subscribe();
  const stream = await connection.stream();
  await stream.send(publish({ payloads: [], requestId: 1 }));
  assertEquals(readAck(await stream.frame()), { ok: true, requestId: 1, message: "" });
  await stream.send(publish({ payloads: ["", "after"], requestId: 2 }));
  assertEquals((await events.events(2)).map(textOf), ["", "after"]);
  events.cancel();
  await stream.finish();
}

async function largeRecords(connection: RawConnection): Promise<void> {
  const { events } = await connection.subscribe();
  const stream = await connection.stream();
  const limit = new Uint8Array(8 * 1024 * 1024).fill(7);
  await stream.send(publish({ payloads: [limit], requestId: 1 }));
  assertEquals(readAck(await stream.frame()).ok, true);
  const [received] = await events.events(1);
  assertEquals(received!.length, limit.length);
  assertEquals(received!.every((byte) => byte === 7), true);
  await stream.send(publish({ payloads: [new Uint8Array(limit.length + 1)], requestId: 2 }));
  const { ok, code, retry } = readAck(await stream.frame());
  assertEquals({ ok, code, retry }, { ok: false, code: 11, retry: 5 });
  events.cancel();
  await stream.finish();
}

/** Request ids pass 2^53 unharmed. */
async function largeRequestIds(connection: RawConnection): Promise<void> {
  const stream = await connection.stream();
  const id = 18_446_744_073_709_551_615n;
  const scope = '"tenant_id":"t1","namespace":"default","stream":"events"';
  await stream.send(json(`{"type":"publish",${scope},"payload":"eA==","request_id":${id}}`));
  assertEquals(await stream.text(), `{"type":"publish_ok","request_id":${id}}`);
  await stream.send(publish({ payloads: ["x"], requestId: id }));
  assertEquals((await stream.frame()).payload.subarray(1, 9), new Uint8Array(8).fill(0xff));
  await stream.finish();
}

Deno.test({
  name: "publishing",
  sanitizeOps: true,
  sanitizeResources: true,
  fn: async (test) => {
    await using broker = await DevBroker.start();
    await using connection = await RawConnection.connect(broker);
    await test.step("answers in order under a window", () => answersInOrder(connection));
    await test.step("one answer each without a window", () => oneAnswerEach(connection));
    await test.step("delivered once and in order", () => deliveredInOrder(connection));
    await test.step("forms without an answer", () => unansweredForms(connection));
    await test.step("an empty batch", () => emptyBatch(connection));
    await test.step("records up to 8 MiB", () => largeRecords(connection));
    await test.step("request ids past 2^53", () => largeRequestIds(connection));
    await test.step("the connection still serves", () => connection.assertServes());
  },
});

Deno.test({
  name: "acks on enqueue: answered, delivered in order, and refused where they must be",
  sanitizeOps: true,
  sanitizeResources: true,
  fn: async () => {
    await using broker = await DevBroker.start({ env: { FELIX_ACK_ON_COMMIT: "false" } });
    await using connection = await RawConnection.connect(broker);
    await answersInOrder(connection);
    await deliveredInOrder(connection);
    await emptyBatch(connection);
  },
});
