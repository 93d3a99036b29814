// Caches on logs over the wire: what survives a restart and a kill, watches, counters, conditions,
// and what is refused (spec/semantics.md §6, §7, §12 CA4-CA31; spec/wire.md §4.6).

import { assert, assertEquals } from "@std/assert";
import { poll } from "../support/poll.ts";
import { DevBroker } from "../support/servers.ts";
import { concat, json, readJson } from "./frames.ts";
import { FULL_OFFER, RawConnection } from "./raw_client.ts";
import type { FrameStream, RawStream } from "./raw_client.ts";

type Message = Record<string, unknown>;

const scope = { tenant_id: "t1", namespace: "default", cache: "sessions" };
const wide = { ...scope, cache: "wide" };

function test(name: string, body: (broker: DevBroker) => Promise<void>): void {
  Deno.test({
    name,
    sanitizeOps: true,
    sanitizeResources: true,
    fn: async () => {
      await using broker = await DevBroker.start({ durable: true });
      await body(broker);
    },
  });
}

const put = (key: string, value: string, more: Message = {}): Message => ({
  type: "cache_put",
  ...scope,
  key,
  value: btoa(value),
  request_id: 1,
  ...more,
});
const remove = (key: string): Message => ({ type: "cache_delete", ...scope, key, request_id: 1 });

async function store(stream: RawStream, key: string, value: string, more: Message = {}) {
  assertEquals(await stream.ask(put(key, value, more)), { type: "cache_ok", request_id: 1 });
}

async function valueOf(stream: RawStream, key: string): Promise<string | null> {
  const answer = await stream.ask({ type: "cache_get", ...scope, key, request_id: 1 });
  assertEquals(answer["type"], "cache_value", JSON.stringify(answer));
  const value = answer["value"] as string | null;
  return value === null ? null : atob(value);
}

/** Opens a watch; `events` is its event stream, past the hello. */
async function watch(
  connection: RawConnection,
  request: Message,
): Promise<{ started: Message; events: FrameStream }> {
  const stream = await connection.stream();
  await stream.send(json({ type: "cache_watch", ...scope, ...request }));
  await stream.finish();
  const started = await stream.message();
  assertEquals(started["type"], "cache_watch_started", JSON.stringify(started));
  const events = await connection.acceptEvents();
  const hello = await events.message();
  assertEquals(hello, {
    type: "event_stream_hello",
    subscription_id: started["subscription_id"],
  });
  return { started, events };
}

async function changes(events: FrameStream, count: number): Promise<string[]> {
  const seen: string[] = [];
  while (seen.length < count) {
    const { type, key, value, offset, expires_at_millis } = await events.message();
    assertEquals([type, typeof expires_at_millis], ["cache_event", "number"]);
    const held = value === undefined ? " gone" : `=${atob(value as string)}`;
    seen.push(`${offset} ${key}${held}`);
  }
  return seen;
}

test("values, lives and deletes outlive a restart and a kill [CA4, CA5, CA9]", async (broker) => {
  for (let round = 0; round < 3; round++) {
    await using connection = await RawConnection.connect(broker);
    const stream = await connection.stream();
    if (round > 0) {
      assertEquals(await valueOf(stream, "kept"), `round ${round - 1}`);
      assertEquals(await valueOf(stream, "long"), "v");
      assertEquals(await valueOf(stream, "deleted"), null);
      assertEquals(await valueOf(stream, "short"), null, "a restart does not restart a life");
    }
    await store(stream, "kept", `round ${round}`);
    await store(stream, "long", "v", { ttl_ms: 3_600_000 });
    await store(stream, "deleted", "v");
    assertEquals((await stream.ask(remove("deleted")))["value"], btoa("v"));
    await store(stream, "short", "v", { ttl_ms: 1 });
    await stream.finish();
    if (round === 0) await broker.restart();
    else {
      await broker.kill();
      await broker.restart();
    }
  }
});

test("a kill under load loses no acked value and no counted add", async (broker) => {
  let acked = -1;
  let counted = 0;
  {
    await using connection = await RawConnection.connect(broker);
    const stream = await connection.stream();
    const reading = (async () => {
      for (;;) {
        const answer = await stream.next().catch(() => null);
        if (answer === null) return;
        const { type, request_id } = readJson(answer);
        if (type === "cache_ok") acked = request_id as number;
        else counted++;
      }
    })();
    const writing = (async () => {
      for (let at = 0; at < 20_000; at++) {
        const both = concat(
          json(put(`k${at % 100}`, `${at}`, { request_id: at })),
          json({ type: "counter_add", ...scope, key: "adds", delta: 1, request_id: at }),
        );
        if (await stream.send(both).then(() => false, () => true)) return;
      }
    })();
    await poll(() => acked > 500, { what: "acked puts" });
    await broker.kill();
    await Promise.all([reading, writing]);
  }
  await broker.restart();
  await using connection = await RawConnection.connect(broker);
  const stream = await connection.stream();
  for (let key = 0; key < 100; key++) {
    const newest = acked - ((acked - key) % 100);
    const value = Number(await valueOf(stream, `k${key}`));
    assert(value >= newest && value % 100 === key, `k${key} is ${value}, acked ${newest}`);
  }
  const sum = await stream.ask({ type: "counter_get", ...scope, key: "adds", request_id: 1 });
  assert(Number(sum["value"]) >= counted, `${sum["value"]} adds, ${counted} acked`);
});

test("watches of a key, a prefix and of retained values [CA16, CA17, CA20]", async (broker) => {
  await using connection = await RawConnection.connect(broker);
  const stream = await connection.stream();
  await store(stream, "u:0", "old");
  const key = await watch(connection, { key: "k" });
  const prefix = await watch(connection, { prefix: "u:", retained: true });
  const nothing = await watch(connection, { prefix: "zz", retained: true });
  assertEquals([key.started["resume_offset"], key.started["retained_count"]], [1, undefined]);
  assertEquals([prefix.started["retained_count"], prefix.started["resnapshot"]], [1, false]);
  assertEquals(nothing.started["retained_count"], 0);
  for (const name of ["k", "j", "k", "u:1", "zz"]) await store(stream, name, "v");
  await stream.ask(remove("u:1"));
  assertEquals(await changes(key.events, 2), ["1 k=v", "3 k=v"]);
  assertEquals(await changes(prefix.events, 3), ["0 u:0=old", "4 u:1=v", "6 u:1 gone"]);
  assertEquals(await changes(nothing.events, 1), ["5 zz=v"]);
  assertEquals(await broker.metric("felix_cache_watches"), 3);
  key.events.cancel();
  await store(stream, "k", "v");
  await poll(async () => await broker.metric("felix_cache_watches") === 2, { what: "the end" });
});

test("a watch resumes from an offset, over a restart too [CA18]", async (broker) => {
  {
    await using connection = await RawConnection.connect(broker);
    const stream = await connection.stream();
    for (let at = 0; at < 10; at++) await store(stream, `k${at % 2}`, `${at}`);
  }
  await broker.restart();
  await using connection = await RawConnection.connect(broker);
  const stream = await connection.stream();
  const { started, events } = await watch(connection, { prefix: "k1", from_offset: 3 });
  assertEquals([started["resume_offset"], started["resnapshot"]], [10, false]);
  await store(stream, "k1", "new");
  assertEquals(await changes(events, 5), ["3 k1=3", "5 k1=5", "7 k1=7", "9 k1=9", "10 k1=new"]);
  const ahead = await connection.stream();
  await ahead.send(json({ type: "cache_watch", ...scope, key: "k1", from_offset: 12 }));
  assertEquals(await ahead.message(), {
    type: "subscribe_cursor_error",
    reason: "in_future",
    requested: 12,
    available: 11,
  });
});

test("an expiry reaches a watch as a delete [CA25]", async (broker) => {
  await using connection = await RawConnection.connect(broker);
  const stream = await connection.stream();
  const { events } = await watch(connection, { key: "k" });
  await store(stream, "k", "v", { ttl_ms: 50 });
  assertEquals(await changes(events, 2), ["0 k=v", "1 k gone"]);
});

test("a watch that is not read lags out loud and can go on [CA23]", async (broker) => {
  await using connection = await RawConnection.connect(broker);
  const stream = await connection.stream();
  const value = "x".repeat(64 * 1024);
  const slow = await watch(connection, { prefix: "" });
  for (let at = 0; at < 1500; at++) await store(stream, `k${at}`, value);
  let next = 0;
  for (;;) {
    const { type, offset, resume_from } = await slow.events.message();
    if (type === "cache_watch_lagged") {
      assertEquals(resume_from, next);
      break;
    }
    assertEquals(offset, next++, "no change is skipped before the end");
  }
  assert(next > 0 && next < 1500, `${next} changes`);
  assertEquals(await slow.events.rest(), []);
  assertEquals(await broker.metric("felix_cache_watch_lagged_total"), 1);
  const { events } = await watch(connection, { prefix: "", from_offset: next });
  for (; next < 1500; next++) assertEquals((await events.message())["offset"], next);
});

test("watches that ask amiss are refused [CA21, CA22, CA24]", async (broker) => {
  await using connection = await RawConnection.connect(broker);
  const requests: Message[] = [
    { ...scope, key: "k", retained: true, from_offset: 0 },
    { ...scope, key: "k", prefix: "k" },
    { ...scope },
    { ...wide, prefix: "" },
    { ...wide, prefix: "", shard: 8 },
  ];
  for (const request of requests) {
    const stream = await connection.stream();
    await stream.send(json({ type: "cache_watch", ...request }));
    const { type, code } = await stream.message();
    assertEquals([type, code], ["error", "invalid_request"], JSON.stringify(request));
    assertEquals(await stream.rest(), []);
  }
  const unknown = await connection.stream();
  await unknown.send(json({ type: "cache_watch", ...scope, cache: "none", key: "k" }));
  assertEquals((await unknown.message())["code"], "not_found");
  await connection.assertServes();
});

test("counters add, answer and survive [CA29, CA31]", async (broker) => {
  const add = (key: string, delta: string) =>
    json(
      `{"type":"counter_add","tenant_id":"t1","namespace":"default","cache":"sessions",` +
        `"key":"${key}","delta":${delta},"request_id":1}`,
    );
  const get = { type: "counter_get", ...scope, request_id: 1 };
  for (let round = 0; round < 2; round++) {
    await using connection = await RawConnection.connect(broker);
    const stream = await connection.stream();
    if (round === 0) {
      await stream.send(concat(add("k", "5"), add("k", "-2"), add("big", "1152921504606846977")));
      assertEquals((await stream.message())["value"], 5);
      assertEquals((await stream.message())["value"], 3);
      assertEquals(await stream.text(), answer("1152921504606846977"));
      await stream.send(add("big", "9223372036854775807"));
      const refused = await stream.message();
      assertEquals([refused["type"], refused["code"]], ["error", "invalid_request"]);
    }
    assertEquals((await stream.ask({ ...get, key: "k" }))["value"], 3);
    await stream.send(json({ ...get, key: "big" }));
    assertEquals(await stream.text(), answer("1152921504606846977"));
    const none = await stream.ask({ ...get, key: "none" });
    assertEquals(none, { type: "counter_value", request_id: 1 }, "never written is not 0");
    await store(stream, "k", "a value of the same name is another thing");
    await stream.finish();
    if (round === 0) await broker.restart();
  }
});

function answer(value: string): string {
  return `{"type":"counter_value","value":${value},"request_id":1}`;
}

test("conditional writes and versions [CA27, CA28]", async (broker) => {
  await using connection = await RawConnection.connect(broker);
  const stream = await connection.stream(FULL_OFFER);
  const putIf = (value: string, condition: unknown) =>
    stream.ask({
      type: "cache_put_if",
      ...scope,
      key: "k",
      value: btoa(value),
      condition,
      request_id: 7,
    });
  const result = { type: "cache_condition_result", request_id: 7 };
  assertEquals(await putIf("1", "absent"), { ...result, applied: true, version: 0 });
  assertEquals(await putIf("2", "absent"), { ...result, applied: false, version: 0 });
  assertEquals(await putIf("3", { version: 0 }), { ...result, applied: true, version: 1 });
  const hit = await stream.ask({ type: "cache_get", ...scope, key: "k", request_id: 8 });
  assertEquals([hit["value"], hit["version"]], [btoa("3"), 1]);
  const removeIf = { type: "cache_delete_if", ...scope, key: "k", request_id: 7 };
  assertEquals(await stream.ask({ ...removeIf, version: 0 }), {
    ...result,
    applied: false,
    version: 1,
  });
  assertEquals(await stream.ask({ ...removeIf, version: 1 }), { ...result, applied: true });
  assertEquals(await valueOf(stream, "k"), null);
});

Deno.test({
  name: "without storage watches, counters and conditions are not offered and refused [CA26]",
  sanitizeOps: true,
  sanitizeResources: true,
  fn: async () => {
    await using broker = await DevBroker.start();
    await using connection = await RawConnection.connect(broker);
    const requests: Message[] = [
      { type: "cache_watch", ...scope, key: "k", retained: false },
      { type: "counter_add", ...scope, key: "k", delta: 1, request_id: 1 },
      { type: "counter_get", ...scope, key: "k", request_id: 1 },
    ];
    for (const request of requests) {
      const stream = await connection.stream(FULL_OFFER);
      assertEquals((await stream.ask(request))["type"], "unsupported");
      await stream.finish();
    }
  },
});
