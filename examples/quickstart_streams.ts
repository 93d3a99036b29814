// Publishes a few records and reads them back.
//
//   deno task dev                                  # in another terminal
//   deno run --allow-net --allow-read examples/quickstart_streams.ts [dev.json]

// deno-lint-ignore-file no-console -- a program that prints what it does

import { connectToDevelopmentBroker } from "./dev_broker.ts";

await using client = await connectToDevelopmentBroker();
console.log("connected to", client.endpoints().join(", "));

const events = client.stream("events");
await using subscription = await events.subscribe();
console.log("subscribed to", `${events.namespace}/${events.name}`);

const one = await events.publish("hello");
console.log("published 1 record; offset", one.offset ?? "not told (the stream is in memory)");
const three = await events.publishBatch(["one", "two", "three"]);
console.log("published", three.count, "records in one frame");

let received = 0;
for await (const event of subscription) {
  console.log("received", event.text());
  if (++received === 4) break;
}

// Many small records: a batcher puts them into few frames.
await using wide = client.stream("wide").batcher();
const added = Array.from({ length: 100 }, (_, n) => wide.add(`order ${n}`, `customer-${n % 10}`));
await wide.flush();
const shards = new Set((await Promise.all(added)).map(({ shard }) => shard));
console.log("published 100 keyed records to", shards.size, "shards");
