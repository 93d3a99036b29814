// The whole of the client in one go: publish, subscribe, cache. Details have tests of their own
// beside the files that they belong to.

import { assert, assertEquals } from "@std/assert";
import { ScriptedBroker } from "./testing/scripted_broker.ts";
import { connectTo, networkTest } from "./testing/fixture.ts";

networkTest("publishes, subscribes and caches", async () => {
  await using broker = await ScriptedBroker.start();
  await using client = await connectTo(broker);
  const orders = client.stream("orders");
  const first = await orders.publish("a");
  assertEquals(first.offset, 0n);
  await using subscription = await orders.subscribe({ start: "earliest" });
  await orders.publishBatch(["b", "c"]);
  const texts: string[] = [];
  for await (const event of subscription) {
    texts.push(event.text());
    if (texts.length === 3) break;
  }
  assertEquals(texts, ["a", "b", "c"]);
  const sessions = client.cache("sessions");
  await sessions.put("k", "v");
  assertEquals(await sessions.getText("k"), "v");
  assertEquals(await sessions.get("none"), null);
  assert(!client.closed);
});
