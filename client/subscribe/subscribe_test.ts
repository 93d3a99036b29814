// Subscriptions against a scripted broker: set-up, reading, buffers (spec/client.md §7.1, §7.4,
// §13.3; conformance ids of §22 in brackets).

import { assert, assertEquals, assertRejects } from "@std/assert";
import {
  CursorError,
  InvalidArgumentError,
  NotFoundError,
  TimeoutError,
  UnsupportedError,
} from "../failure/classes.ts";
import type { EventSender } from "../testing/broker_stream.ts";
import { connectTo, networkTest, until } from "../testing/fixture.ts";
import { MemoryBroker } from "../testing/memory_broker.ts";
import { ScriptedBroker } from "../testing/scripted_broker.ts";
import type { Script } from "../testing/scripted_broker.ts";
import type { FelixEvent } from "./event.ts";

const encoder = new TextEncoder();

function filled(texts: readonly string[]): MemoryBroker {
  const memory = new MemoryBroker();
  memory.shard("orders").records.push(...texts.map((text) => encoder.encode(text)));
  return memory;
}

/** Accepts every subscribe and leaves the events to the test. */
function manual(offsets: { start_offset?: bigint; live_offset?: bigint } = {}) {
  const opened: EventSender[] = [];
  let id = 1n;
  const script: Script = {
    async message(stream, message) {
      if (message.type !== "subscribe") return false;
      const subscription_id = id++;
      opened.push(await stream.connection.events(subscription_id));
      stream.send({ type: "subscribed", subscription_id, ...offsets });
      stream.finish();
      return true;
    },
  };
  return { script, opened };
}

const texts = (events: readonly FelixEvent[]): string[] => events.map((event) => event.text());

networkTest("earliest: history, then live, in order [pubsub.*]", async () => {
  await using broker = await ScriptedBroker.start({}, { memory: filled(["a", "b", "c"]) });
  await using client = await connectTo(broker);
  const orders = client.stream("orders");
  await using subscription = await orders.subscribe({ start: "earliest" });
  assertEquals([subscription.startOffset, subscription.liveOffset], [0n, 3n]);
  assertEquals([subscription.stream, subscription.shard], ["orders", 0]);
  await orders.publish("d");
  const events: FelixEvent[] = [];
  for await (const event of subscription) {
    events.push(event);
    if (events.length === 3) await subscription.caughtUp;
    if (events.length === 4) break;
  }
  assertEquals(texts(events), ["a", "b", "c", "d"]);
  assertEquals(events.map(({ offset }) => offset), [0n, 1n, 2n, 3n]);
  assertEquals(events.map(({ droppedBefore }) => droppedBefore), [0n, 0n, 0n, 0n]);
  const { tenant, namespace, stream, shard } = events[0]!;
  assertEquals([tenant, namespace, stream, shard], ["t1", "default", "orders", 0]);
  assertEquals(subscription.position, 3n);
  assert(subscription.closed, "leaving the loop closes it");
  assertEquals(subscription.stats.delivered, 4n);
});

networkTest("latest, an offset, and what goes over the wire", async () => {
  await using broker = await ScriptedBroker.start({}, { memory: filled(["a", "b", "c"]) });
  await using client = await connectTo(broker);
  const orders = client.stream("orders");
  await using fromTwo = await orders.subscribe({ start: 2n });
  await using latest = await orders.subscribe();
  assertEquals([latest.startOffset, latest.liveOffset], [3n, 3n]);
  await latest.caughtUp;
  await orders.publish("d");
  assertEquals((await fromTwo.next())?.text(), "c");
  assertEquals((await latest.next())?.text(), "d");
  const sent = broker.of("subscribe");
  assertEquals(sent.map(({ start }) => start), [{ offset: 2n }, "latest"]);
  assertEquals(sent.map(({ shard }) => shard), [undefined, undefined]);
});

networkTest("JSON, legacy and offset-less batches are read; empty ones are nothing", async () => {
  const { script, opened } = manual();
  await using broker = await ScriptedBroker.start(script);
  await using client = await connectTo(broker);
  await using subscription = await client.stream("orders").subscribe();
  const events = opened[0]!;
  const scope = { tenant_id: "t1", namespace: "default", stream: "orders" };
  events.texts([]);
  events.send({ type: "event", ...scope, payload: encoder.encode('{"n":1}') });
  events.send({
    type: "event_batch",
    ...scope,
    payloads: [encoder.encode("b")],
    base_offset: 2n ** 60n,
  });
  events.batch({ payloads: [encoder.encode("c")], subscriptionId: 1n, baseOffset: 2n ** 60n + 1n });
  events.texts(["d"]);
  const first = await subscription.next();
  assertEquals(first?.json<{ n: number }>(), { n: 1 });
  assertEquals(first?.offset, null);
  assertEquals((await subscription.next())?.offset, 2n ** 60n, "above 2^53 (trap 7)");
  assertEquals((await subscription.next())?.offset, 2n ** 60n + 1n);
  assertEquals((await subscription.next())?.text(), "d");
  events.finish();
  assertEquals(await subscription.next(), null, "ended by the broker");
  assertEquals(await subscription.readBatch(5), []);
  assert(subscription.closed);
});

networkTest("publishers, if asked for", async () => {
  const { script, opened } = manual();
  await using broker = await ScriptedBroker.start(script);
  await using client = await connectTo(broker, { publishers: true });
  assertEquals(broker.auths[0]!.client_flags! & 0x2000, 0x2000);
  await using subscription = await client.stream("orders").subscribe();
  opened[0]!.batch({ payloads: [encoder.encode("x")], publisher: "bob" });
  opened[0]!.texts(["y"]);
  assertEquals((await subscription.next())?.publisher, "bob");
  assertEquals((await subscription.next())?.publisher, undefined);
});

networkTest("payloads stay as they are however much comes after", async () => {
  const { script, opened } = manual();
  await using broker = await ScriptedBroker.start(script);
  await using client = await connectTo(broker);
  const buffer = { maxEvents: 10_000 };
  await using subscription = await client.stream("orders").subscribe({ buffer });
  const records = Array.from({ length: 2000 }, (_, n) => new Uint8Array(n % 997).fill(n % 251));
  for (let at = 0; at < records.length; at += 50) {
    await opened[0]!.pushed({ payloads: records.slice(at, at + 50), baseOffset: BigInt(at) });
  }
  const got: FelixEvent[] = [];
  while (got.length < records.length) got.push(...await subscription.readBatch(300));
  assertEquals(got.map(({ payload }) => payload.length), records.map(({ length }) => length));
  for (const [n, { payload }] of got.entries()) assert(payload.every((byte) => byte === n % 251));
});

networkTest("giving up a read loses nothing", async () => {
  const { script, opened } = manual();
  await using broker = await ScriptedBroker.start(script);
  await using client = await connectTo(broker);
  await using subscription = await client.stream("orders").subscribe();
  await assertRejects(() => subscription.next({ timeoutMs: 20 }), TimeoutError);
  const abort = new AbortController();
  const reason = new Error("enough");
  const reading = subscription.next({ signal: abort.signal });
  abort.abort(reason);
  assertEquals(await assertRejects(() => reading), reason);
  opened[0]!.texts(["a", "b"], 0);
  assertEquals((await subscription.next())?.text(), "a");
  assertEquals((await subscription.next({ timeoutMs: 1000 }))?.text(), "b");
});

networkTest("concurrent reads are served in their order", async () => {
  const { script, opened } = manual();
  await using broker = await ScriptedBroker.start(script);
  await using client = await connectTo(broker);
  await using subscription = await client.stream("orders").subscribe();
  const reads = [subscription.next(), subscription.readBatch(2), subscription.next()];
  opened[0]!.texts(["a", "b", "c", "d"], 0);
  const [one, two, three] = await Promise.all(reads);
  assertEquals((one as FelixEvent).text(), "a");
  assertEquals(texts(two as FelixEvent[]), ["b", "c"]);
  assertEquals((three as FelixEvent).text(), "d");
});

networkTest("as a web stream", async () => {
  await using broker = await ScriptedBroker.start({}, { memory: filled(["a", "b"]) });
  await using client = await connectTo(broker);
  const subscription = await client.stream("orders").subscribe({ start: "earliest" });
  const seen: string[] = [];
  for await (const event of subscription.readable()) {
    seen.push(event.text());
    if (seen.length === 2) break;
  }
  assertEquals(seen, ["a", "b"]);
  await until(() => subscription.closed);
});

networkTest("a full buffer stops reading and loses nothing (block)", async () => {
  const { script, opened } = manual();
  await using broker = await ScriptedBroker.start(script);
  await using client = await connectTo(broker);
  await using subscription = await client.stream("orders").subscribe({ buffer: { maxEvents: 10 } });
  for (let n = 0; n < 100; n += 5) {
    opened[0]!.texts(Array.from({ length: 5 }, (_, i) => String(n + i)), n);
  }
  await until(() => subscription.stats.buffered === 10);
  assertEquals(client.metrics().subscribe.buffered, 10);
  const got: string[] = [];
  while (got.length < 100) got.push(...texts(await subscription.readBatch(7)));
  assertEquals(got, Array.from({ length: 100 }, (_, n) => String(n)));
  assertEquals(subscription.stats.dropped, 0n);
});

networkTest("bytes bound the buffer as well", async () => {
  const { script, opened } = manual();
  await using broker = await ScriptedBroker.start(script);
  await using client = await connectTo(broker);
  const buffer = { maxBytes: 100 };
  await using subscription = await client.stream("orders").subscribe({ buffer });
  for (let n = 0; n < 5; n++) {
    opened[0]!.batch({ payloads: [new Uint8Array(60)], baseOffset: BigInt(n) });
  }
  await until(() => subscription.stats.buffered === 2);
  for (let n = 0; n < 5; n++) assertEquals((await subscription.next())?.offset, BigInt(n));
});

networkTest("dropNew and dropOld lose live events and say how many", async () => {
  const expected = {
    dropNew: ["0", "1", "2", "last"],
    dropOld: ["6", "7", "8", "last"],
  };
  for (const overflow of ["dropNew", "dropOld"] as const) {
    const { script, opened } = manual({ start_offset: 0n, live_offset: 0n });
    await using broker = await ScriptedBroker.start(script);
    const drops: bigint[] = [];
    await using client = await connectTo(broker, {
      hooks: { onDrop: ({ dropped }) => drops.push(dropped) },
    });
    const buffer = { maxEvents: 3, overflow };
    await using subscription = await client.stream("orders").subscribe({ buffer });
    for (let n = 0; n < 9; n++) opened[0]!.texts([String(n)], n);
    await until(() => subscription.stats.dropped === 6n);
    const got = await subscription.readBatch(2);
    opened[0]!.texts(["last"], 9);
    while (got.at(-1)?.text() !== "last") got.push((await subscription.next())!);
    assertEquals(texts(got), expected[overflow]);
    const told = got.reduce((sum, { droppedBefore }) => sum + droppedBefore, 0n);
    assertEquals([told, drops.reduce((sum, n) => sum + n, 0n)], [6n, 6n]);
  }
});

networkTest("history is never dropped, whatever the policy", async () => {
  for (const overflow of ["dropNew", "dropOld"] as const) {
    const { script, opened } = manual({ start_offset: 0n, live_offset: 20n });
    await using broker = await ScriptedBroker.start(script);
    await using client = await connectTo(broker);
    const buffer = { maxEvents: 3, overflow };
    await using subscription = await client.stream("orders").subscribe({
      start: "earliest",
      buffer,
    });
    for (let n = 0; n < 20; n++) opened[0]!.texts([String(n)], n);
    await until(() => subscription.stats.buffered === 3);
    const got: string[] = [];
    while (got.length < 20) got.push(...texts(await subscription.readBatch(10)));
    assertEquals(got, Array.from({ length: 20 }, (_, n) => String(n)));
    assertEquals(subscription.stats.dropped, 0n);
    await subscription.caughtUp;
  }
});

networkTest("150 subscriptions on one connection all deliver (trap 1)", async () => {
  await using broker = await ScriptedBroker.start();
  await using client = await connectTo(broker, { pools: { event: { connections: 1 } } });
  const orders = client.stream("orders");
  const all = await Promise.all(Array.from({ length: 150 }, () => orders.subscribe()));
  await orders.publish("hello");
  const seen = await Promise.all(all.map((subscription) => subscription.next()));
  assert(seen.every((event) => event?.text() === "hello"));
  assertEquals(broker.connections.length, 2);
  assertEquals(client.metrics().subscribe.active, 150);
  await Promise.all(all.map((subscription) => subscription.close()));
  assertEquals(client.metrics().subscribe.active, 0);
});

networkTest("the answer may come before the event stream", async () => {
  await using broker = await ScriptedBroker.start({
    async message(stream, message) {
      if (message.type !== "subscribe") return false;
      stream.send({ type: "subscribed", subscription_id: 9n });
      await new Promise((resolve) => setTimeout(resolve, 30));
      (await stream.connection.events(9n)).texts(["x"]);
      return true;
    },
  });
  await using client = await connectTo(broker);
  await using subscription = await client.stream("orders").subscribe();
  assertEquals((await subscription.next())?.text(), "x");
});

networkTest("an event stream that never comes ends with the call's time", async () => {
  await using broker = await ScriptedBroker.start({
    message(stream, message) {
      if (message.type !== "subscribe") return false;
      stream.send({ type: "subscribed", subscription_id: 9n });
      return true;
    },
  });
  await using client = await connectTo(broker);
  await assertRejects(() => client.stream("orders").subscribe({ timeoutMs: 60 }), TimeoutError);
  assertEquals(client.metrics().subscribe.active, 0);
});

networkTest("a start that cannot be read is typed [error.bad_offset_is_typed]", async () => {
  const memory = filled(["a", "b", "c", "d"]);
  memory.shard("orders").oldest = 2;
  await using broker = await ScriptedBroker.start({}, { memory });
  await using client = await connectTo(broker);
  const orders = client.stream("orders");
  const old = await assertRejects(() => orders.subscribe({ start: 0n }), CursorError);
  assertEquals([old.code, old.requested, old.available], ["cursor_too_old", 0n, 2n]);
  const future = await assertRejects(() => orders.subscribe({ start: 9n }), CursorError);
  assertEquals([future.code, future.available], ["cursor_in_future", 4n]);
  await using nearest = await orders.subscribe({ start: 0n, onCursorError: "nearest" });
  assertEquals((await nearest.next())?.text(), "c");
  assertEquals(nearest.stats.dropped, 2n);
  await using earliest = await orders.subscribe({ start: 9n, onCursorError: "earliest" });
  assertEquals((await earliest.next())?.text(), "c");
  await using latest = await orders.subscribe({ start: 0n, onCursorError: "latest" });
  assertEquals(latest.startOffset, 4n);
});

networkTest("refusals of subscribe: retried if they may be, typed if not", async () => {
  let times = 0;
  await using broker = await ScriptedBroker.start({
    message(stream, message) {
      if (message.type !== "subscribe" || ++times > 2) return false;
      stream.refuse("shard_unavailable", "retry");
      stream.finish();
      return true;
    },
  });
  await using client = await connectTo(broker);
  await using _subscription = await client.stream("orders").subscribe();
  assertEquals(times, 3);
  await assertRejects(
    () => client.stream("none").subscribe({ timeoutMs: 5000 }),
    NotFoundError,
  );
});

networkTest("positions are not asked of a broker that has none", async () => {
  await using broker = await ScriptedBroker.start({}, { flags: 0x0007, features: 0x800 });
  await using client = await connectTo(broker);
  const orders = client.stream("orders");
  await assertRejects(() => orders.subscribe({ start: "earliest" }), UnsupportedError);
  await assertRejects(() => orders.routing(), UnsupportedError);
  await using _subscription = await orders.subscribe({ queueCapacity: 9 });
  assertEquals(broker.of("subscribe").map(({ start }) => start), [undefined]);
});

networkTest("options are checked", async () => {
  await using broker = await ScriptedBroker.start();
  await using client = await connectTo(broker);
  const orders = client.stream("orders");
  const wrong = [
    { start: -1n },
    { start: "newest" as "latest" },
    { shard: 1.5 },
    { buffer: { maxEvents: 0 } },
    { buffer: { overflow: "spill" as "block" } },
    { onGap: "ignore" as "report" },
    { queueCapacity: 0 },
    { resumeDeadlineMs: -1 },
  ];
  for (const options of wrong) {
    await assertRejects(() => orders.subscribe(options), InvalidArgumentError);
  }
  assertEquals(broker.messages.length, 0);
});
