// Watches that are interrupted (spec/client.md §7.3, §9; conformance ids of §22 in brackets,
// scenarios of spec/semantics.md §12 by number). Nothing is lost or told twice; what cannot be
// mended is an item.

import { assert, assertEquals, assertInstanceOf } from "@std/assert";
import type { Message } from "@felix/wire";
import { AuthError, ClosedError, CursorError, SubscriptionLostError } from "../failure/classes.ts";
import type { EventSender } from "../testing/broker_stream.ts";
import { connectTo, networkTest, until } from "../testing/fixture.ts";
import { inTurn, items, watch, watchBroker } from "../testing/watches.ts";

/** What was asked, in short: where to start. */
function starts(asked: readonly { from_offset?: bigint; retained: boolean }[]): unknown[] {
  return asked.map(({ from_offset, retained }) => retained ? "retained" : from_offset ?? "live");
}

function moved(events: EventSender, addr: string, resumeFrom?: bigint): void {
  events.send({
    type: "shard_moved",
    subscription_id: 1n,
    ...(resumeFrom === undefined ? {} : { resume_from: resumeFrom }),
    node_id: "n2",
    addr,
    generation: 2n,
  });
  events.finish();
}

networkTest("a broken connection: on at the next offset, nothing twice", async () => {
  const { broker, asked } = await watchBroker(inTurn(
    { at: 5, play: (events) => events.change("a", "1", 6) },
    {
      at: 9,
      play: (events) => {
        events.change("a", "1", 6);
        events.change("a", "2", 8);
      },
    },
    {},
  ));
  await using _broker = broker;
  await using client = await connectTo(broker);
  await using watched = await watch(client);
  assertEquals(await items(watched, 1), ["a=1@6"]);
  broker.drop();
  assertEquals(await items(watched, 1), ["a=2@8"]);
  broker.drop();
  await until(() => asked.length === 3);
  assertEquals(starts(asked), ["live", 7n, 9n]);
  await until(() => client.metrics().subscribe.resumes === 2n);
  assertEquals(client.metrics().subscribe.active, 1);
  await watched.close();
  assertEquals(client.metrics().subscribe.active, 0);
});

networkTest("a live watch that brought nothing goes on where it joined", async () => {
  const { broker, asked } = await watchBroker(inTurn({ at: 5 }, { at: 8 }));
  await using _broker = broker;
  await using client = await connectTo(broker);
  await using _watched = await watch(client);
  broker.drop();
  await until(() => asked.length === 2);
  assertEquals(starts(asked), ["live", 5n]);
});

networkTest("current values that broke off come again, said so", async () => {
  const { broker, asked, events } = await watchBroker(inTurn(
    { at: 5, retained: 2, play: (sender) => sender.change("a", "1", 1) },
    {
      at: 7,
      retained: 2,
      play: (sender) => {
        sender.change("b", "1", 3);
        sender.change("c", "1", 6);
      },
    },
    { at: 9 },
  ));
  await using _broker = broker;
  await using client = await connectTo(broker);
  await using watched = await watch(client, { prefix: "", retained: true });
  assertEquals(await items(watched, 1), ["*a=1@1"]);
  broker.drop();
  assertEquals(await items(watched, 4), ["resnapshot 0", "*b=1@3", "*c=1@6", "complete"]);
  assertEquals(watched.resumeOffset, 7n);
  broker.drop();
  await until(() => events.length === 3);
  events[2]!.change("b", null, 9);
  assertEquals(await items(watched, 1), ["b-@9"]);
  assertEquals(starts(asked), ["retained", "retained", 7n]);
});

networkTest("a retained watch whose history is gone starts anew, counted", async () => {
  const { broker, asked } = await watchBroker(inTurn(
    { at: 5, retained: 1, play: (events) => events.change("a", "1", 1) },
    { at: 50, resnapshot: true, play: (events) => events.change("b", "1", 40) },
    { at: 51, retained: 1, play: (events) => events.change("b", "1", 40) },
  ));
  await using _broker = broker;
  await using client = await connectTo(broker);
  await using watched = await watch(client, { prefix: "", retained: true });
  assertEquals(await items(watched, 2), ["*a=1@1", "complete"]);
  broker.drop();
  assertEquals(await items(watched, 2), ["resnapshot 0", "*b=1@40"]);
  assertEquals([starts(asked), watched.resumeOffset], [["retained", 5n, "retained"], 51n]);
});

networkTest("a log that lost its end: a retained watch starts anew, others say so", async () => {
  const { broker, asked } = await watchBroker((message) =>
    message.from_offset === undefined ? { at: 5, retained: 1, play: one } : undefined
  );
  const one = (events: EventSender): void => events.change("a", "1", 1);
  const refuse = broker.script.message!;
  broker.script.message = (stream, message: Message) => {
    const resumes = message.type === "cache_watch" && message.from_offset !== undefined;
    if (!resumes) return refuse(stream, message);
    const offsets = { requested: message.from_offset!, available: 2n };
    stream.send({ type: "subscribe_cursor_error", reason: "in_future", ...offsets });
    stream.finish();
    return true;
  };
  await using _broker = broker;
  await using client = await connectTo(broker);
  await using retained = await watch(client, { prefix: "", retained: true });
  await using live = await watch(client, { key: "k" });
  assertEquals(await items(retained, 2), ["*a=1@1", "complete"]);
  broker.drop();
  assertEquals(await items(retained, 2), ["resnapshot 0", "*a=1@1"]);
  const closed = await live.next();
  assert(closed?.type === "shardClosed");
  assertInstanceOf(closed.error, CursorError);
  assertEquals([await live.next(), asked.length], [null, 3]);
});

networkTest("a lag is told, then gapless [watch.lag_is_reported, CA23]", async () => {
  const { broker, asked } = await watchBroker(inTurn(
    {
      at: 5,
      play: (events) => {
        events.change("a", "1", 5);
        events.send({ type: "cache_watch_lagged", resume_from: 9n });
        events.finish();
      },
    },
    { at: 12, play: (events) => events.change("a", "2", 9) },
  ));
  await using _broker = broker;
  await using client = await connectTo(broker);
  await using watched = await watch(client);
  assertEquals(await items(watched, 2), ["a=1@5", "lagged 0@9"]);
  assertEquals(watched.resumeOffset, 9n);
  assertEquals(await items(watched, 1), ["a=2@9"]);
  assertEquals(starts(asked), ["live", 9n]);
});

networkTest("a lag ends the watch if that is wanted", async () => {
  const { broker, asked } = await watchBroker(inTurn({
    play: (events) => {
      events.send({ type: "cache_watch_lagged", resume_from: 9n });
      events.finish();
    },
  }));
  await using _broker = broker;
  await using client = await connectTo(broker);
  await using watched = await watch(client, { prefix: "", onLag: "end" });
  assertEquals(await items(watched, 2), ["lagged 0@9", "end"]);
  assertEquals([asked.length, watched.resumeOffsets()], [1, new Map([[0, 9n]])]);
});

networkTest("a moved shard is followed to where it says", async () => {
  const other = await watchBroker(inTurn({
    at: 12,
    play: (events) => events.change("a", "2", 12),
  }));
  await using _other = other.broker;
  const { broker, asked } = await watchBroker(inTurn({
    at: 5,
    play: (events) => {
      events.change("a", "1", 6);
      moved(events, other.broker.address, 11n);
    },
  }));
  await using _broker = broker;
  const told: unknown[] = [];
  await using client = await connectTo(broker, {
    hooks: { onShardMoved: (info) => told.push(info) },
  });
  await using watched = await watch(client);
  assertEquals(await items(watched, 3), ["a=1@6", "shardMoved 0", "a=2@12"]);
  assertEquals([asked.length, starts(other.asked)], [1, [11n]]);
  const { address: addr } = other.broker;
  assertEquals(told, [{ resource: "default/sessions/0", shard: 0, addr, generation: 2n }]);
});

networkTest("a move that says no offset: on behind the last change", async () => {
  const { broker, asked } = await watchBroker((_message, index) => ({
    at: 5,
    play: (events) => {
      if (index > 0) return events.change("a", "2", 7);
      events.change("a", "1", 6);
      moved(events, broker.address);
    },
  }));
  await using _broker = broker;
  await using client = await connectTo(broker);
  await using watched = await watch(client);
  assertEquals(await items(watched, 3), ["a=1@6", "shardMoved 0", "a=2@7"]);
  assertEquals(starts(asked), ["live", 7n]);
});

networkTest("redirects carry the start through every hop", async () => {
  const owner = await watchBroker(inTurn({ at: 8, play: (events) => events.change("a", "1", 3) }));
  await using _owner = owner.broker;
  const { broker, asked } = await watchBroker(inTurn());
  broker.script.message = (stream, message) => {
    if (message.type !== "cache_watch") return false;
    asked.push(message);
    const { address: addr } = owner.broker;
    stream.send({ type: "not_leader", node_id: "n2", addr, generation: 1n });
    stream.finish();
    return true;
  };
  await using _broker = broker;
  await using client = await connectTo(broker);
  await using watched = await watch(client, { prefix: "", from: 3n });
  assertEquals(await items(watched, 1), ["a=1@3"]);
  assertEquals([starts(asked), starts(owner.asked)], [[3n], [3n]]);
  assertEquals(client.metrics().redirects, 1n);
});

networkTest("what ends a shard for good is an item; the others go on", async () => {
  const { broker } = await watchBroker(({ shard }) => ({
    play: (events) => {
      if (shard === 0) {
        events.send({ type: "error", message: "gone", code: "revoked", retry: "fatal" });
        events.finish();
      } else if (shard === 1) events.finish();
      else events.change("a", "1", 0);
    },
  }));
  await using _broker = broker;
  broker.memory.cacheWidth = 3;
  await using client = await connectTo(broker);
  await using watched = await watch(client);
  const failures = new Map<number, unknown>();
  let changes = 0;
  for (let n = 0; n < 3; n++) {
    const item = await watched.next();
    if (item?.type === "shardClosed") failures.set(item.shard, item.error);
    else if (item?.type === "change") changes++;
  }
  assertEquals(changes, 1);
  assertEquals(client.metrics().subscribe.active, 1);
  assertInstanceOf(failures.get(0), AuthError);
  assertInstanceOf(failures.get(1), ClosedError);
});

networkTest("what is no watch is a lost stream: it is opened again", async () => {
  const { broker, asked } = await watchBroker(inTurn(
    { at: 1, play: (events) => events.raw(new TextEncoder().encode("garbage garbage")) },
    { at: 1, play: (events) => events.texts(["no watch"], 0) },
    { at: 1, play: (events) => events.send({ type: "cache_ok", request_id: 1n }) },
    { at: 1, play: (events) => events.change("a", "1", 1) },
  ));
  await using _broker = broker;
  await using client = await connectTo(broker);
  await using watched = await watch(client);
  assertEquals(await items(watched, 1), ["a=1@1"]);
  assertEquals(starts(asked), ["live", 1n, 1n, 1n]);
});

networkTest("nobody to be asked in time: lost, with where to go on", async () => {
  const { broker, asked } = await watchBroker(inTurn({
    at: 5,
    play: (events) => events.change("a", "1", 6),
  }));
  await using _broker = broker;
  await using client = await connectTo(broker, { reconnect: { backoffMs: 1, deadlineMs: 50 } });
  await using watched = await watch(client);
  assertEquals(await items(watched, 1), ["a=1@6"]);
  broker.drop();
  const closed = await watched.next();
  assert(closed?.type === "shardClosed" && closed.error instanceof SubscriptionLostError);
  assertEquals([closed.error.resumeFrom, closed.error.retryable], [7n, true]);
  assertEquals(closed.error.operation, "cache.watch");
  assertEquals([await watched.next(), starts(asked.slice(0, 2))], [null, ["live", 7n]]);
});

networkTest("closing while it is being opened again leaves nothing behind", async () => {
  const { broker, asked } = await watchBroker(inTurn({}));
  await using _broker = broker;
  await using client = await connectTo(broker);
  const watched = await watch(client);
  broker.drop();
  await until(() => asked.length >= 2);
  const reading = watched.next();
  await watched.close();
  assertEquals(await reading, null);
});
