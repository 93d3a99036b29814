// The idempotent producer against a scripted broker (spec/client.md §6): numbers, what is sent
// again and how, what stops it, and what becomes of a batch that its caller gave up.

import { assert, assertEquals, assertInstanceOf, assertRejects } from "@std/assert";
import {
  FEATURE_IDEMPOTENT_PRODUCER,
  FEATURE_PUBLISH_PIPELINE,
  FEATURE_STREAM_SHARDS,
  FLAG_BINARY_PUBLISH_IDEMPOTENT,
  KNOWN_FLAGS,
  shardForKey,
} from "@felix/wire";
import type { Message, PublishFrame, RefusedReason } from "@felix/wire";
import {
  AuthError,
  ClosedError,
  InvalidArgumentError,
  OutcomeUnknownError,
  ProducerError,
  UnsupportedError,
} from "../failure/classes.ts";
import type { BrokerStream } from "../testing/broker_stream.ts";
import { connectTo, networkTest, until } from "../testing/fixture.ts";
import { MemoryBroker } from "../testing/memory_broker.ts";
import { DEFAULT_FEATURES, type Script, ScriptedBroker } from "../testing/scripted_broker.ts";

const FEATURES = (DEFAULT_FEATURES | FEATURE_IDEMPOTENT_PRODUCER) >>> 0;

/** What a test lets happen to a batch instead. */
type Interference = "lose_answer" | "drop" | "hold" | RefusedReason | { error: string };

/** A broker that knows producers; `next` says what goes wrong with the next batches. */
class World implements Script {
  readonly memory: MemoryBroker;
  /** `producer/shard/sequence` of every batch that came. */
  readonly came: string[] = [];
  readonly next: (Interference | null)[] = [];
  readonly held: (() => void)[] = [];
  readonly #known = new Map<string, bigint[]>();
  #lastId = 100n;

  constructor(shards = 1) {
    this.memory = new MemoryBroker({ orders: shards });
  }

  start(options: Parameters<typeof ScriptedBroker.start>[1] = {}): Promise<ScriptedBroker> {
    return ScriptedBroker.start(this, { features: FEATURES, memory: this.memory, ...options });
  }

  message(stream: BrokerStream, message: Message): boolean {
    if (message.type !== "producer_init") return false;
    const { request_id } = message;
    stream.send({ type: "producer_init_ok", request_id, producer_id: ++this.#lastId });
    return true;
  }

  publish(stream: BrokerStream, frame: PublishFrame): boolean {
    const { producerId, sequence, requestId: request_id } = frame;
    if (producerId === undefined || sequence === undefined) return false;
    const shards = this.memory.streams.get(frame.stream)!;
    const shard = shardForKey(frame.key, shards.length, "modulo");
    this.came.push(`${producerId}/${shard}/${sequence}`);
    const refuse = (reason: RefusedReason) =>
      stream.send({ type: "publish_refused", request_id, reason, message: "refused" });
    const interference = this.next.shift() ?? null;
    if (interference === "drop") stream.connection.close(0, "dropped");
    else if (typeof interference === "object" && interference !== null && "error" in interference) {
      const { error: code } = interference;
      stream.send({ type: "publish_error", request_id, message: code, code });
    } else if (
      interference !== null && interference !== "lose_answer" && interference !== "hold"
    ) refuse(interference);
    else {
      const offsets = this.#offsetsOf(`${producerId}/${shard}`);
      const number = Number(sequence);
      if (number > offsets.length) refuse({ sequence_gap: { expected: BigInt(offsets.length) } });
      else {
        offsets[number] ??= BigInt(this.memory.append(frame, shards[shard]!));
        const offset = offsets[number];
        const answer = () => stream.send({ type: "publish_ok", request_id, offset });
        if (interference === null) answer();
        else if (interference === "hold") this.held.push(answer);
        else stream.connection.close(0, "answer lost");
      }
    }
    return true;
  }

  #offsetsOf(producer: string): bigint[] {
    let offsets = this.#known.get(producer);
    if (offsets === undefined) this.#known.set(producer, offsets = []);
    return offsets;
  }
}

networkTest("batches are numbered per shard and answered with offsets", async () => {
  const world = new World(4);
  await using broker = await world.start();
  await using client = await connectTo(broker);
  await using producer = await client.stream("orders").producer();
  assertEquals([producer.id, producer.state], [101n, "ready"]);
  const first = await producer.publishBatch(["a", "b"]);
  assertEquals(first, {
    offset: 0n,
    count: 2,
    shard: 0,
    broker: broker.address,
    forwarded: false,
    attempts: 1,
    mayBeDuplicated: false,
  });
  assertEquals((await producer.publish("c")).offset, 2n);
  const keyed = await producer.publish("d", { key: "customer-1" });
  assert(keyed.shard !== 0);
  assertEquals(world.came, ["101/0/0", "101/0/1", `101/${keyed.shard}/0`]);
  assertEquals(client.metrics().publish.inflightBytes, 0);
});

networkTest("many are in flight together, within the window", async () => {
  const world = new World();
  await using broker = await world.start();
  await using client = await connectTo(broker);
  await using producer = await client.stream("orders").producer({ window: 3 });
  for (let at = 0; at < 3; at++) world.next.push("hold");
  const results = producer.publishBatches(Array.from({ length: 10 }, (_, at) => [`${at}`]));
  await until(() => world.held.length === 3);
  assertEquals(world.came.length, 3);
  for (const answer of world.held) answer();
  const offsets = (await results).map(({ offset }) => offset);
  assertEquals(offsets, Array.from({ length: 10 }, (_, at) => BigInt(at)));
  assertEquals(broker.memory.texts("orders"), Array.from({ length: 10 }, (_, at) => `${at}`));
});

networkTest("without a granted window one batch is in flight", async () => {
  const world = new World();
  const features = FEATURES & ~FEATURE_PUBLISH_PIPELINE;
  await using broker = await world.start({ features: features >>> 0 });
  await using client = await connectTo(broker);
  await using producer = await client.stream("orders").producer();
  world.next.push("hold");
  const results = producer.publishBatches([["a"], ["b"]]);
  await until(() => world.held.length === 1);
  assertEquals(world.came.length, 1);
  world.held[0]!();
  assertEquals((await results).map(({ offset }) => offset), [0n, 1n]);
});

networkTest("a lost answer: sent again under its number, written once", async () => {
  const world = new World();
  await using broker = await world.start();
  await using client = await connectTo(broker);
  await using producer = await client.stream("orders").producer();
  await producer.publish("a");
  world.next.push("lose_answer");
  const results = await producer.publishBatches([["b"], ["c"], ["d"]]);
  assertEquals(results.map(({ offset }) => offset), [1n, 2n, 3n]);
  assert(results[0]!.attempts >= 2);
  world.next.push(null, "drop");
  assertEquals((await producer.publishBatches([["e"], ["f"]])).length, 2);
  assertEquals(broker.memory.texts("orders"), ["a", "b", "c", "d", "e", "f"]);
  assertEquals(producer.state, "ready");
});

networkTest("answers that say that nothing was applied are tried again", async () => {
  const world = new World();
  await using broker = await world.start();
  await using client = await connectTo(broker);
  await using producer = await client.stream("orders").producer();
  world.next.push({ error: "quorum_timeout" }, { error: "storage" });
  assertEquals((await producer.publishBatches([["a"], ["b"]])).length, 2);
  assertEquals(broker.memory.texts("orders"), ["a", "b"]);
});

networkTest(
  "a failure for good leaves the batch in doubt; it goes first the next time",
  async () => {
    const world = new World();
    await using broker = await world.start();
    await using client = await connectTo(broker);
    await using producer = await client.stream("orders").producer();
    world.next.push({ error: "forbidden" });
    const first = producer.publish("a");
    await assertRejects(() => first, AuthError);
    assertEquals(producer.state, "inDoubt");
    assert(client.metrics().publish.inflightBytes > 0, "its bytes are kept");
    assertEquals((await producer.publish("b")).offset, 1n);
    assertEquals(broker.memory.texts("orders"), ["a", "b"]);
    assertEquals(producer.state, "ready");
    world.next.push({ error: "forbidden" });
    await assertRejects(() => producer.publish("c"), AuthError);
    await producer.resolve();
    assertEquals([broker.memory.texts("orders"), producer.state], [["a", "b", "c"], "ready"]);
  },
);

networkTest("given up after it was sent: finished in the background", async () => {
  const world = new World();
  await using broker = await world.start();
  await using client = await connectTo(broker);
  await using producer = await client.stream("orders").producer({ window: 1 });
  world.next.push("hold");
  const abort = new AbortController();
  const sent = producer.publish("a", { signal: abort.signal });
  const waiting = producer.publish("never", { signal: abort.signal });
  await until(() => world.held.length === 1);
  abort.abort(new RangeError("enough"));
  assertInstanceOf((await assertRejects(() => sent, OutcomeUnknownError)).cause, RangeError);
  await assertRejects(() => waiting, RangeError, "enough");
  assertEquals(producer.state, "inDoubt");
  world.held[0]!();
  assertEquals((await producer.publish("b")).offset, 1n);
  assertEquals(broker.memory.texts("orders"), ["a", "b"]);
});

for (
  const [reason, code] of [
    [{ sequence_gap: { expected: 5n } }, "sequence_gap"],
    ["sequence_expired", "sequence_expired"],
    ["sequence_reused", "sequence_reused"],
    ["unknown_producer", "unknown_producer"],
  ] as const
) {
  networkTest(`refused for good: ${code} stops it`, async () => {
    const world = new World();
    await using broker = await world.start();
    await using client = await connectTo(broker);
    await using producer = await client.stream("orders").producer();
    await producer.publish("a");
    world.next.push(reason);
    const results = await Promise.allSettled([producer.publish("b"), producer.publish("c")]);
    assert(results[0]!.status === "rejected");
    const { reason: error } = results[0];
    assertInstanceOf(error, ProducerError);
    assertEquals([error.code, producer.state], [code, "stopped"]);
    const stopped = await assertRejects(() => producer.publish("d"), ProducerError);
    assertEquals(stopped.code, "producer_stopped");
    assertEquals(client.metrics().publish.inflightBytes, 0);
  });
}

networkTest("a producer that a shard forgot begins anew where that was asked for", async () => {
  const world = new World();
  await using broker = await world.start();
  await using client = await connectTo(broker);
  await using producer = await client.stream("orders").producer({
    onUnknownProducer: "reinitialise",
  });
  await producer.publish("a");
  world.next.push("unknown_producer", "unknown_producer");
  assertEquals((await producer.publishBatches([["b"], ["c"]])).length, 2);
  assertEquals(producer.id, 102n);
  assertEquals(broker.memory.texts("orders"), ["a", "b", "c"]);
  world.next.push("lose_answer", "unknown_producer");
  const error = await assertRejects(() => producer.publish("d"), OutcomeUnknownError);
  assertInstanceOf(error.cause, ProducerError);
  assertEquals(producer.state, "stopped");
});

networkTest("it follows the leader it is told of", async () => {
  const world = new World();
  await using leader = await world.start();
  await using entry = await world.start();
  await using client = await connectTo([entry, leader]);
  await using producer = await client.stream("orders").producer();
  world.next.push({ not_leader: { node_id: "n2", addr: leader.address } });
  const results = await producer.publishBatches([["a"], ["b"]]);
  assertEquals(results.at(-1)!.broker, leader.address);
  assertEquals(world.memory.texts("orders"), ["a", "b"]);
});

networkTest("brokers that take no binary batches get JSON", async () => {
  const world = new World();
  const got: string[] = [];
  world.message = (stream, message) => {
    if (message.type === "publish_idempotent") {
      const { request_id, sequence } = message;
      got.push(`${sequence}: ${new TextDecoder().decode(message.payloads[0])}`);
      stream.send({ type: "publish_ok", request_id, offset: sequence });
      return true;
    }
    return World.prototype.message.call(world, stream, message);
  };
  const flags = KNOWN_FLAGS & ~FLAG_BINARY_PUBLISH_IDEMPOTENT;
  await using broker = await world.start({ flags });
  await using client = await connectTo(broker);
  await using producer = await client.stream("orders").producer();
  assertEquals((await producer.publishBatches([["a"], ["b"]])).map(({ offset }) => offset), [
    0n,
    1n,
  ]);
  assertEquals(got, ["0: a", "1: b"]);
});

networkTest("what is not served is refused before anything is sent", async () => {
  for (const features of [DEFAULT_FEATURES, FEATURES & ~FEATURE_STREAM_SHARDS]) {
    const world = new World();
    await using broker = await world.start({ features: features >>> 0 });
    await using client = await connectTo(broker);
    await assertRejects(() => client.stream("orders").producer(), UnsupportedError);
    assertEquals(world.came, []);
  }
  await using broker = await new World().start();
  await using client = await connectTo(broker);
  const orders = client.stream("orders");
  await assertRejects(() => orders.producer({ window: 0 }), InvalidArgumentError);
  await using producer = await orders.producer();
  await assertRejects(() => producer.publishBatch([]), InvalidArgumentError);
});

networkTest("closing waits for what is under way, and then takes nothing", async () => {
  const world = new World();
  await using broker = await world.start();
  const client = await connectTo(broker);
  const producer = await client.stream("orders").producer();
  world.next.push("hold");
  const result = producer.publish("a");
  await until(() => world.held.length === 1);
  const closing = producer.close();
  await assertRejects(() => producer.publish("b"), ClosedError);
  world.held[0]!();
  await closing;
  assertEquals((await result).offset, 0n);
  const other = await client.stream("orders").producer();
  world.next.push("hold");
  const lost = assertRejects(() => other.publish("c"), OutcomeUnknownError);
  await until(() => world.held.length === 2);
  await client.close({ drainMs: 20 });
  await lost;
});
