// Publishing against a scripted broker (spec/client.md §5, §13; conformance ids in §22 in
// brackets). Each test puts a script in front of the memory broker for what is to go wrong.

import { assert, assertEquals, assertInstanceOf, assertRejects } from "@std/assert";
import type { PublishFrame } from "@felix/wire";
import {
  AuthError,
  InvalidArgumentError,
  NotFoundError,
  OutcomeUnknownError,
  OverloadedError,
  TimeoutError,
} from "../failure/classes.ts";
import { FelixError } from "../failure/felix_error.ts";
import type { BrokerStream } from "../testing/broker_stream.ts";
import { connectTo, networkTest, until } from "../testing/fixture.ts";
import { MemoryBroker } from "../testing/memory_broker.ts";
import { ScriptedBroker } from "../testing/scripted_broker.ts";

/** Publishes that are held until the test answers them. */
class Held {
  readonly frames: { stream: BrokerStream; id: bigint; ack: number; stream_: string }[] = [];
  publish(stream: BrokerStream, frame: PublishFrame): boolean {
    this.frames.push({ stream, id: frame.requestId, ack: frame.ack, stream_: frame.stream });
    return true;
  }
  answer(index: number, offset?: bigint): void {
    const { stream, id } = this.frames[index]!;
    stream.ack({ requestId: id, ...(offset === undefined ? {} : { offset }) });
  }
}

networkTest(
  "acked publishes carry offset, count, shard, broker [ack.carries_the_offset]",
  async () => {
    await using broker = await ScriptedBroker.start();
    await using client = await connectTo(broker);
    const orders = client.stream("orders");
    assertEquals(await orders.publish("a"), {
      offset: 0n,
      count: 1,
      shard: 0,
      broker: broker.address,
      forwarded: false,
      attempts: 1,
      mayBeDuplicated: false,
    });
    const batch = await orders.publishBatch([new Uint8Array([1]), "b", new ArrayBuffer(2)]);
    assertEquals([batch.offset, batch.count], [1n, 3]);
    assertEquals(broker.memory.shard("orders").records.map((record) => record.length), [
      1,
      1,
      1,
      2,
    ]);
    const { publish } = client.metrics();
    assertEquals([publish.requests, publish.records, publish.acked], [2n, 4n, 2n]);
    assertEquals(publish.inflightBytes, 0);
  },
);

networkTest("a stream without a log gives no offsets", async () => {
  await using broker = await ScriptedBroker.start();
  broker.memory.durable = false;
  await using client = await connectTo(broker);
  assertEquals((await client.stream("orders").publish("a")).offset, null);
});

networkTest("ack none does not wait for the broker [ack.none_does_not_wait]", async () => {
  const held = new Held();
  await using broker = await ScriptedBroker.start(held);
  await using client = await connectTo(broker);
  const result = await client.stream("orders").publish("a", { ack: "none" });
  assertEquals(result.offset, null);
  await client.flush();
  await until(() => held.frames.length === 1);
  assertEquals(held.frames[0]!.ack, 0);
  assertEquals(client.metrics().publish.inflightBytes, 0);
});

networkTest("an acked mode waits for the ack [ack.per_message_means_accepted]", async () => {
  const held = new Held();
  await using broker = await ScriptedBroker.start(held);
  await using client = await connectTo(broker);
  const orders = client.stream("orders");
  let settled = 0;
  const sent = [orders.publish("a"), orders.publishBatch(["b"])];
  for (const one of sent) void one.then(() => settled++);
  await until(() => held.frames.length === 2);
  assertEquals(held.frames.map(({ ack }) => ack), [1, 2]);
  assertEquals(settled, 0);
  held.answer(0, 5n);
  await sent[0];
  assertEquals(settled, 1);
  held.answer(1, 6n);
  assertEquals((await sent[1]!).offset, 6n);
});

networkTest("order is kept, answers may come in any order", async () => {
  const held = new Held();
  await using broker = await ScriptedBroker.start(held);
  await using client = await connectTo(broker);
  const orders = client.stream("orders");
  const sent = Array.from({ length: 50 }, (_, n) => orders.publish(String(n)));
  await until(() => held.frames.length === 50);
  for (let index = 49; index >= 0; index--) held.answer(index, BigInt(index));
  const offsets = (await Promise.all(sent)).map(({ offset }) => offset);
  assertEquals(offsets, Array.from({ length: 50 }, (_, n) => BigInt(n)));
  assertEquals(new Set(held.frames.map(({ stream }) => stream)).size, 1);
});

networkTest("no more than the window is unanswered", async () => {
  const held = new Held();
  await using broker = await ScriptedBroker.start(held, { publishWindow: 3 });
  await using client = await connectTo(broker);
  const sent = Array.from({ length: 10 }, (_, n) => client.stream("orders").publish(String(n)));
  for (let answered = 0; answered < 10; answered++) {
    await until(() => held.frames.length === Math.min(10, answered + 3));
    held.answer(answered, BigInt(answered));
    await sent[answered];
  }
});

networkTest("without a window the queue depth bounds it", async () => {
  const held = new Held();
  await using broker = await ScriptedBroker.start(held, { publishWindow: 0, features: 0x800 });
  await using client = await connectTo(broker, { limits: { publishQueueDepth: 4 } });
  const sent = Array.from({ length: 6 }, (_, n) => client.stream("orders").publish(String(n)));
  await until(() => held.frames.length === 4);
  for (let index = 0; index < 6; index++) {
    await until(() => held.frames.length > index);
    held.answer(index);
  }
  await Promise.all(sent);
});

networkTest("bytes on their way are bounded; a huge frame goes alone", async () => {
  const held = new Held();
  await using broker = await ScriptedBroker.start(held);
  await using client = await connectTo(broker, { limits: { publishInflightBytes: 1000 } });
  const orders = client.stream("orders");
  const first = orders.publish(new Uint8Array(600));
  const huge = orders.publish(new Uint8Array(5000));
  const last = orders.publish(new Uint8Array(10));
  await until(() => held.frames.length === 1);
  held.answer(0);
  await first;
  await until(() => held.frames.length === 2);
  assert(client.metrics().publish.inflightBytes > 5000);
  held.answer(1);
  await huge;
  await until(() => held.frames.length === 3);
  held.answer(2);
  await last;
  assertEquals(client.metrics().publish.inflightBytes, 0);
});

networkTest("keys pick shards, each on a stream of its own", async () => {
  const memory = new MemoryBroker({ wide: 8 });
  memory.mapping = "jump_hash";
  const streams = new Map<string, Set<BrokerStream>>();
  await using broker = await ScriptedBroker.start({
    publish(stream, frame) {
      const key = new TextDecoder().decode(frame.key!);
      streams.set(key, (streams.get(key) ?? new Set()).add(stream));
      return false;
    },
  }, { memory });
  await using client = await connectTo(broker);
  const wide = client.stream("wide");
  const keys = ["customer-0", "customer-1", "customer-2", "customer-4", "customer-6"];
  const shards = await Promise.all(
    keys.map(async (key) => (await wide.publish("x", { key })).shard),
  );
  assertEquals(shards, [3, 0, 5, 2, 7]);
  for (const key of keys) assertEquals(streams.get(key)!.size, 1);
  assertEquals(new Set([...streams.values()].map((set) => [...set][0])).size, 5);
  assertEquals(broker.of("stream_shards").length, 1, "asked once");
  assertEquals(await wide.routing(), { shards: 8, mapping: "jumpHash" });
});

networkTest("a key without a known width goes through the entry", async () => {
  await using broker = await ScriptedBroker.start({}, { features: 0x800 });
  await using client = await connectTo(broker);
  assertEquals((await client.stream("orders").publish("x", { key: "" })).shard, null);
  assertEquals(broker.of("stream_shards").length, 0);
});

networkTest("an unknown stream is typed [error.unknown_stream_is_typed]", async () => {
  await using broker = await ScriptedBroker.start();
  await using client = await connectTo(broker, { reconnect: { attempts: 2, backoffMs: 1 } });
  const error = await assertRejects(() => client.stream("nothing").publish("x"), NotFoundError);
  assertEquals([error.code, error.retryable, error.attempts], ["not_found", true, 2]);
  assertEquals(error.resource, "default/nothing/0");
  assertEquals(broker.connections.length, 1);
});

networkTest(
  "terminal failures are sent once [retry.terminal_failures_are_not_retried]",
  async () => {
    let frames = 0;
    await using broker = await ScriptedBroker.start({
      publish(stream, frame) {
        frames++;
        stream.refusePublish(frame.requestId, "forbidden", "fatal");
        return true;
      },
    });
    await using client = await connectTo(broker);
    const error = await assertRejects(() => client.stream("orders").publish("x"), AuthError);
    assertEquals([error.code, frames], ["forbidden", 1]);
    assertEquals(client.metrics().publish.failed, 1n);
  },
);

networkTest("nothing applied is sent again, unless the caller says no", async () => {
  let frames = 0;
  await using broker = await ScriptedBroker.start({
    publish(stream, frame) {
      if (++frames % 3 === 0) return false;
      const detail = { reason: "publish_queue_full", retryAfterMs: 1n };
      stream.refusePublish(frame.requestId, "overloaded", "retry_after", detail);
      return true;
    },
  });
  const retries: number[] = [];
  const hooks = { onRetry: ({ attempt }: { attempt: number }) => retries.push(attempt) };
  await using client = await connectTo(broker, { hooks });
  const result = await client.stream("orders").publish("x");
  assertEquals([result.attempts, result.mayBeDuplicated], [3, false]);
  assertEquals(retries, [1, 2]);
  assertEquals(client.metrics().retries, { overloaded: 2n });
  const error = await assertRejects(
    () => client.stream("orders").publish("y", { retrySafe: false }),
    OverloadedError,
  );
  assertEquals([error.reason, error.retryAfterMs, error.attempts], ["publish_queue_full", 1, 1]);
});

networkTest("an unknown outcome is never sent again [retry.ambiguous_outcomes]", async () => {
  let frames = 0;
  await using broker = await ScriptedBroker.start({
    publish(stream, frame) {
      frames++;
      stream.refusePublish(frame.requestId, "quorum_timeout", "outcome_unknown");
      return true;
    },
  });
  await using client = await connectTo(broker);
  const error = await assertRejects(
    () => client.stream("orders").publish("x"),
    OutcomeUnknownError,
  );
  assertEquals([error.brokerCode, error.retryable, frames], ["quorum_timeout", false, 1]);
  assertEquals(client.metrics().publish.outcomeUnknown, 1n);
});

networkTest("at least once sends it again and says so [ack.at_least_once]", async () => {
  let frames = 0;
  await using broker = await ScriptedBroker.start({
    publish(stream, frame) {
      if (++frames > 2) return false;
      if (frames === 1) stream.refusePublish(frame.requestId, "internal", "outcome_unknown");
      else stream.connection.close();
      return true;
    },
  });
  await using client = await connectTo(broker);
  const result = await client.stream("orders").publish("x", { delivery: "atLeastOnce", key: "k" });
  assertEquals([result.mayBeDuplicated, result.attempts, frames], [true, 3, 3]);
});

networkTest(
  "a connection lost before the answer: outcome unknown, and the next works",
  async () => {
    let frames = 0;
    await using broker = await ScriptedBroker.start({
      publish(stream) {
        if (++frames > 1) return false;
        stream.connection.close();
        return true;
      },
    });
    await using client = await connectTo(broker);
    const orders = client.stream("orders");
    const error = await assertRejects(() => orders.publish("a"), OutcomeUnknownError);
    assertInstanceOf(error.cause, FelixError);
    assertEquals((await orders.publish("b")).attempts, 1);
    assertEquals([frames, broker.connections.length], [2, 2]);
  },
);

networkTest("an answer to a publish that nobody sent breaks the stream", async () => {
  let frames = 0;
  await using broker = await ScriptedBroker.start({
    publish(stream) {
      if (++frames > 1) return false;
      stream.ack({ requestId: 4711n });
      return true;
    },
  });
  await using client = await connectTo(broker);
  const orders = client.stream("orders");
  const error = await assertRejects(() => orders.publish("a"), OutcomeUnknownError);
  assertEquals((error.cause as FelixError).code, "protocol");
  assertEquals((await orders.publish("b")).offset, 0n);
});

networkTest("an uncoded refusal is final and costs a new connection", async () => {
  let frames = 0;
  await using broker = await ScriptedBroker.start({
    publish(stream, frame) {
      if (++frames > 1) return false;
      stream.refusePublish(frame.requestId, undefined);
      return true;
    },
  });
  await using client = await connectTo(broker);
  const orders = client.stream("orders");
  const error = await assertRejects(() => orders.publish("a"), FelixError);
  assertEquals([error.code, error.brokerCode], ["broker_error", undefined]);
  await orders.publish("b");
  assertEquals(broker.connections.length, 2);
});

networkTest("no answer in time: outcome unknown, a late answer does no harm", async () => {
  const held = new Held();
  await using broker = await ScriptedBroker.start(held);
  await using client = await connectTo(broker);
  const orders = client.stream("orders");
  const error = await assertRejects(
    () => orders.publish("a", { timeoutMs: 50 }),
    OutcomeUnknownError,
  );
  assertInstanceOf(error.cause, TimeoutError);
  assertEquals(client.metrics().publish.inflightBytes, 0);
  const next = orders.publish("b");
  await until(() => held.frames.length === 2);
  held.answer(0, 0n);
  held.answer(1, 1n);
  assertEquals((await next).offset, 1n);
  assertEquals(broker.connections.length, 1);
});

networkTest("the client's own limit needs no timer per call", async () => {
  const held = new Held();
  await using broker = await ScriptedBroker.start(held);
  await using client = await connectTo(broker, { requestTimeoutMs: 100 });
  const error = await assertRejects(
    () => client.stream("orders").publish("a"),
    OutcomeUnknownError,
  );
  assertInstanceOf(error.cause, TimeoutError);
});

networkTest("arguments are checked before anything is sent", async () => {
  await using broker = await ScriptedBroker.start();
  await using client = await connectTo(broker, { maxFrameBytes: 2048 });
  const orders = client.stream("orders");
  const wrong = [
    () => orders.publish("x", { ack: "none", delivery: "atLeastOnce" }),
    () => orders.publish("x", { ack: "always" as "none" }),
    () => orders.publish("x", { timeoutMs: 0 }),
    () => orders.publish(new Uint8Array(2048)),
    () => orders.publish("x", { key: new Uint8Array(70_000) }),
    () => orders.publish(5 as unknown as string),
    () => orders.publishBatch([]),
  ];
  for (const call of wrong) await assertRejects(call, InvalidArgumentError);
  assertEquals(broker.memory.shard("orders").records.length, 0);
});
