// Where a watch goes on, without any network (spec/semantics.md §6.4).

import { assertEquals } from "@std/assert";
import fc from "fast-check";
import { WatchPosition } from "./watch_position.ts";
import type { WatchStart } from "./watch_position.ts";

const started = (at: bigint, retained = 0n, resnapshot = false) => ({
  resumeOffset: at,
  resnapshot,
  retainedCount: retained,
});
const from = (offset: bigint): WatchStart => ({ kind: "from", offset });
const RETAINED: WatchStart = { kind: "retained" };
const LIVE: WatchStart = { kind: "live" };

Deno.test("a live watch goes on where it joined, then behind the last change", () => {
  const position = new WatchPosition(LIVE);
  assertEquals([position.start, position.resume], [LIVE, null]);
  position.accepted(LIVE, started(5n));
  assertEquals(position.start, from(5n));
  assertEquals([position.see(4n), position.see(7n), position.see(7n)], ["known", "news", "known"]);
  assertEquals([position.start, position.resume], [from(8n), 8n]);
});

Deno.test("current values are asked for again until all have come", () => {
  const position = new WatchPosition(RETAINED);
  position.accepted(RETAINED, started(9n, 3n));
  assertEquals([position.see(8n), position.see(2n)], ["current", "current"]);
  position.moved(20n);
  position.lagged(20n);
  assertEquals([position.start, position.resume], [RETAINED, null]);
  position.accepted(RETAINED, started(12n, 1n));
  assertEquals(position.see(2n), "lastCurrent");
  assertEquals(position.start, from(12n));
  assertEquals([position.see(11n), position.see(12n)], ["known", "news"]);
});

Deno.test("no current value at all is complete at once", () => {
  const position = new WatchPosition(RETAINED);
  position.accepted(RETAINED, started(9n));
  assertEquals(position.start, from(9n));
});

Deno.test("uncounted values are asked for again until something newer has come", () => {
  const position = new WatchPosition(from(3n));
  assertEquals(position.start, from(3n));
  position.accepted(from(3n), started(9n, 0n, true));
  assertEquals([position.see(8n), position.see(4n)], ["current", "current"]);
  position.moved(20n);
  assertEquals(position.start, from(3n));
  assertEquals(position.see(9n), "news");
  assertEquals(position.start, from(10n));
});

Deno.test("a lag says where to go on, a move does if it is later", () => {
  const position = new WatchPosition(from(3n));
  position.accepted(from(3n), started(9n));
  position.see(5n);
  position.moved(undefined);
  assertEquals(position.start, from(6n));
  position.moved(4n);
  assertEquals(position.start, from(6n));
  position.moved(8n);
  assertEquals(position.start, from(8n));
  position.lagged(11n);
  assertEquals(position.start, from(11n));
  position.accepted(from(3n), started(20n, 0n, true));
  position.lagged(30n);
  assertEquals(position.start, from(30n));
});

Deno.test("whatever breaks off where: each change is news exactly once, in order", () => {
  const log = fc.uniqueArray(fc.bigInt({ min: 0n, max: 60n }), { maxLength: 30 });
  const cuts = fc.array(fc.nat({ max: 8 }), { maxLength: 8 });
  fc.assert(fc.property(log, cuts, (offsets, lengths) => {
    const all = offsets.toSorted((a, b) => Number(a - b));
    const position = new WatchPosition(from(0n));
    const news: bigint[] = [];
    for (const length of [...lengths, Infinity]) {
      const asked = position.start;
      position.accepted(asked, started(61n));
      const start = asked.kind === "from" ? asked.offset : 0n;
      // A broker that repeats itself does no harm.
      const sent = all.filter((offset) => offset >= start - 3n).slice(0, length);
      for (const offset of sent) if (position.see(offset) === "news") news.push(offset);
    }
    assertEquals(news, all);
  }));
});
