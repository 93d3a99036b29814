// Interrupted subscriptions: losses, moves, lags, gaps (spec/client.md §7.2, §7.3; conformance ids
// of §22 in brackets; traps 4, 5 and 8 of §23).

import { assert, assertEquals, assertRejects } from "@std/assert";
import { SubscriptionLaggedError } from "../failure/classes.ts";
import { connectTo, networkTest, until } from "../testing/fixture.ts";
import { MemoryBroker } from "../testing/memory_broker.ts";
import { ScriptedBroker } from "../testing/scripted_broker.ts";
import { open, read, scripted } from "../testing/turns.ts";
import type { Turn } from "../testing/turns.ts";

networkTest("a lost connection: goes on at the next offset [reconnect.subscription]", async () => {
  const { broker, starts } = await scripted(
    (events) => events.texts(["a", "b"], 0),
    (events) => events.texts(["c"], 2),
  );
  await using _broker = broker;
  await using client = await connectTo(broker);
  await using subscription = await open(client);
  assertEquals(await read(subscription, 2), ["a", "b"]);
  broker.drop();
  assertEquals(await read(subscription, 1), ["c"]);
  assertEquals(starts, ["earliest", { offset: 2n }]);
  assertEquals(subscription.stats.resumes, 1);
  assertEquals(client.metrics().subscribe.resumes, 1n);
});

networkTest("what is buffered is not asked for again", async () => {
  const { broker, starts } = await scripted(
    (events) => events.texts(["a", "b", "c"], 0),
    (events) => events.texts(["d"], 3),
  );
  await using _broker = broker;
  await using client = await connectTo(broker);
  await using subscription = await open(client);
  await until(() => subscription.stats.buffered === 3);
  broker.drop();
  await until(() => subscription.stats.resumes === 1);
  assertEquals(await read(subscription, 4), ["a", "b", "c", "d"]);
  assertEquals(starts, ["earliest", { offset: 3n }]);
});

networkTest("nothing received: the original start, `latest` as of the first time", async () => {
  for (const [start, again] of [["earliest", "earliest"], [0n, { offset: 0n }]] as const) {
    const { broker, starts } = await scripted(() => undefined, (events) => events.texts(["x"], 0));
    await using _broker = broker;
    await using client = await connectTo(broker);
    await using subscription = await open(client, { start });
    broker.drop();
    await read(subscription, 1);
    assertEquals(starts[1], again);
  }
  const { broker, starts } = await scripted(() => undefined, (events) => events.texts(["x"], 0));
  await using _broker = broker;
  await using client = await connectTo(broker);
  await using subscription = await open(client, {});
  broker.drop();
  await read(subscription, 1);
  assertEquals(starts, ["latest", { offset: 0n }]);
});

networkTest("duplicates after a resume are thrown away", async () => {
  const { broker } = await scripted(
    (events) => events.texts(["a", "b"], 0),
    (events) => events.texts(["b", "c"], 1),
  );
  await using _broker = broker;
  await using client = await connectTo(broker);
  await using subscription = await open(client);
  assertEquals(await read(subscription, 2), ["a", "b"]);
  broker.drop();
  assertEquals(await read(subscription, 1), ["c"]);
  assertEquals(subscription.stats.duplicatesDiscarded, 1n);
});

networkTest(
  "a stream without offsets goes on at its tail and says that it may miss some",
  async () => {
    const memory = new MemoryBroker();
    memory.durable = false;
    await using broker = await ScriptedBroker.start({}, { memory });
    const possible: unknown[] = [];
    await using client = await connectTo(broker, {
      hooks: { onGapPossible: (info) => possible.push(info) },
    });
    await using subscription = await open(client, {});
    const orders = client.stream("orders");
    await orders.publish("a");
    assertEquals(await read(subscription, 1), ["a"]);
    assertEquals([subscription.liveOffset, subscription.position], [null, null]);
    broker.drop();
    await until(() => subscription.stats.resumes === 1);
    await orders.publish("b");
    assertEquals(await read(subscription, 1), ["b"]);
    assertEquals(possible, [{ resource: "default/orders/0", shard: 0 }]);
  },
);

networkTest("a moved shard is followed to where it says, from the later offset", async () => {
  const other = await scripted((events) => events.texts(["c"], 5));
  await using _other = other.broker;
  const { broker } = await scripted((events) => {
    events.texts(["a"], 0);
    events.send({
      type: "shard_moved",
      subscription_id: 1n,
      resume_from: 5n,
      node_id: "n2",
      addr: other.broker.address,
      generation: 2n,
    });
    events.finish();
  });
  await using _broker = broker;
  const moves: unknown[] = [];
  await using client = await connectTo(broker, {
    hooks: { onShardMoved: (info) => moves.push(info) },
  });
  await using subscription = await open(client);
  assertEquals(await read(subscription, 2), ["a", "c"]);
  assertEquals(other.starts, [{ offset: 5n }]);
  assertEquals(subscription.stats.moves, 1);
  const { address } = other.broker;
  assertEquals(moves, [{ resource: "default/orders/0", shard: 0, addr: address, generation: 2n }]);
});

networkTest(
  "a move is announced before the new owner serves: refusals are waited out",
  async () => {
    let refusals = 0;
    const other = await ScriptedBroker.start({
      message(stream, message) {
        if (message.type !== "subscribe" || ++refusals > 8) return false;
        stream.refuse("shard_unavailable", "retry");
        stream.finish();
        return true;
      },
    });
    await using _other = other;
    const { broker } = await scripted(
      (events) => {
        const { address } = other;
        events.send({ type: "shard_moved", subscription_id: 1n, addr: address, generation: 2n });
        events.finish();
      },
      (_events, stream) => stream.connection.close(),
      (_events, stream) => stream.connection.close(),
    );
    await using _broker = broker;
    await using client = await connectTo(broker, { reconnect: { attempts: 2, backoffMs: 1 } });
    await using subscription = await open(client);
    await until(() => subscription.stats.resumes >= 1);
    assert(!subscription.closed);
  },
);

networkTest(
  "lagged: goes on behind the last one received, not at resume_from (trap 5)",
  async () => {
    const { broker, starts } = await scripted((events) => {
      events.texts(["a", "b"], 0);
      events.send({ type: "subscription_lagged", subscription_id: 1n, resume_from: 7n });
      events.finish();
    }, (events) => events.texts(["c"], 2));
    await using _broker = broker;
    await using client = await connectTo(broker);
    await using subscription = await open(client);
    assertEquals(await read(subscription, 3), ["a", "b", "c"]);
    assertEquals(starts, ["earliest", { offset: 2n }]);
  },
);

networkTest("a gap is read again before anything behind it is handed out", async () => {
  const { broker, starts } = await scripted(
    (events) => {
      events.texts(["a"], 0);
      events.texts(["d"], 3);
    },
    (events) => events.texts(["b", "c", "d"], 1),
  );
  await using _broker = broker;
  await using client = await connectTo(broker);
  await using subscription = await open(client);
  assertEquals(await read(subscription, 4), ["a", "b", "c", "d"]);
  assertEquals(starts, ["earliest", { offset: 1n }]);
  assertEquals(subscription.stats.dropped, 0n);
  assertEquals(client.metrics().subscribe.gaps, 1n);
});

networkTest("a gap that stays is no endless loop", async () => {
  const { broker, starts } = await scripted(
    (events) => {
      events.texts(["a"], 0);
      events.texts(["c"], 2);
    },
    (events) => events.texts(["c", "d"], 2),
  );
  await using _broker = broker;
  await using client = await connectTo(broker);
  await using subscription = await open(client);
  assertEquals(await read(subscription, 3), ["a", "c", "d"]);
  assertEquals(starts.length, 2);
});

networkTest("onGap report: the next event says how many are missing", async () => {
  const { broker, starts } = await scripted((events) => {
    events.texts(["a"], 0);
    events.texts(["d"], 3);
    events.batch({
      payloads: [new TextEncoder().encode("f")],
      baseOffset: 5n,
      skippedBefore: 1n,
    });
  });
  await using _broker = broker;
  const drops: unknown[] = [];
  await using client = await connectTo(broker, { hooks: { onDrop: (info) => drops.push(info) } });
  await using subscription = await open(client, { start: "earliest", onGap: "report" });
  const [a, d, f] = [
    await subscription.next(),
    await subscription.next(),
    await subscription.next(),
  ];
  assertEquals([a?.droppedBefore, d?.droppedBefore, f?.droppedBefore], [0n, 2n, 0n]);
  assertEquals([d?.text(), f?.skippedBefore], ["d", 1n]);
  assertEquals(starts.length, 1);
  assertEquals(drops, [
    { resource: "default/orders/0", shard: 0, dropped: 2n, from: 1n, to: 3n },
  ]);
});

networkTest("onGap throw: the next read rejects, then it has ended", async () => {
  const lagged: Turn = (events) => {
    events.texts(["a"], 0);
    events.send({ type: "subscription_lagged", subscription_id: 1n, resume_from: 7n });
  };
  const gapped: Turn = (events) => {
    events.texts(["a"], 0);
    events.texts(["d"], 3);
  };
  for (const turn of [lagged, gapped]) {
    const { broker } = await scripted(turn);
    await using _broker = broker;
    await using client = await connectTo(broker);
    await using subscription = await open(client, { start: "earliest", onGap: "throw" });
    assertEquals(await read(subscription, 1), ["a"]);
    const error = await assertRejects(() => subscription.next(), SubscriptionLaggedError);
    assertEquals([error.lastOffset, error.resumeFrom], [0n, 1n]);
    assertEquals(await subscription.next(), null);
  }
});

networkTest("an unreadable event stream is left and read again from there", async () => {
  const { broker, starts } = await scripted(
    (events) => {
      events.texts(["a"], 0);
      events.raw(new Uint8Array(64));
    },
    (events) => events.texts(["b"], 1),
  );
  await using _broker = broker;
  await using client = await connectTo(broker);
  await using subscription = await open(client);
  assertEquals(await read(subscription, 2), ["a", "b"]);
  assertEquals(starts, ["earliest", { offset: 1n }]);
});
