// Counters against a scripted broker (spec/client.md §10; conformance ids of §22 in brackets,
// scenarios of spec/semantics.md §12 by number).

import { assertEquals, assertInstanceOf, assertRejects } from "@std/assert";
import type { Message } from "@felix/wire";
import {
  ClosedError,
  InvalidArgumentError,
  OutcomeUnknownError,
  ProtocolError,
  UnsupportedError,
} from "../failure/classes.ts";
import type { BrokerStream } from "../testing/broker_stream.ts";
import { connectTo, networkTest, until } from "../testing/fixture.ts";
import { ScriptedBroker } from "../testing/scripted_broker.ts";
import type { Script } from "../testing/scripted_broker.ts";

type CounterMessage = Extract<Message, { type: "counter_add" | "counter_get" }>;

/** Runs `act` for the first counter request instead of serving it. */
function first(act: (stream: BrokerStream, message: CounterMessage) => void): Script {
  let seen = 0;
  return {
    message(stream, message) {
      if (message.type !== "counter_add" && message.type !== "counter_get") return false;
      if (++seen > 1) return false;
      act(stream, message);
      return true;
    },
  };
}

networkTest("sums [counter.add_returns_sum, get_absent_is_none, CA29, CA31]", async () => {
  await using broker = await ScriptedBroker.start();
  await using client = await connectTo(broker);
  const counters = client.counters("sessions");
  assertEquals(await counters.get("k"), null);
  assertEquals(await counters.add("k", 5), 5n);
  assertEquals(await counters.add("k", -2n), 3n);
  assertEquals(await counters.get("k"), 3n);
  assertEquals(await counters.get("other"), null);
  assertEquals(await client.namespace("n").counters("sessions").add("big", 2n ** 60n), 2n ** 60n);
  assertEquals(await client.cache("sessions").get("k"), null, "a value is something else");
  assertEquals(broker.of("counter_add").map(({ namespace, delta }) => [namespace, delta]), [
    ["default", 5n],
    ["default", -2n],
    ["n", 2n ** 60n],
  ]);
  assertEquals(client.metrics().cache.hits, 0n, "a counter is no hit");
});

networkTest("deltas of 64 bits with a sign go out, others are refused here", async () => {
  await using broker = await ScriptedBroker.start();
  await using client = await connectTo(broker);
  const counters = client.counters("sessions");
  for (const delta of [2n ** 63n, -(2n ** 63n) - 1n, 0.5, NaN, Infinity, 2 ** 53]) {
    await assertRejects(() => counters.add("k", delta), InvalidArgumentError);
  }
  await assertRejects(() => counters.add("", 1), InvalidArgumentError);
  await assertRejects(() => counters.get("k", { timeoutMs: 0 }), InvalidArgumentError);
  assertEquals(broker.messages.length, 0);
  assertEquals(await counters.add("most", 2n ** 63n - 1n), 2n ** 63n - 1n);
  assertEquals(await counters.add("least", -(2n ** 63n)), -(2n ** 63n));
  assertEquals(await counters.add("zero", -0), 0n);
});

networkTest("an add that was lost is not sent again, a get is asked again", async () => {
  const lost = (stream: BrokerStream): void => stream.connection.close();
  await using broker = await ScriptedBroker.start(first(lost));
  await using client = await connectTo(broker);
  const counters = client.counters("sessions");
  const error = await assertRejects(() => counters.add("k", 1), OutcomeUnknownError);
  assertEquals([error.operation, error.resource], ["counter.add", "default/sessions"]);
  assertEquals(broker.of("counter_add").length, 1);
  broker.script.message = first(lost).message!;
  assertEquals(await counters.get("k"), null);
  assertEquals(broker.of("counter_get").length, 2);
});

networkTest("an add of unknown outcome is reported, a refused one is sent again", async () => {
  await using broker = await ScriptedBroker.start(
    first((stream) => stream.refuse("quorum_timeout", "outcome_unknown")),
  );
  await using client = await connectTo(broker);
  const counters = client.counters("sessions");
  await assertRejects(() => counters.add("k", 1), OutcomeUnknownError);
  broker.script.message = first((stream) => stream.refuse("shard_unavailable", "retry")).message!;
  assertEquals(await counters.add("k", 1), 1n);
});

networkTest("an add that was given up after it was sent is in doubt", async () => {
  await using broker = await ScriptedBroker.start(first(() => undefined));
  await using client = await connectTo(broker);
  const abort = new AbortController();
  const adding = client.counters("sessions").add("k", 1, { signal: abort.signal });
  await until(() => broker.of("counter_add").length === 1);
  abort.abort(new Error("enough"));
  assertEquals((await assertRejects(() => adding, OutcomeUnknownError)).cause, abort.signal.reason);
});

networkTest("an answer of the wrong kind, or without a sum, breaks the stream", async () => {
  const wrong = (answer: Partial<Message>): Script =>
    first((stream, { request_id }) => stream.send({ ...answer, request_id } as Message));
  await using broker = await ScriptedBroker.start(wrong({ type: "cache_ok" }));
  await using client = await connectTo(broker);
  const counters = client.counters("sessions");
  await assertRejects(() => counters.get("k"), ProtocolError);
  broker.script.message = wrong({ type: "counter_value" }).message!;
  const error = await assertRejects(() => counters.add("k", 1), OutcomeUnknownError);
  assertInstanceOf(error.cause, ProtocolError);
  broker.script.message = (stream, message) => {
    if (message.type !== "cache_get") return false;
    stream.send({ type: "counter_value", value: 1n, request_id: message.request_id! });
    return true;
  };
  await assertRejects(() => client.cache("sessions").get("k"), ProtocolError);
});

networkTest("a broker without counters is not asked", async () => {
  await using broker = await ScriptedBroker.start({}, { features: 0x800 });
  const client = await connectTo(broker);
  const counters = client.counters("sessions");
  for (const ask of [() => counters.add("k", 1), () => counters.get("k")]) {
    const error = await assertRejects(ask, UnsupportedError);
    assertEquals([error.code, error.feature], ["unsupported", "counters"]);
  }
  assertEquals([broker.messages.length, client.supports("counters")], [0, false]);
  await client.close();
  await assertRejects(() => counters.get("k"), ClosedError);
});
