// Registration of streams: same definition same stream, another one refused, handles dense.

import { assert, assertEquals, assertStrictEquals, assertThrows } from "@std/assert";
import { batchOf, drain, streamIn, subscribed } from "./core_fixture.ts";
import { CoreError } from "./core_error.ts";
import { StreamRegistry } from "./stream_registry.ts";
import type { StreamDefinition } from "./stream_registry.ts";

const definition: StreamDefinition = {
  tenant: "acme",
  namespace: "main",
  stream: "events",
  shards: 2,
  routing: "modulo",
  durable: false,
};

function refusal(registry: StreamRegistry, change: Partial<StreamDefinition>): string {
  const wanted = { ...definition, ...change };
  return assertThrows(() => registry.register(wanted), CoreError).code;
}

Deno.test("the same definition answers the same stream, names are kept apart", () => {
  const registry = new StreamRegistry();
  const stream = registry.register(definition);
  assertStrictEquals(registry.register({ ...definition }), stream);
  const other = registry.register({ ...definition, tenant: "acmem", namespace: "ain" });
  assert(other !== stream);
  assertStrictEquals(registry.find("acme", "main", "events"), stream);
  assertStrictEquals(registry.find("acmem", "ain", "events"), other);
  assertEquals(registry.find("acme", "main", "event"), undefined);
  assertEquals(registry.list(), [stream, other]);
});

Deno.test("another width, routing or durability is refused, and so is a broken definition", () => {
  const registry = new StreamRegistry();
  registry.register(definition);
  assertEquals(refusal(registry, { shards: 3 }), "definition_changed");
  assertEquals(refusal(registry, { routing: "jump_hash" }), "definition_changed");
  assertEquals(refusal(registry, { durable: true }), "definition_changed");
  assertEquals(refusal(registry, { stream: "new", durable: true }), "durable_not_available");
  assertEquals(refusal(registry, { stream: "" }), "invalid_definition");
  for (const shards of [0, -1, 1.5, 1025, NaN]) {
    assertEquals(refusal(registry, { stream: "new", shards }), "invalid_definition");
  }
  assertEquals(registry.list().length, 1);
});

Deno.test("B7: handles are dense, and one that is used again has a new generation", () => {
  const registry = new StreamRegistry();
  const first = registry.register(definition);
  const second = registry.register({ ...definition, stream: "second" });
  const handles = [...first.shards, ...second.shards].map((shard) => shard.handle);
  assertEquals(handles, [0, 1, 2, 3]);
  assertStrictEquals(registry.remove("acme", "main", "events"), first);
  const third = registry.register({ ...definition, stream: "third", shards: 3 });
  assertEquals(third.shards.map((shard) => shard.handle).sort(), [0, 1, 4]);
  const generations = third.shards.map((shard) => `${shard.handle}/${shard.generation}`);
  assertEquals(generations.sort(), ["0/2", "1/2", "4/1"]);
});

Deno.test("removal tells its listeners once and leaves subscribers what they have queued", () => {
  const registry = new StreamRegistry();
  const stream = streamIn(registry);
  const shard = stream.shards[0]!;
  const subscriber = subscribed(shard);
  shard.append([batchOf("a")]);
  const told: string[] = [];
  stream.onRemoved.add(() => told.push("first"));
  stream.onRemoved.add(() => told.push("second"));
  registry.remove("acme", "main", "events");
  assertEquals(registry.remove("acme", "main", "events"), undefined);
  assertEquals(told, ["first", "second"]);
  assertEquals([stream.active, shard.active], [false, false]);
  assertEquals(drain(subscriber), ["0:a"]);
  assertEquals(shard.ringBytes, 0);
});
