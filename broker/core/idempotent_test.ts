// Idempotent producers in the core, on a simulated disk and in memory: the scenarios of
// spec/semantics.md §12 (ID1 to ID10, ST27), what a failing disk does, and what a restart keeps.

import { assert, assertEquals } from "@std/assert";
import { SimulatedDisk } from "@felix/storage";
import { drain, subscribed } from "./core_fixture.ts";
import { durable, everything, restarted, type World, worldOf } from "./idempotent_fixture.ts";

/** A scenario that holds on a durable stream and on one in memory alike. */
function both(name: string, body: (world: World) => Promise<void>): void {
  Deno.test(`${name}, durable`, async () => await body(await durable()));
  Deno.test(`${name}, in memory`, async () => await body(worldOf(new SimulatedDisk(), null)));
}

both("ID1: a batch sent again is appended once and answered alike", async ({ shard, send }) => {
  assertEquals(await send(7, 0, "a", "b"), "at 0");
  assertEquals(await send(7, 1, "c"), "at 2");
  assertEquals(await send(7, 0, "a", "b"), "at 0");
  assertEquals(await send(7, 1, "c"), "at 2");
  assertEquals(await everything(shard), ["0:a", "1:b", "2:c"]);
});

both("ID2: a batch too far ahead is told what is next", async ({ shard, send }) => {
  assertEquals(await send(7, 0, "a"), "at 0");
  assertEquals(await send(7, 2, "c"), "sequence_gap 1");
  assertEquals(await send(7, 1, "b"), "at 1");
  assertEquals(await everything(shard), ["0:a", "1:b"]);
});

both("ID3: a new producer begins at 0", async ({ shard, send }) => {
  assertEquals(await send(7, 3, "a"), "unknown_producer");
  assertEquals(shard.tail, 0);
});

both("ID4: 64 batches are remembered", async ({ shard, send }) => {
  for (let at = 0; at <= 70; at++) assertEquals(await send(7, at, `r${at}`), `at ${at}`);
  assertEquals(await send(7, 0, "r0"), "sequence_expired");
  assertEquals(await send(7, 10, "r10"), "at 10");
  assertEquals(shard.tail, 71);
});

both("ID5: a sequence used for other payloads is seen", async ({ shard, send }) => {
  for (let at = 0; at <= 5; at++) await send(7, at, "same");
  assertEquals(await send(7, 5, "other"), "sequence_reused at 5");
  assertEquals(await send(7, 5, "same", "more"), "sequence_reused at 5");
  assertEquals(shard.tail, 6);
});

both("ID6: two at once are one append and get equal answers", async ({ shard, queue, run }) => {
  const outcomes = [queue([7, 0], "a"), queue([7, 0], "a"), queue([7, 1], "b")];
  run();
  assertEquals(await Promise.all(outcomes), ["at 0", "at 0", "at 1"]);
  assertEquals(await everything(shard), ["0:a", "1:b"]);
});

both("ID9: of 4097 producers the one with the oldest newest batch goes", async (world) => {
  const { queue, run, send } = world;
  const outcomes = Array.from({ length: 4096 }, (_, at) => queue([at + 1, 0], "x"));
  run();
  await Promise.all(outcomes);
  assertEquals(await send(1, 1, "y"), "at 4096");
  assertEquals(await send(9999, 0, "z"), "at 4097");
  assertEquals(await send(1, 2, "y"), "at 4098");
  assertEquals(await send(2, 1, "forgotten"), "unknown_producer");
});

both("ST27: [plain, idempotent, plain] are claims of their own, in order", async (world) => {
  const { shard, counters, queue, run } = world;
  const outcomes = [
    queue(null, "a"),
    queue(null, "b"),
    queue([7, 0], "c", "d"),
    queue([7, 1], "e"),
    queue(null, "f"),
    queue(null, "g"),
  ];
  run();
  assertEquals(await Promise.all(outcomes), ["at 0", "at 1", "at 2", "at 4", "at 5", "at 6"]);
  assertEquals([counters.claimJobs[1], counters.claimJobs[2]], [2, 2]);
  assertEquals(await everything(shard), ["0:a", "1:b", "2:c", "3:d", "4:e", "5:f", "6:g"]);
});

Deno.test("ID7: a restart keeps what is known of a producer", async () => {
  const first = await durable();
  for (let at = 0; at < 3; at++) await first.send(7, at, `r${at}`);
  const { shard, send } = await restarted(first.disk);
  assertEquals(await send(7, 2, "r2"), "at 2");
  assertEquals(await send(7, 2, "other"), "sequence_reused at 2");
  assertEquals(await send(7, 4, "r4"), "sequence_gap 3");
  assertEquals(await send(7, 3, "r3"), "at 3");
  assertEquals(shard.tail, 4);
});

Deno.test("ID7: across many segments, from the saved state and without it", async () => {
  const first = await durable(new SimulatedDisk(), 300);
  for (let at = 0; at < 40; at++) await first.send(1 + at % 3, Math.floor(at / 3), `r${at}`);
  assert(first.log!.segments > 5);
  const path = first.disk.paths().find((path) => path.endsWith("/producers"))!;
  for (const damage of ["none", "gone", "garbled"]) {
    const disk = first.disk.afterCrash({ names: "lost", data: "lost" });
    if (damage === "gone") disk.unlink(path);
    if (damage === "garbled") disk.setBytes(path, disk.bytes(path).fill(1, 30));
    const { shard, send } = await durable(disk, 300);
    for (let at = 0; at < 40; at++) {
      assertEquals(await send(1 + at % 3, Math.floor(at / 3), `r${at}`), `at ${at}`, damage);
    }
    assertEquals(await send(2, 13, "next"), "at 40");
    assertEquals(shard.tail, 41);
  }
});

Deno.test("ID8: retention that removes all batches of a producer forgets it", async () => {
  const world = await durable(new SimulatedDisk(), 300);
  await world.send(7, 0, "a");
  await world.send(8, 0, "b");
  for (let at = 1; at < 20; at++) await world.send(8, at, `r${at}`);
  await world.log!.trimBefore(world.shard.tail);
  assert(world.shard.base > 2);
  assertEquals(await world.send(7, 1, "next"), "unknown_producer");
  const { send } = await restarted(world.disk, 300);
  assertEquals(await send(7, 1, "next"), "unknown_producer");
  assertEquals(await send(8, 20, "next"), "at 21");
  assertEquals(await send(7, 0, "anew"), "at 22");
});

Deno.test("ID10: of a batch half in the log the missing part is appended", async () => {
  const first = await durable();
  await first.send(7, 0, "a");
  const encoder = new TextEncoder();
  const tag = { producerId: 7n, sequence: 1n, length: 3 };
  await first.log!.append([{ payload: encoder.encode("b"), tag }]);
  const { shard, send } = await restarted(first.disk);
  const subscriber = subscribed(shard);
  assertEquals(await send(7, 1, "B", "c", "d"), "sequence_reused at 1");
  assertEquals(await send(7, 1, "b", "c", "d"), "at 1");
  assertEquals(drain(subscriber), ["2:c", "3:d"]);
  assertEquals(await send(7, 1, "b", "c", "d"), "at 1");
  assertEquals(await everything(shard), ["0:a", "1:b", "2:c", "3:d"]);
  const again = await restarted(first.disk);
  assertEquals(await again.send(7, 2, "too far"), "sequence_gap 1");
});

Deno.test("ID10: what follows half a batch makes it one that is not held", async () => {
  const first = await durable();
  const tag = { producerId: 7n, sequence: 0n, length: 2 };
  await first.log!.append([{ payload: new TextEncoder().encode("half"), tag }]);
  const { shard, queue, run, send } = await restarted(first.disk);
  const plain = queue(null, "between");
  run();
  assertEquals(await plain, "at 1");
  assertEquals(await send(7, 0, "half", "whole"), "at 2");
  assertEquals(await everything(shard), ["0:half", "1:between", "2:half", "3:whole"]);
});

Deno.test("a failed append leaves the number free", async () => {
  const { disk, shard, send } = await durable();
  assertEquals(await send(7, 0, "a"), "at 0");
  disk.capacityBytes = 0;
  assertEquals(await send(7, 1, "b"), "storage");
  disk.capacityBytes = Infinity;
  assertEquals(await send(7, 2, "c"), "sequence_gap 1");
  assertEquals(await send(7, 1, "other"), "at 1");
  assertEquals(await everything(shard), ["0:a", "1:other"]);
});

Deno.test("a duplicate waits for the flush of the original", async () => {
  const { disk, queue, run } = await durable();
  let release = () => {};
  disk.beforeSync = () => new Promise((resolve) => release = resolve);
  let answered = 0;
  const outcomes = [queue([7, 0], "a"), queue([7, 0], "a"), queue([7, 0], "b")];
  outcomes.forEach((outcome) => outcome.then(() => answered++));
  run();
  for (let turn = 0; turn < 20; turn++) await null;
  assertEquals(answered, 0);
  disk.beforeSync = null;
  release();
  assertEquals(await Promise.all(outcomes), ["at 0", "at 0", "sequence_reused at 0"]);
});

Deno.test("a failed flush leaves the batch as appended: its duplicate is unsure too", async () => {
  const { disk, queue, run, send } = await durable();
  assertEquals(await send(7, 0, "kept"), "at 0");
  disk.fail({ operation: "sync", code: "io" });
  const outcomes = [queue([7, 1], "lost"), queue([7, 1], "lost")];
  run();
  assertEquals(await Promise.all(outcomes), ["unsure", "unsure"]);
  assertEquals(await send(7, 1, "lost"), "unsure");
  assertEquals(await send(7, 0, "kept"), "at 0", "what is kept is known to be");
  const kept = await durable(disk.afterCrash({ names: "kept", data: "kept" }));
  assertEquals(await kept.send(7, 1, "lost"), "at 1");
  const gone = await durable(disk.afterCrash({ names: "kept", data: "lost" }));
  assertEquals(await gone.send(7, 1, "lost"), "at 1");
  assertEquals([kept.shard.tail, gone.shard.tail], [2, 2]);
});
