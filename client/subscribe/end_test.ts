// How subscriptions end: cleanly, for a reason, by giving up, by being closed (spec/client.md §7.3,
// §7.4; conformance ids of §22 in brackets). They never just stop because a connection died.

import { assert, assertEquals, assertInstanceOf, assertRejects } from "@std/assert";
import { AuthError, ClosedError, CursorError, SubscriptionLostError } from "../failure/classes.ts";
import type { EventSender } from "../testing/broker_stream.ts";
import { connectTo, networkTest } from "../testing/fixture.ts";
import { ScriptedBroker } from "../testing/scripted_broker.ts";
import { open, read, scripted } from "../testing/turns.ts";
import type { Turn } from "../testing/turns.ts";

networkTest("a clean end is an end [client.subscription_ends_cleanly]", async () => {
  const deleted: Turn = (events) => {
    events.send({ type: "stream_deleted", subscription_id: 1n });
    events.finish();
  };
  for (const turn of [deleted, (events: EventSender) => events.finish()]) {
    const { broker, starts } = await scripted(turn);
    await using _broker = broker;
    await using client = await connectTo(broker);
    await using subscription = await open(client);
    for await (const _event of subscription) assert(false, "there is nothing");
    assertEquals(starts.length, 1);
  }
});

networkTest("a reason that is final is told", async () => {
  const { broker } = await scripted((events) => {
    events.send({ type: "error", message: "gone", code: "revoked", retry: "fatal" });
    events.finish();
  });
  await using _broker = broker;
  await using client = await connectTo(broker);
  await using subscription = await open(client);
  const error = await assertRejects(() => subscription.next(), AuthError);
  assertEquals(error.code, "revoked");
});

networkTest("no resume in time: lost, with where to go on; never a silent end", async () => {
  const { broker } = await scripted((events) => events.texts(["a"], 0));
  const client = await connectTo(broker, { dialTimeoutMs: 100 });
  const subscription = await open(client, { start: "earliest", resumeDeadlineMs: 300 });
  assertEquals(await read(subscription, 1), ["a"]);
  await broker.stop();
  const error = await assertRejects(() => subscription.next(), SubscriptionLostError);
  assertEquals([error.code, error.resumeFrom, error.retryable], ["subscription_lost", 1n, true]);
  assert(error.cause !== undefined);
  await client.close();
});

networkTest("without follow a loss is told at once", async () => {
  const { broker, starts } = await scripted((events) => events.texts(["a"], 0));
  await using _broker = broker;
  await using client = await connectTo(broker);
  await using subscription = await open(client, { start: "earliest", follow: false });
  assertEquals(await read(subscription, 1), ["a"]);
  broker.drop();
  await assertRejects(() => subscription.next(), SubscriptionLostError);
  assertEquals(starts.length, 1);
});

networkTest("a resume that comes too late: as onCursorError says", async () => {
  const turn: Turn = (events) => events.texts(["a"], 0);
  for (const onCursorError of ["throw", "nearest"] as const) {
    const { broker } = await scripted(turn);
    await using _broker = broker;
    const shard = broker.memory.shard("orders");
    shard.records.push(...["a", "b", "c", "d"].map((text) => new TextEncoder().encode(text)));
    shard.oldest = 3;
    await using client = await connectTo(broker);
    await using subscription = await open(client, { start: "earliest", onCursorError });
    assertEquals(await read(subscription, 1), ["a"]);
    broker.drop();
    if (onCursorError === "throw") {
      const error = await assertRejects(() => subscription.next(), CursorError);
      assertEquals([error.requested, error.available], [1n, 3n]);
    } else {
      assertEquals(await read(subscription, 1), ["d"]);
      assertEquals(subscription.stats.dropped, 2n);
    }
  }
});

networkTest("closing ends reads, resumes and `caughtUp`", async () => {
  const { broker } = await scripted(() => undefined);
  await using _broker = broker;
  await using client = await connectTo(broker);
  const subscription = await open(client);
  const reading = subscription.next();
  await subscription.close();
  await subscription.close();
  assertEquals(await reading, null);
  assertEquals(await subscription.next(), null);
  await using other = await ScriptedBroker.start({
    async message(stream, message) {
      if (message.type !== "subscribe") return false;
      await stream.connection.events(1n);
      stream.send({ type: "subscribed", subscription_id: 1n, start_offset: 0n, live_offset: 5n });
      return true;
    },
  });
  await using second = await connectTo(other);
  const behind = await open(second);
  const caughtUp = assertRejects(() => behind.caughtUp, ClosedError);
  await behind.close();
  assertInstanceOf(await caughtUp, ClosedError);
});
