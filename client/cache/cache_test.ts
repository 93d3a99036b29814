// Caches against a scripted broker (spec/client.md §9; conformance ids of §22 in brackets). Each
// test puts a script in front of the memory cache for what is to go wrong.

import { assert, assertEquals, assertInstanceOf, assertRejects } from "@std/assert";
import type { Message } from "@felix/wire";
import {
  AuthError,
  InvalidArgumentError,
  NotFoundError,
  OutcomeUnknownError,
  ProtocolError,
  TimeoutError,
  UnsupportedError,
} from "../failure/classes.ts";
import { FelixError } from "../failure/felix_error.ts";
import type { BrokerStream } from "../testing/broker_stream.ts";
import { connectTo, networkTest, until } from "../testing/fixture.ts";
import { ScriptedBroker } from "../testing/scripted_broker.ts";
import type { Script } from "../testing/scripted_broker.ts";

type CacheMessage = Extract<Message, { type: "cache_get" | "cache_put" | "cache_delete" }>;

/** Runs `act` for the first `times` cache requests instead of serving them. */
function first(
  times: number,
  act: (stream: BrokerStream, message: CacheMessage) => void,
): Required<Pick<Script, "message">> & { seen: number } {
  const script = {
    seen: 0,
    message(stream: BrokerStream, message: Message): boolean {
      const { type } = message;
      if (type !== "cache_get" && type !== "cache_put" && type !== "cache_delete") return false;
      if (++script.seen > times) return false;
      act(stream, message);
      return true;
    },
  };
  return script;
}

networkTest("put, get, delete, miss [cache.put_get, miss_is_absent, delete_returns]", async () => {
  await using broker = await ScriptedBroker.start();
  await using client = await connectTo(broker);
  const sessions = client.cache("sessions");
  const bytes = crypto.getRandomValues(new Uint8Array(1000));
  await sessions.put("k", bytes);
  assertEquals(await sessions.get("k"), bytes);
  await sessions.put("empty", "");
  assertEquals(await sessions.get("empty"), new Uint8Array(0));
  assertEquals(await sessions.delete("k"), bytes);
  assertEquals(await sessions.delete("k"), null);
  assertEquals(await sessions.get("k"), null);
  assertEquals(await sessions.getText("k"), null);
  await sessions.put('ключ "1"\n', "значение");
  assertEquals(await sessions.getText('ключ "1"\n'), "значение");
  assertEquals(await sessions.shards(), 1);
  const { cache } = client.metrics();
  assertEquals([cache.hits, cache.misses, cache.failed, cache.inflight], [3n, 2n, 0n, 0]);
});

networkTest("a time to live goes out in whole milliseconds", async () => {
  await using broker = await ScriptedBroker.start();
  await using client = await connectTo(broker);
  const sessions = client.cache("sessions");
  await sessions.put("k", "v");
  await sessions.put("k", "v", { ttlMs: 1500.4 });
  await sessions.put("k", "v", { ttlMs: 0.2 });
  assertEquals(broker.of("cache_put").map(({ ttl_ms }) => ttl_ms), [null, 1500n, 1n]);
  for (const ttlMs of [0, -1, NaN, Infinity]) {
    await assertRejects(() => sessions.put("k", "v", { ttlMs }), InvalidArgumentError);
  }
  await assertRejects(() => sessions.put("", "v"), InvalidArgumentError);
  await assertRejects(() => sessions.get("k", { timeoutMs: -1 }), InvalidArgumentError);
  assertEquals(broker.of("cache_put").length, 3);
});

networkTest("many keys at once, misses left out", async () => {
  await using broker = await ScriptedBroker.start();
  await using client = await connectTo(broker);
  const sessions = client.cache("sessions");
  await Promise.all(["a", "b", "c"].map((key) => sessions.put(key, key.toUpperCase())));
  const found = await sessions.getMany(["a", "x", "c", "a"]);
  const decoder = new TextDecoder();
  assertEquals([...found].map(([key, value]) => [key, decoder.decode(value)]), [
    ["a", "A"],
    ["c", "C"],
  ]);
});

networkTest("concurrent requests share few streams, answers come in any order", async () => {
  const waiting: { stream: BrokerStream; message: CacheMessage }[] = [];
  const script = first(200, (stream, message) => waiting.push({ stream, message }));
  await using broker = await ScriptedBroker.start(script);
  await using client = await connectTo(broker);
  const sessions = client.cache("sessions");
  const asked = Array.from({ length: 60 }, (_, n) => sessions.getText(`k${n}`));
  await until(() => waiting.length === 60);
  assertEquals(new Set(waiting.map(({ stream }) => stream)).size, 1);
  const more = Array.from({ length: 140 }, (_, n) => sessions.getText(`k${n + 60}`));
  await until(() => waiting.length === 200);
  const encoder = new TextEncoder();
  for (const { stream, message } of waiting.reverse()) {
    const { tenant_id, namespace, cache, key, request_id } = message;
    stream.send({
      type: "cache_value",
      tenant_id,
      namespace,
      cache,
      key,
      value: encoder.encode(`v-${key}`),
      request_id: request_id!,
    });
  }
  const values = await Promise.all([...asked, ...more]);
  assertEquals(values, Array.from({ length: 200 }, (_, n) => `v-k${n}`));
  assert(new Set(waiting.map(({ stream }) => stream)).size <= 4);
});

networkTest("no more than the limit is asked at once", async () => {
  const waiting: { stream: BrokerStream; id: bigint }[] = [];
  const script = first(6, (stream, { request_id }) => waiting.push({ stream, id: request_id! }));
  await using broker = await ScriptedBroker.start(script);
  await using client = await connectTo(broker, { limits: { cacheInflight: 2 } });
  const sessions = client.cache("sessions");
  const puts = Array.from({ length: 6 }, (_, n) => sessions.put(`k${n}`, "v"));
  for (let answered = 0; answered < 6; answered++) {
    await until(() => waiting.length === Math.min(6, answered + 2));
    assertEquals(client.metrics().cache.inflight, 2 - Math.max(0, answered - 4));
    waiting[answered]!.stream.send({ type: "cache_ok", request_id: waiting[answered]!.id });
    await puts[answered];
  }
});

networkTest("a coded refusal leaves the stream usable", async () => {
  await using broker = await ScriptedBroker.start(
    first(1, (stream) => stream.refuse("forbidden", "fatal")),
  );
  await using client = await connectTo(broker);
  const sessions = client.cache("sessions");
  const error = await assertRejects(() => sessions.get("k"), AuthError);
  assertEquals([error.code, error.operation, error.resource], [
    "forbidden",
    "cache.get",
    "default/sessions",
  ]);
  assertEquals(await sessions.get("k"), null);
  assertEquals(broker.connections.length, 2, "publish and cache");
});

networkTest("an error answers the oldest request", async () => {
  const waiting: { stream: BrokerStream; id: bigint }[] = [];
  const script = first(2, (stream, { request_id }) => waiting.push({ stream, id: request_id! }));
  await using broker = await ScriptedBroker.start(script);
  await using client = await connectTo(broker);
  const sessions = client.cache("sessions");
  const puts = [sessions.put("a", "1"), sessions.put("b", "2")];
  await until(() => waiting.length === 2);
  waiting[0]!.stream.refuse("limit_exceeded", "fatal");
  waiting[0]!.stream.send({ type: "cache_ok", request_id: waiting[1]!.id });
  await assertRejects(() => puts[0]!, FelixError);
  await puts[1];
});

networkTest("requests behind a refusal that ended the stream were not applied", async () => {
  await using broker = await ScriptedBroker.start({
    message(stream, message) {
      if (message.type !== "cache_put" || message.key !== "bad") return false;
      stream.refuse("forbidden", "fatal");
      stream.abandon();
      return true;
    },
  });
  await using client = await connectTo(broker);
  const sessions = client.cache("sessions");
  await sessions.put("warm", "up");
  const bad = sessions.put("bad", "1");
  const good = sessions.put("good", "2");
  await assertRejects(() => bad, AuthError);
  await good;
  assertEquals(await sessions.getText("good"), "2");
});

networkTest("a read that was lost is asked again, a write is not", async () => {
  const script = first(2, (stream) => stream.connection.close());
  await using broker = await ScriptedBroker.start(script);
  await using client = await connectTo(broker);
  const sessions = client.cache("sessions");
  assertEquals(await sessions.get("k"), null);
  const error = await assertRejects(async () => {
    script.seen = 1;
    await sessions.put("k", "v");
  }, OutcomeUnknownError);
  assertEquals([error.code, error.retryable, error.operation], [
    "outcome_unknown",
    false,
    "cache.put",
  ]);
  assertEquals(await sessions.get("k"), null);
  script.seen = 1;
  await sessions.put("k", "v", { idempotentRetry: true });
  assertEquals(await sessions.getText("k"), "v");
});

networkTest("an unknown outcome of a write is reported, of a read it is asked again", async () => {
  const script = first(1, (stream) => stream.refuse("internal", "outcome_unknown"));
  await using broker = await ScriptedBroker.start(script);
  await using client = await connectTo(broker);
  const sessions = client.cache("sessions");
  const error = await assertRejects(() => sessions.put("k", "v"), OutcomeUnknownError);
  assertEquals(error.brokerCode, "internal");
  script.seen = 0;
  assertEquals(await sessions.get("k"), null);
  assertEquals(script.seen, 2);
});

networkTest("a foreign request id breaks the stream", async () => {
  const script = first(2, (stream) => stream.send({ type: "cache_ok", request_id: 9999n }));
  await using broker = await ScriptedBroker.start(script);
  await using client = await connectTo(broker);
  const sessions = client.cache("sessions");
  const put = await assertRejects(() => sessions.put("k", "v"), OutcomeUnknownError);
  assertInstanceOf(put.cause, ProtocolError);
  const get = await assertRejects(() => sessions.get("k"), ProtocolError);
  assertEquals(get.code, "protocol");
  assertEquals(await sessions.get("k"), null);
});

networkTest("an answer of the wrong kind breaks the stream", async () => {
  const script = first(1, (stream, { request_id }) => {
    stream.send({ type: "cache_ok", request_id: request_id! });
  });
  await using broker = await ScriptedBroker.start(script);
  await using client = await connectTo(broker);
  await assertRejects(() => client.cache("sessions").get("k"), ProtocolError);
});

networkTest("an unknown cache is typed", async () => {
  await using broker = await ScriptedBroker.start();
  await using client = await connectTo(broker, { reconnect: { attempts: 1 } });
  await assertRejects(() => client.cache("none").get("k"), NotFoundError);
  await assertRejects(() => client.cache("none").shards(), NotFoundError);
});

networkTest("an uncoded `forbidden` is terminal, other uncoded text is asked again", async () => {
  const script = first(1, (stream) => stream.refuse(undefined, undefined, "Forbidden"));
  await using broker = await ScriptedBroker.start(script);
  await using client = await connectTo(broker);
  const sessions = client.cache("sessions");
  await assertRejects(() => sessions.get("k"), AuthError);
  script.seen = 0;
  script.message = first(1, (stream) => stream.refuse(undefined, undefined, "oops")).message;
  assertEquals(await sessions.get("k"), null);
});

networkTest("delete is not sent to a broker that does not know it", async () => {
  await using broker = await ScriptedBroker.start({}, { features: 0x800 });
  await using client = await connectTo(broker);
  const sessions = client.cache("sessions");
  const error = await assertRejects(() => sessions.delete("k"), UnsupportedError);
  assertEquals([error.code, error.feature], ["unsupported", "cacheDelete"]);
  await assertRejects(() => sessions.shards(), UnsupportedError);
  assertEquals(broker.messages.length, 0);
});

networkTest("abort before and after it was sent", async () => {
  const script = first(2, () => undefined);
  await using broker = await ScriptedBroker.start(script);
  await using client = await connectTo(broker);
  const sessions = client.cache("sessions");
  const reason = new Error("enough");
  const early = AbortSignal.abort(reason);
  assertEquals(await assertRejects(() => sessions.put("k", "v", { signal: early })), reason);
  assertEquals(script.seen, 0);
  const abort = new AbortController();
  const get = sessions.get("k", { signal: abort.signal });
  const put = sessions.put("k", "v", { signal: abort.signal });
  await until(() => script.seen === 2);
  abort.abort(reason);
  assertEquals(await assertRejects(() => get), reason);
  const unknown = await assertRejects(() => put, OutcomeUnknownError);
  assertEquals(unknown.cause, reason);
  assertEquals(await sessions.get("k"), null, "the stream goes on");
  assertEquals(broker.connections.length, 2);
});

networkTest("time limits: reads time out, writes are in doubt", async () => {
  const script = first(3, () => undefined);
  await using broker = await ScriptedBroker.start(script);
  await using client = await connectTo(broker, { requestTimeoutMs: 100 });
  const sessions = client.cache("sessions");
  const read = await assertRejects(() => sessions.get("k", { timeoutMs: 40 }), TimeoutError);
  assertEquals([read.code, read.retryable, read.timeoutMs], ["timeout", true, 40]);
  const swept = await assertRejects(() => sessions.get("k"), TimeoutError);
  assertEquals(swept.timeoutMs, 100);
  const write = await assertRejects(() => sessions.put("k", "v"), OutcomeUnknownError);
  assertInstanceOf(write.cause, TimeoutError);
  // A read may have been given up before it was sent: from here on all are served.
  await until(() => broker.of("cache_put").length === 1);
  script.seen = 3;
  assertEquals(await sessions.get("k", { timeoutMs: 20_000 }), null);
});
