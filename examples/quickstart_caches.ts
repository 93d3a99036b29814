// Stores values, reads them, lets one expire.
//
//   deno task dev                                  # in another terminal
//   deno run --allow-net --allow-read examples/quickstart_caches.ts [dev.json]

// deno-lint-ignore-file no-console -- a program that prints what it does

import { connectToDevelopmentBroker } from "./dev_broker.ts";

await using client = await connectToDevelopmentBroker();
console.log("connected to", client.endpoints().join(", "));

const sessions = client.cache("sessions");
await sessions.put("user-7", "active");
console.log("user-7 is", await sessions.getText("user-7"));
console.log("user-8 is", await sessions.getText("user-8"), "(a miss)");

await sessions.put("code", "123456", { ttlMs: 300 });
console.log("code is", await sessions.getText("code"), "for 300 ms");
const deadline = Date.now() + 10_000;
while (await sessions.get("code") !== null && Date.now() < deadline) {
  await new Promise((resolve) => setTimeout(resolve, 50));
}
console.log("code is", await sessions.getText("code"), "(expired)");

await Promise.all(["a", "b", "c"].map((key) => sessions.put(key, key.toUpperCase())));
const found = await sessions.getMany(["a", "b", "c", "d"]);
console.log("found", [...found.keys()].join(", "), "of a, b, c, d");

const removed = await sessions.delete("user-7");
console.log("removed", removed === null ? "nothing" : new TextDecoder().decode(removed));
