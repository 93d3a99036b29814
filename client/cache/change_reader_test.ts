// What one reader of a mirror's changes sees: all of them while it keeps up, the newest of each
// key when it does not.

import { assertEquals, assertRejects } from "@std/assert";
import { ChangeReader } from "./change_reader.ts";
import type { CacheChange } from "./mirror_state.ts";

const a = new Uint8Array([1]);
const b = new Uint8Array([2]);

function change(
  key: string,
  value: Uint8Array | null,
  previous: Uint8Array | undefined,
): CacheChange {
  return { key, value, previous };
}

Deno.test("changes come in order to who waits", async () => {
  const reader = new ChangeReader(() => undefined);
  const waiting = [reader.next(), reader.next()];
  reader.push(change("k", a, undefined));
  reader.push(change("k", b, a));
  assertEquals((await Promise.all(waiting)).map(({ value }) => value), [
    change("k", a, undefined),
    change("k", b, a),
  ]);
});

Deno.test("who is behind is told the newest of each key, and not what came and went", async () => {
  const reader = new ChangeReader(() => undefined);
  reader.push(change("k", a, undefined));
  reader.push(change("gone", a, undefined));
  reader.push(change("k", b, a));
  reader.push(change("gone", null, a));
  reader.push(change("old", null, a));
  assertEquals(reader.pending, 2);
  reader.end(null);
  assertEquals((await reader.next()).value, change("k", b, undefined));
  assertEquals((await reader.next()).value, change("old", null, a));
  assertEquals(await reader.next(), { done: true, value: undefined });
});

Deno.test("a failure comes behind the rest, once", async () => {
  const reader = new ChangeReader(() => undefined);
  const failure = new Error("lost");
  reader.push(change("k", a, undefined));
  reader.end(failure);
  reader.end(null);
  assertEquals((await reader.next()).done, false);
  assertEquals(await assertRejects(() => reader.next()), failure);
  assertEquals((await reader.next()).done, true);
});

Deno.test("a reader that has had enough is forgotten", async () => {
  const ended: ChangeReader[] = [];
  const reader = new ChangeReader((who) => ended.push(who));
  const waiting = reader.next();
  await reader.return();
  reader.push(change("k", a, undefined));
  assertEquals([(await waiting).done, (await reader.next()).done, reader.pending], [true, true, 0]);
  assertEquals(ended, [reader]);
});
