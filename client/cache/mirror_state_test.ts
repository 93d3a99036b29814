// The entries of a mirror against a plain model (spec/client.md §9): whatever comes in whatever
// order, what is told of changes adds up to what is held, and nothing expired is held.

import { assert, assertEquals } from "@std/assert";
import fc from "fast-check";
import { MirrorState } from "./mirror_state.ts";
import type { CacheChangeItem } from "./watch_types.ts";

interface Write {
  readonly key: string;
  readonly put: boolean;
  readonly lifeMs: number | null;
  readonly passMs: number;
}

const write: fc.Arbitrary<Write> = fc.record({
  key: fc.constantFrom("a", "b", "c", "d"),
  put: fc.boolean(),
  lifeMs: fc.option(fc.integer({ min: -5, max: 30 })),
  passMs: fc.nat({ max: 10 }),
});

function item(write: Write, offset: number, nowMs: number): CacheChangeItem {
  const { key, put, lifeMs } = write;
  return {
    type: "change",
    key,
    value: put ? new Uint8Array([offset]) : null,
    offset: BigInt(offset),
    shard: 0,
    expiresAt: lifeMs === null ? null : new Date(nowMs + lifeMs),
    retained: false,
  };
}

Deno.test("what is told adds up to what is held, and nothing expired is held", () => {
  fc.assert(fc.property(fc.array(write, { maxLength: 100 }), (writes) => {
    const told = new Map<string, Uint8Array>();
    const model = new Map<string, { value: Uint8Array; expiresMs: number }>();
    const state = new MirrorState(({ key, value, previous }) => {
      assertEquals(previous, told.get(key), "every change begins where the last one ended");
      assert(value !== null || previous !== undefined, "nothing became nothing");
      if (value === null) told.delete(key);
      else told.set(key, value);
    });
    let nowMs = 1000;
    for (const [offset, next] of writes.entries()) {
      nowMs += next.passMs;
      state.expire(nowMs);
      const change = item(next, offset, nowMs);
      state.apply(change, nowMs);
      const expiresMs = change.expiresAt?.getTime() ?? Infinity;
      if (change.value === null) model.delete(change.key);
      else model.set(change.key, { value: change.value, expiresMs });
      for (const [key, { expiresMs }] of model) if (expiresMs <= nowMs) model.delete(key);
      const times = [...model.values()].map(({ expiresMs }) => expiresMs);
      const first = Math.min(Infinity, ...times);
      assertEquals(state.nextExpiryMs, first === Infinity ? null : first);
      assertEquals(state.size, model.size);
    }
    const expected = [...model].map(([key, { value }]) => [key, value]);
    assertEquals(new Map(state.entries()), new Map(expected as [string, Uint8Array][]));
    assertEquals(told, new Map(state.entries()));
  }));
});

Deno.test("a shard that starts again twice: only what came the second time stays", () => {
  const state = new MirrorState(() => undefined);
  const at = (key: string, offset: number): void =>
    state.apply(item({ key, put: true, lifeMs: null, passMs: 0 }, offset, 0), 0);
  at("a", 1);
  at("b", 2);
  state.restart(0);
  at("a", 1);
  at("c", 3);
  state.restart(0);
  at("c", 3);
  state.complete(0);
  assertEquals([...state.entries()].map(([key]) => key), ["c"]);
  state.complete(0);
  assertEquals(state.size, 1, "told once more that it is complete");
});
