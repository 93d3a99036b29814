// Collecting records into frames (spec/client.md §5): what shares a frame, which offset each record
// gets, and what a failure does.

import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { recordViews } from "@felix/wire";
import { ClosedError, InvalidArgumentError } from "../failure/classes.ts";
import { FelixError } from "../failure/felix_error.ts";
import { connectTo, networkTest, until } from "../testing/fixture.ts";
import { MemoryBroker } from "../testing/memory_broker.ts";
import { ScriptedBroker } from "../testing/scripted_broker.ts";

/** A broker that notes how many records each frame had. */
async function counting(memory = new MemoryBroker()) {
  const frames: { count: number; key: string | null }[] = [];
  const broker = await ScriptedBroker.start({
    publish(_stream, { count, key }) {
      frames.push({ count, key: key === null ? null : new TextDecoder().decode(key) });
      return false;
    },
  }, { memory });
  return { broker, frames };
}

networkTest("records share frames; each gets its own offset", async () => {
  const { broker, frames } = await counting();
  await using _broker = broker;
  await using client = await connectTo(broker);
  await using batcher = client.stream("orders").batcher({ maxRecords: 4, maxDelayMs: 60_000 });
  const added = Array.from({ length: 10 }, (_, n) => batcher.add(`r${n}`));
  assert(batcher.pendingBytes > 0);
  await batcher.flush();
  const results = await Promise.all(added);
  assertEquals(
    results.map(({ offset }) => offset),
    Array.from({ length: 10 }, (_, n) => BigInt(n)),
  );
  assertEquals(results.map(({ count }) => count), Array.from({ length: 10 }, () => 1));
  assertEquals(frames.map(({ count }) => count), [4, 4, 2]);
  assertEquals(batcher.pendingBytes, 0);
  assertEquals(broker.memory.texts("orders"), Array.from({ length: 10 }, (_, n) => `r${n}`));
});

networkTest("bytes and time send a frame as well", async () => {
  const { broker, frames } = await counting();
  await using _broker = broker;
  await using client = await connectTo(broker);
  await using big = client.stream("orders").batcher({ maxBytes: 100, maxDelayMs: 60_000 });
  const added = [60, 30, 20, 500].map((bytes) => big.add(new Uint8Array(bytes)));
  await Promise.all(added);
  assertEquals(frames.map(({ count }) => count), [2, 1, 1]);
  await using timed = client.stream("orders").batcher({ maxDelayMs: 5 });
  await timed.add("alone");
  assertEquals(frames.length, 4);
});

networkTest("per shard once the width is known, per key before", async () => {
  const { broker, frames } = await counting(new MemoryBroker({ wide: 2 }));
  await using _broker = broker;
  await using client = await connectTo(broker);
  const wide = client.stream("wide");
  await using batcher = wide.batcher({ maxDelayMs: 60_000 });
  const keys = ["a", "b", "c", "d", "e", "f"];
  const before = keys.map((key) => batcher.add("x", key));
  await batcher.flush();
  await Promise.all(before);
  assertEquals(frames.length, 6);
  await wide.routing();
  const after = keys.map((key) => batcher.add("y", key));
  await batcher.flush();
  const shards = (await Promise.all(after)).map(({ shard }) => shard);
  assertEquals(frames.length, 8);
  assertEquals(new Set(shards), new Set([0, 1]));
});

networkTest("a failed frame fails its records, flush does not", async () => {
  await using broker = await ScriptedBroker.start({
    publish(stream, frame) {
      const [first] = recordViews(frame.records, frame.count);
      if (new TextDecoder().decode(first) !== "bad") return false;
      stream.refusePublish(frame.requestId, "invalid_request", "fatal");
      return true;
    },
  });
  await using client = await connectTo(broker);
  const batcher = client.stream("orders").batcher({ maxRecords: 2, maxDelayMs: 60_000 });
  const bad = [batcher.add("bad"), batcher.add("b")].map((added) =>
    assertRejects(() => added, FelixError)
  );
  const good = batcher.add("good");
  await batcher.flush();
  for (const error of await Promise.all(bad)) assertEquals(error.code, "invalid_request");
  await good;
  await batcher[Symbol.asyncDispose]();
  await assertRejects(() => batcher.add("x"), ClosedError);
});

networkTest("a web stream publishes all of it, and fails with the first failure", async () => {
  let refuse = false;
  await using broker = await ScriptedBroker.start({
    publish(stream, frame) {
      if (refuse) stream.refusePublish(frame.requestId, "forbidden", "fatal");
      return refuse;
    },
  });
  await using client = await connectTo(broker);
  const source = ReadableStream.from(
    Array.from({ length: 500 }, (_, n) => n % 2 === 0 ? `r${n}` : { payload: `r${n}`, key: "k" }),
  );
  await source.pipeTo(client.stream("orders").writable({ maxBytes: 256 }));
  assertEquals(broker.memory.shard("orders").records.length, 500);
  refuse = true;
  const writer = client.stream("orders").writable().getWriter();
  await writer.write("x");
  await assertRejects(() => writer.close(), FelixError);
});

networkTest("options are checked", async () => {
  await using broker = await ScriptedBroker.start();
  await using client = await connectTo(broker);
  const orders = client.stream("orders");
  for (const options of [{ maxRecords: 0 }, { maxBytes: -1 }, { maxDelayMs: NaN }]) {
    assertThrows(() => orders.batcher(options), InvalidArgumentError);
  }
  const both = { ack: "none", delivery: "atLeastOnce" } as const;
  assertThrows(() => orders.batcher(both), InvalidArgumentError);
  await until(() => broker.connections.length === 1);
});
