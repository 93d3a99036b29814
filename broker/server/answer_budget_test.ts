// A client that reads no answers: what it is owed stays bounded, over one stream and over many.

import { assert, assertEquals } from "@std/assert";
import type { SendStream } from "@felix/transport";
import { AnswerBudget } from "./answer_budget.ts";
import { Outbox, WriterPool } from "./outbox.ts";

/** A stream whose writes are taken when the test says so. */
class SlowStream implements SendStream {
  taken: (() => void)[] = [];
  broken: ((error: Error) => void)[] = [];

  write(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.taken.push(resolve);
      this.broken.push(reject);
    });
  }

  finish(): Promise<void> {
    return Promise.resolve();
  }

  reset(): void {}
}

async function settle(): Promise<void> {
  for (let turn = 0; turn < 10; turn++) await Promise.resolve();
}

Deno.test("what all streams of a connection owe is counted together, in and out", async () => {
  const budget = new AnswerBudget(1000);
  const pool = new WriterPool();
  const streams = [new SlowStream(), new SlowStream()];
  const outboxes = streams.map((stream) => new Outbox(stream, pool, budget));
  for (const outbox of outboxes) {
    outbox.writer.bytes(new Uint8Array(600));
    outbox.flush();
  }
  assertEquals(budget.owedBytes, 1200);
  assert(budget.full);
  let hasRoom = false;
  const room = budget.room().then(() => hasRoom = true);
  // More on a stream whose write is under way is counted at its flush.
  outboxes[0]!.writer.bytes(new Uint8Array(100));
  outboxes[0]!.flush();
  assertEquals(budget.owedBytes, 1300);
  await settle();
  assertEquals(hasRoom, false);
  streams[0]!.taken[0]!();
  await room;
  assertEquals(budget.owedBytes, 700);
  streams[1]!.broken[0]!(new Error("gone"));
  await settle();
  assertEquals(budget.owedBytes, 100);
  streams[0]!.taken[1]!();
  await settle();
  assertEquals(budget.owedBytes, 0);
});

Deno.test("there is room at once while little is owed", async () => {
  const budget = new AnswerBudget(10);
  budget.change(9);
  await budget.room();
  assertEquals(budget.full, false);
});
