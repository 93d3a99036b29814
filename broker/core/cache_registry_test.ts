// Registration of caches, their common memory and the sweep over all of them.

import { assert, assertEquals, assertStrictEquals, assertThrows } from "@std/assert";
import { CacheRegistry } from "./cache_registry.ts";
import { CoreError } from "./core_error.ts";

const definition = { tenant: "acme", namespace: "main", cache: "users", shards: 2 };

Deno.test("the same definition answers the same cache; another width is refused", () => {
  const registry = new CacheRegistry({ budgetBytes: 10_000 });
  const cache = registry.register(definition);
  assertStrictEquals(registry.register({ ...definition }), cache);
  assertStrictEquals(registry.find("acme", "main", "users"), cache);
  assertEquals(registry.find("acme", "mainusers", ""), undefined);
  const refused = (shards: number): string =>
    assertThrows(() => registry.register({ ...definition, shards }), CoreError).code;
  assertEquals([refused(3), refused(0)], ["definition_changed", "invalid_definition"]);
  assertEquals(registry.list(), [cache]);
});

Deno.test("removal frees the memory of the cache's entries; its name can be used again", () => {
  const registry = new CacheRegistry({ budgetBytes: 10_000 });
  const cache = registry.register(definition);
  cache.shards[0]!.put("a", new Uint8Array(10), null, 0);
  cache.shards[1]!.put("b", new Uint8Array(10), 5, 0);
  assertStrictEquals(registry.remove("acme", "main", "users"), cache);
  assertEquals([cache.active, registry.memory.bytes], [false, 0]);
  assertEquals(registry.remove("acme", "main", "users"), undefined);
  assert(registry.register({ ...definition, shards: 5 }) !== cache);
});

Deno.test("repeated sweeps reach every shard of every cache", () => {
  const registry = new CacheRegistry({ budgetBytes: 100_000 });
  assertEquals(registry.sweep(0, 10), 0);
  for (const cache of ["a", "b", "c"]) {
    for (const shard of registry.register({ ...definition, cache }).shards) {
      for (const key of ["x", "y", "z"]) shard.put(key, new Uint8Array(1), 10, 0);
    }
  }
  let removed = 0;
  for (let sweeps = 0; sweeps < 40; sweeps++) removed += registry.sweep(10, 2);
  assertEquals([removed, registry.memory.expired, registry.memory.bytes], [18, 18, 0]);
});
