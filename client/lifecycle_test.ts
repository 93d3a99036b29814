// Closing, giving up, disposal, hooks and logs (spec/client.md §15, §16; `client.*` of §22). Leak
// sanitizers are on: what a closed client leaves behind fails the test.

import { assert, assertEquals, assertInstanceOf, assertRejects } from "@std/assert";
import { ClosedError, ConnectionError, OutcomeUnknownError } from "./failure/classes.ts";
import type { BrokerStream } from "./testing/broker_stream.ts";
import { connectTo, networkTest, until } from "./testing/fixture.ts";
import { ScriptedBroker } from "./testing/scripted_broker.ts";

networkTest("close refuses new calls and is idempotent [client.close_is_idempotent]", async () => {
  await using broker = await ScriptedBroker.start();
  const client = await connectTo(broker);
  const orders = client.stream("orders");
  const sessions = client.cache("sessions");
  const subscription = await orders.subscribe();
  const reading = subscription.next();
  await Promise.all([client.close(), client.close()]);
  await client.close();
  assert(client.closed);
  assertEquals(await reading, null, "a read in flight is not waited for");
  assert(subscription.closed, "subscriptions do not outlive their client");
  const refused = [
    () => orders.publish("x"),
    () => orders.subscribe(),
    () => sessions.get("k"),
    () => sessions.put("k", "v"),
    () => sessions.shards(),
    () => client.refreshTopology(),
  ];
  for (const call of refused) await assertRejects(call, ClosedError);
  await until(() => broker.open.length === 0);
  const info = await Promise.all(broker.connections.map(({ connection }) => connection.closed));
  for (const { applicationCode, reason } of info) {
    assertEquals([applicationCode, reason], [0, "client closed"]);
  }
  assertEquals(client.metrics().connections.open, 0);
});

networkTest("close waits for what is under way", async () => {
  const held: (() => void)[] = [];
  await using broker = await ScriptedBroker.start({
    publish(stream, frame) {
      const { requestId } = frame;
      held.push(() => stream.ack({ requestId, offset: 3n }));
      return true;
    },
  });
  const client = await connectTo(broker);
  const publishing = client.stream("orders").publish("x");
  await until(() => held.length === 1);
  const closing = client.close();
  held[0]!();
  assertEquals((await publishing).offset, 3n);
  await closing;
});

networkTest("what is unanswered after the drain: reads closed, writes in doubt", async () => {
  let seen = 0;
  await using broker = await ScriptedBroker.start({
    publish: () => ++seen > 0,
    message: (_stream, { type }) => type.startsWith("cache_") && ++seen > 0,
  });
  const client = await connectTo(broker);
  const publish = assertRejects(() => client.stream("orders").publish("x"), OutcomeUnknownError);
  const put = assertRejects(() => client.cache("sessions").put("k", "v"), OutcomeUnknownError);
  const get = assertRejects(() => client.cache("sessions").get("k"));
  await until(() => seen === 3);
  await client.close({ drainMs: 30 });
  assertInstanceOf((await publish).cause, ClosedError);
  assertInstanceOf((await put).cause, ClosedError);
  await get;
});

networkTest("unacked publishes have left before close is over", async () => {
  await using broker = await ScriptedBroker.start();
  const client = await connectTo(broker);
  const orders = client.stream("orders");
  for (let n = 0; n < 200; n++) void orders.publish(`record ${n}`, { ack: "none" });
  await client.close();
  await until(() => broker.memory.shard("orders").records.length === 200);
});

networkTest("abort before hand-over sends nothing and frees its bytes", async () => {
  const streams: BrokerStream[] = [];
  await using broker = await ScriptedBroker.start({
    publish(stream) {
      streams.push(stream);
      return true;
    },
  });
  await using client = await connectTo(broker, { limits: { publishInflightBytes: 100 } });
  const orders = client.stream("orders");
  const reason = new Error("enough");
  const early = orders.publish("x", { signal: AbortSignal.abort(reason) });
  assertEquals(await assertRejects(() => early), reason);
  const first = orders.publish(new Uint8Array(90), { timeoutMs: 300 });
  const abort = new AbortController();
  const waiting = orders.publish(new Uint8Array(90), { signal: abort.signal });
  await until(() => streams.length === 1);
  abort.abort(reason);
  assertEquals(await assertRejects(() => waiting), reason);
  await assertRejects(() => first, OutcomeUnknownError);
  assertEquals([streams.length, client.metrics().publish.inflightBytes], [1, 0]);
});

networkTest("abort after hand-over: a publish is in doubt", async () => {
  let seen = 0;
  await using broker = await ScriptedBroker.start({ publish: () => ++seen > 0 });
  await using client = await connectTo(broker);
  const abort = new AbortController();
  const reason = new Error("enough");
  const publishing = client.stream("orders").publish("x", { signal: abort.signal });
  await until(() => seen === 1);
  abort.abort(reason);
  const error = await assertRejects(() => publishing, OutcomeUnknownError);
  assertEquals([error.cause, error.attempts, error.outcomeUnknown], [reason, 1, true]);
  await client.close({ drainMs: 10 });
});

networkTest("closing in the middle of a reconnect ends it", async () => {
  const broker = await ScriptedBroker.start();
  const client = await connectTo(broker, { dialTimeoutMs: 2000 });
  await client.cache("sessions").put("k", "v");
  await broker.stop();
  await until(() => client.connections().length === 0);
  const get = assertRejects(() => client.cache("sessions").get("k"));
  const publish = assertRejects(() => client.stream("orders").publish("x"));
  await client.close({ drainMs: 20 });
  await Promise.all([get, publish]);
});

networkTest("concurrent calls of all kinds [client.concurrent_calls]", async () => {
  await using broker = await ScriptedBroker.start();
  await using client = await connectTo(broker);
  const orders = client.stream("orders");
  const sessions = client.cache("sessions");
  await using subscription = await orders.subscribe();
  await Promise.all(Array.from({ length: 100 }, async (_, n) => {
    await sessions.put(`k${n}`, String(n));
    const { offset } = await orders.publish(String(n));
    assert(offset !== null);
    assertEquals(await sessions.getText(`k${n}`), String(n));
  }));
  const seen = new Set<string>();
  while (seen.size < 100) {
    for (const event of await subscription.readBatch(50)) seen.add(event.text());
  }
  assertEquals(broker.connections.length, 3);
});

networkTest("hooks and logs hear of it; one that throws does no harm", async () => {
  await using broker = await ScriptedBroker.start();
  const heard: string[] = [];
  const lines: string[] = [];
  const logger = {
    debug: (message: string) => void lines.push(message),
    info: (message: string) => void lines.push(message),
    warn: (message: string) => void lines.push(message),
    error: (message: string) => void lines.push(message),
  };
  const client = await connectTo(broker, {
    logger,
    hooks: {
      onConnect({ role, features }) {
        heard.push(`connect ${role}`);
        assert(features.includes("errorCodes"));
        throw new Error("from a hook");
      },
      onDisconnect({ role, error, reason }) {
        heard.push(`disconnect ${role} ${error?.code} ${reason}`);
      },
    },
  });
  await client.cache("sessions").put("k", "v");
  broker.drop();
  await until(() => heard.length === 4);
  assertEquals(heard.toSorted(), [
    "connect cache",
    "connect publish",
    "disconnect cache connection broker shutting down",
    "disconnect publish connection broker shutting down",
  ]);
  assertEquals(lines.filter((line) => line.includes("onConnect threw")).length, 1);
  assert(lines.every((line) => !line.includes("a-token")));
  await client.close();
  const { connections } = client.metrics();
  assertEquals([connections.dialed, connections.closed, connections.open], [2n, 2n, 0]);
});

networkTest("a stream that ends without an answer is no answer", async () => {
  await using broker = await ScriptedBroker.start({
    message(stream, { type }) {
      if (type === "stream_shards") stream.finish();
      return type === "stream_shards";
    },
  });
  await using client = await connectTo(broker, { reconnect: { attempts: 2, backoffMs: 1 } });
  const error = await assertRejects(() => client.stream("orders").routing(), ConnectionError);
  assertEquals([error.phase, error.retryable], ["request", true]);
  assertEquals(broker.of("stream_shards").length, 2);
});
