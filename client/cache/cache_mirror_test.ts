// Mirrors with a scripted source and a clock of the test's own, and one against a scripted broker
// (spec/client.md §9; scenarios of spec/semantics.md §12 by number).

import { assertEquals, assertRejects } from "@std/assert";
import { AuthError, ClosedError } from "../failure/classes.ts";
import { connectTo, networkTest, until } from "../testing/fixture.ts";
import { inTurn, watchBroker } from "../testing/watches.ts";
import { LiveMirror } from "./cache_mirror.ts";
import type { CacheMirror, MirrorClock, MirrorSource } from "./cache_mirror.ts";
import type { CacheChange } from "./mirror_state.ts";
import type { FeedItem } from "./watch_types.ts";

const text = new TextDecoder();

/** A clock that stands still until the test moves it. */
class TestClock implements MirrorClock {
  nowMs = 1000;
  #timers: { atMs: number; run: () => void }[] = [];

  now(): number {
    return this.nowMs;
  }

  after(delayMs: number, run: () => void): () => void {
    const timer = { atMs: this.nowMs + delayMs, run };
    this.#timers.push(timer);
    return () => this.#timers = this.#timers.filter((other) => other !== timer);
  }

  get timers(): number[] {
    return this.#timers.map(({ atMs }) => atMs);
  }

  /** Moves on and fires what is due. */
  to(nowMs: number): void {
    this.nowMs = nowMs;
    for (const timer of this.#timers.filter(({ atMs }) => atMs <= nowMs)) {
      this.#timers = this.#timers.filter((other) => other !== timer);
      timer.run();
    }
  }
}

/** A watch that brings what the test gives it. */
class TestSource implements MirrorSource {
  closed = 0;
  #items: (FeedItem | null)[] = [];
  #wake: ((item: FeedItem | null) => void) | null = null;

  next(): Promise<FeedItem | null> {
    if (this.#items.length > 0) return Promise.resolve(this.#items.shift()!);
    return new Promise((resolve) => this.#wake = resolve);
  }

  close(): Promise<void> {
    this.closed++;
    this.#wake?.(null);
    return Promise.resolve();
  }

  /** Brings items and waits until the mirror has taken them. */
  async bring(...items: (FeedItem | null)[]): Promise<void> {
    for (const item of items) {
      const wake = this.#wake;
      this.#wake = null;
      if (wake === null) this.#items.push(item);
      else wake(item);
      while (this.#wake === null && item !== null && this.closed === 0) await Promise.resolve();
    }
    for (let turns = 0; turns < 10; turns++) await Promise.resolve();
  }
}

function put(key: string, value: string | null, offset: number, expiresMs?: number): FeedItem {
  return {
    type: "change",
    key,
    value: value === null ? null : new TextEncoder().encode(value),
    offset: BigInt(offset),
    shard: 0,
    expiresAt: expiresMs === undefined ? null : new Date(expiresMs),
    retained: false,
  };
}

function make(): { source: TestSource; clock: TestClock; mirror: LiveMirror; told: string[] } {
  const source = new TestSource();
  const clock = new TestClock();
  const mirror = new LiveMirror(source, clock);
  const told: string[] = [];
  collect(mirror, told).catch(() => undefined);
  return { source, clock, mirror, told };
}

async function collect(mirror: CacheMirror, told: string[]): Promise<void> {
  for await (const change of mirror.changes()) told.push(brief(change));
}

function brief({ key, value, previous }: CacheChange): string {
  const show = (bytes: Uint8Array | null | undefined): string =>
    bytes === null || bytes === undefined ? "-" : text.decode(bytes);
  return `${key}:${show(previous)}>${show(value)}`;
}

function contents(mirror: CacheMirror): string[] {
  return [...mirror.entries()].map(([key, value]) => `${key}=${text.decode(value)}`).sort();
}

Deno.test("values come, change and go", async () => {
  const { source, mirror, told } = make();
  await source.bring(put("a", "1", 1), put("b", "", 2));
  let ready = false;
  void mirror.ready.then(() => ready = true);
  await source.bring({ type: "snapshotEnd", shard: 0 });
  assertEquals(ready, false);
  await source.bring({ type: "stateComplete" });
  assertEquals([ready, mirror.size, contents(mirror)], [true, 2, ["a=1", "b="]]);
  await source.bring(put("a", "2", 5), put("b", null, 6), put("never", null, 7));
  assertEquals([mirror.has("b"), mirror.get("b"), mirror.has("a")], [false, undefined, true]);
  assertEquals(told, ["a:->1", "b:->", "a:1>2", "b:>-"]);
  await mirror.close();
  await mirror.close();
  assertEquals([mirror.failure, contents(mirror)], [null, ["a=2"]]);
});

Deno.test("an entry goes when its time has come, though nothing was sent", async () => {
  const { source, clock, mirror, told } = make();
  await source.bring(put("a", "1", 1, 2000), put("b", "1", 2, 3000), put("c", "1", 3));
  assertEquals(clock.timers, [2000]);
  clock.to(1999);
  assertEquals(mirror.size, 3);
  clock.to(2000);
  assertEquals([contents(mirror), clock.timers], [["b=1", "c=1"], [3000]]);
  await source.bring(put("a", null, 9));
  assertEquals(told, ["a:->1", "b:->1", "c:->1", "a:1>-"], "the removal that comes late is old");
  await mirror.close();
  assertEquals(clock.timers, [], "no timer outlives it");
});

Deno.test("a newer write renews an entry, or keeps it for ever [CA6, CA7]", async () => {
  const { source, clock, mirror } = make();
  await source.bring(put("a", "1", 1, 2000), put("b", "1", 2, 2000));
  await source.bring(put("a", "2", 3, 2900), put("b", "2", 4));
  clock.to(2500);
  assertEquals(contents(mirror), ["a=2", "b=2"]);
  clock.to(2900);
  assertEquals([contents(mirror), clock.timers], [["b=2"], []]);
  await mirror.close();
});

Deno.test("what is expired is not read, even if the timer is late", async () => {
  const { source, clock, mirror, told } = make();
  await source.bring(put("a", "1", 1, 2000), put("old", "1", 2, 900));
  assertEquals(contents(mirror), ["a=1"]);
  clock.nowMs = 2000;
  assertEquals([mirror.get("a"), mirror.has("a"), mirror.size], [undefined, false, 0]);
  clock.to(2001);
  await source.bring();
  assertEquals(told, ["a:->1", "a:1>-"]);
  await mirror.close();
});

Deno.test("an expiry beyond what a timer can wait is waited for in parts", async () => {
  const { source, clock, mirror } = make();
  const hour = 3_600_000;
  await source.bring(put("a", "1", 1, 1000 + 3 * hour));
  for (let n = 1; n <= 2; n++) {
    assertEquals(clock.timers, [1000 + n * hour]);
    clock.to(1000 + n * hour);
    assertEquals(mirror.size, 1);
  }
  clock.to(1000 + 3 * hour);
  assertEquals(mirror.size, 0);
  await mirror.close();
});

Deno.test("a shard that starts again: what does not come again is gone", async () => {
  const { source, mirror, told } = make();
  await source.bring(put("a", "1", 1), put("b", "1", 2), put("c", "1", 3));
  await source.bring({ ...put("far", "1", 4), shard: 1 } as FeedItem);
  await source.bring({ type: "resnapshot", shard: 0 }, put("a", "1", 1), put("c", "2", 8));
  assertEquals(mirror.size, 4, "doubtful entries stay until all is here");
  await source.bring({ type: "snapshotEnd", shard: 0 });
  assertEquals(contents(mirror), ["a=1", "c=2", "far=1"]);
  assertEquals(told.slice(4), ["c:1>2", "b:1>-"], "what stayed the same is no change");
  await source.bring({ type: "lagged", shard: 0, resumeFrom: 9n });
  await source.bring({ type: "shardMoved", shard: 0, addr: null });
  assertEquals(mirror.failure, null);
  await mirror.close();
});

Deno.test("a shard that ends for good ends the mirror, and says so to all", async () => {
  const { source, mirror } = make();
  const changes = mirror.changes()[Symbol.asyncIterator]();
  await source.bring(put("a", "1", 1));
  const error = new AuthError("revoked", { message: "gone", operation: "cache.watch" });
  await source.bring({ type: "shardClosed", shard: 0, error });
  assertEquals([mirror.failure, source.closed], [error, 1]);
  assertEquals(await assertRejects(() => mirror.ready), error);
  assertEquals((await changes.next()).done, false);
  assertEquals(await assertRejects(() => changes.next()), error);
  const late = mirror.changes()[Symbol.asyncIterator]();
  assertEquals(await assertRejects(() => late.next()), error);
  assertEquals(contents(mirror), ["a=1"], "the last that was known");
});

Deno.test("closed before it was ready", async () => {
  const { source, mirror } = make();
  await source.bring(null);
  await assertRejects(() => mirror.ready, ClosedError);
  assertEquals(mirror.failure, null);
  for await (const _change of mirror.changes()) throw new Error("there is nothing");
});

networkTest("a mirror of a broker's cache survives its connection", async () => {
  const { broker, asked, events } = await watchBroker(inTurn(
    { at: 5, retained: 1, play: (sender) => sender.change("u:1", "a", 2) },
    { at: 6, play: (sender) => sender.change("u:2", "b", 5) },
  ));
  await using _broker = broker;
  const client = await connectTo(broker);
  const mirror = await client.cache("sessions").mirror({ prefix: "u:" });
  await mirror.ready;
  assertEquals(contents(mirror), ["u:1=a"]);
  const changes = mirror.changes()[Symbol.asyncIterator]();
  broker.drop();
  assertEquals(brief((await changes.next()).value), "u:2:->b");
  assertEquals(asked.map(({ from_offset, prefix }) => [from_offset, prefix]), [
    [undefined, "u:"],
    [5n, "u:"],
  ]);
  events[1]!.change("u:2", "gone soon", 7, Date.now() + 30);
  await until(() => !mirror.has("u:2"));
  assertEquals(contents(mirror), ["u:1=a"]);
  await client.close();
  assertEquals(mirror.failure, null);
});
