// The cache store against a naive model, its bound, and what it refuses (B11).

import { assert, assertEquals, assertThrows } from "@std/assert";
import fc from "fast-check";
import { CacheMemory, CacheStore, ENTRY_OVERHEAD_BYTES } from "./cache_store.ts";
import { CacheLimitError } from "./core_error.ts";

const T0 = 1_700_000_000_000;

function valueOf(...bytes: number[]): Uint8Array {
  return Uint8Array.from(bytes);
}

Deno.test("a put copies its value, also over one of the same length", () => {
  const store = new CacheStore(new CacheMemory(10_000));
  const value = valueOf(1, 2);
  store.put("k", value, null, T0);
  value.fill(9);
  assertEquals(store.get("k", T0), valueOf(1, 2));
  store.put("k", valueOf(3, 4), null, T0);
  assertEquals(store.get("k", T0), valueOf(3, 4));
  store.put("k", valueOf(5), null, T0);
  assertEquals(store.get("k", T0), valueOf(5));
  assertEquals([store.size, store.bytes], [1, ENTRY_OVERHEAD_BYTES + 2 + 1]);
});

Deno.test("empty keys and values are legal; ttl 0 has passed at once", () => {
  const store = new CacheStore(new CacheMemory(10_000));
  store.put("", valueOf(), null, T0);
  assertEquals(store.get("", T0), valueOf());
  store.put("k", valueOf(1), 0, T0);
  assertEquals([store.size, store.get("k", T0), store.size], [2, null, 1]);
  store.put("k", valueOf(1), 0, 0);
  assertEquals(store.get("k", 0), valueOf(1));
  assertEquals(store.get("k", 1), null);
});

Deno.test("an entry that can never fit is refused by name and leaves the key as it was", () => {
  const memory = new CacheMemory(ENTRY_OVERHEAD_BYTES + 2 + 10);
  const store = new CacheStore(memory);
  store.put("k", new Uint8Array(10), null, T0);
  const put = (): void => store.put("k", new Uint8Array(11), null, T0);
  assertEquals(assertThrows(put, CacheLimitError).code, "limit_exceeded");
  assertEquals(store.get("k", T0), new Uint8Array(10));
  assertEquals([memory.bytes, memory.evicted], [memory.budgetBytes, 0]);
});

Deno.test("the entry used least recently makes room, in whichever store it is", () => {
  const each = ENTRY_OVERHEAD_BYTES + 2 + 1;
  const memory = new CacheMemory(3 * each);
  const [first, second] = [new CacheStore(memory), new CacheStore(memory)];
  first.put("a", valueOf(1), null, T0);
  second.put("b", valueOf(2), null, T0);
  first.put("c", valueOf(3), null, T0);
  first.get("a", T0);
  second.put("d", valueOf(4), null, T0);
  assertEquals([first.get("a", T0), second.get("b", T0)], [valueOf(1), null]);
  second.put("e", valueOf(5), null, T0);
  assertEquals([first.get("c", T0), memory.evicted, memory.bytes], [null, 2, 3 * each]);
  first.put("a", valueOf(9), null, T0);
  for (const key of ["f", "g"]) first.put(key, valueOf(6), null, T0);
  assertEquals([first.get("a", T0), second.get("e", T0)], [valueOf(9), null]);
});

Deno.test("a sweep goes round a few entries at a time and removes the expired", () => {
  const memory = new CacheMemory(100_000);
  const store = new CacheStore(memory);
  for (let at = 0; at < 20; at++) store.put(`${at}`, valueOf(at), at % 2 ? 1000 : null, T0);
  assertEquals(store.sweep(T0 + 999, 100), 0);
  let [removed, sweeps] = [0, 0];
  while (removed < 10 && sweeps++ < 20) removed += store.sweep(T0 + 1000, 3);
  assertEquals([removed, store.size, memory.expired], [10, 10, 10]);
  store.put("0", valueOf(7), 5, T0);
  store.put("0", valueOf(7), null, T0);
  assertEquals(store.sweep(T0 + 10_000, 100), 0);
  assertEquals(store.size, 10);
});

type Step =
  | { kind: "put"; store: number; key: string; bytes: number; ttlMs: number | null }
  | { kind: "get" | "delete"; store: number; key: string }
  | { kind: "sweep"; store: number; entries: number }
  | { kind: "wait"; ms: number };

const store = fc.nat(1);
const key = fc.constantFrom("", "a", "bb", "ccc", "é", "key");
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    kind: fc.constant("put" as const),
    store,
    key,
    bytes: fc.integer({ min: 0, max: 200 }),
    ttlMs: fc.option(fc.integer({ min: 0, max: 50 })),
  }),
  fc.record({ kind: fc.constantFrom("get" as const, "delete" as const), store, key }),
  fc.record({
    kind: fc.constant("sweep" as const),
    store,
    entries: fc.integer({ min: 1, max: 5 }),
  }),
  fc.record({ kind: fc.constant("wait" as const), ms: fc.integer({ min: 1, max: 30 }) }),
);

/** Entries in order of use, the least recent first; expired ones are there until met. */
class Model {
  entries: { store: number; key: string; value: Uint8Array; expiresAtMs: number }[] = [];
  readonly budgetBytes: number;

  constructor(budgetBytes: number) {
    this.budgetBytes = budgetBytes;
  }

  cost(): number {
    return this.entries.reduce(
      (sum, { key, value }) => sum + ENTRY_OVERHEAD_BYTES + 2 * key.length + value.length,
      0,
    );
  }

  /** Removes and answers the entry, `undefined` if missing or expired. */
  pull(store: number, key: string, nowMs: number): Model["entries"][number] | undefined {
    const at = this.entries.findIndex((each) => each.store === store && each.key === key);
    const entry = at < 0 ? undefined : this.entries.splice(at, 1)[0];
    const expired = entry !== undefined && entry.expiresAtMs !== 0 && entry.expiresAtMs <= nowMs;
    return expired ? undefined : entry;
  }
}

Deno.test("B11: two stores of one memory behave as a bounded map in order of use", () => {
  fc.assert(fc.property(fc.array(step, { maxLength: 120, size: "max" }), (steps) => {
    const memory = new CacheMemory(1000);
    const stores = [new CacheStore(memory), new CacheStore(memory)];
    const model = new Model(1000);
    let nowMs = T0;
    for (const [at, each] of steps.entries()) {
      if (each.kind === "wait") nowMs += each.ms;
      else if (each.kind === "put") {
        const value = new Uint8Array(each.bytes).fill(at);
        stores[each.store]!.put(each.key, value, each.ttlMs, nowMs);
        model.pull(each.store, each.key, nowMs);
        const expiresAtMs = each.ttlMs === null ? 0 : nowMs + each.ttlMs;
        model.entries.push({ store: each.store, key: each.key, value, expiresAtMs });
        while (model.cost() > model.budgetBytes) model.entries.shift();
      } else if (each.kind === "sweep") {
        const removed = stores[each.store]!.sweep(nowMs, each.entries);
        assert(removed <= each.entries);
        // Which expired entry it meets is its own affair; the model keeps those that are left.
        const { entries } = model;
        const expired = entries.filter(({ store, expiresAtMs }) =>
          store === each.store && expiresAtMs !== 0 && expiresAtMs <= nowMs
        );
        assert(removed <= expired.length);
        // Sweep the rest as well, so that both hold the same entries again.
        for (let round = 0; round < 4; round++) stores[each.store]!.sweep(nowMs, 100);
        model.entries = entries.filter((entry) => !expired.includes(entry));
      } else {
        const entry = model.pull(each.store, each.key, nowMs);
        if (entry !== undefined && each.kind === "get") model.entries.push(entry);
        const value = stores[each.store]![each.kind](each.key, nowMs);
        assertEquals(value, entry?.value ?? null);
      }
      assert(memory.bytes <= memory.budgetBytes);
      assertEquals(memory.bytes, model.cost());
      assertEquals(stores[0]!.bytes + stores[1]!.bytes, memory.bytes);
      assertEquals(stores[0]!.size + stores[1]!.size, model.entries.length);
    }
  }));
});
