// A broker under acknowledged load, killed at random moments and started again on its storage, over
// and over: nothing acknowledged is lost, and no offset ever names two records (storage/README.md
// S1, S3). FELIX_TEST_KILLS says how often, FELIX_TEST_SEED repeats a run.

import { assert, assertEquals } from "@std/assert";
import type { FelixClient } from "@felix/client";
import { connectTo } from "../support/dev_client.ts";
import { DevBroker } from "../support/servers.ts";

const KILLS = Number(Deno.env.get("FELIX_TEST_KILLS") ?? 5);
const SEED = Number(Deno.env.get("FELIX_TEST_SEED") ?? Date.now() % 1_000_000);
const WRITERS = 16;
const SMALL = { FELIX_DURABLE_SEGMENT_BYTES: "65536" };

/** Chance from a seed, 0 to 1. */
function chance(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

/** Publishes until the broker is gone; notes what was acknowledged at which offset. */
async function load(felix: FelixClient, round: number, acked: Map<number, string>): Promise<void> {
  const stream = felix.stream("events");
  const writer = async (id: number) => {
    for (let at = 0;; at++) {
      const text = `${round}/${id}/${at} ${"x".repeat((at * 37) % 300)}`;
      let offset: number;
      try {
        offset = Number((await stream.publish(text)).offset);
      } catch {
        return;
      }
      assertEquals(acked.has(offset), false, `offset ${offset} was acknowledged twice`);
      acked.set(offset, text);
    }
  };
  await Promise.all(Array.from({ length: WRITERS }, (_, id) => writer(id)));
}

/** Every record from offset `from` to `until`, by offset. */
async function readAll(felix: FelixClient, from: number, until: number): Promise<string[]> {
  if (from === until) return [];
  await using subscription = await felix.stream("events").subscribe({ start: BigInt(from) });
  const seen: string[] = [];
  while (from + seen.length < until) {
    for (const event of await subscription.readBatch(until - from - seen.length)) {
      assertEquals(Number(event.offset), from + seen.length);
      seen.push(event.text());
    }
  }
  return seen;
}

Deno.test("killed at random moments: nothing acknowledged is lost", async () => {
  const random = chance(SEED);
  const known: string[] = [];
  let acknowledged = 0;
  await using broker = await DevBroker.start({ durable: true, env: SMALL });
  for (let round = 0; round < KILLS; round++) {
    const acked = new Map<number, string>();
    const felix = await connectTo(broker);
    const loading = load(felix, round, acked);
    await new Promise((resolve) => setTimeout(resolve, 20 + random() * 300));
    await broker.kill();
    await felix.close({ drainMs: 0 }).catch(() => {});
    await loading;
    await broker.restart();
    const again = await connectTo(broker);
    const tail = Number((await again.stream("events").publish("tail")).offset);
    // What was there before is there unchanged: a sample of it, and everything that is new.
    const from = round % 10 === 9 ? 0 : known.length;
    const records = await readAll(again, from, tail + 1);
    assertEquals(records.slice(0, known.length - from), known.slice(from));
    for (const [offset, text] of acked) {
      assert(offset >= known.length, `offset ${offset} named another record before`);
      assertEquals(records[offset - from], text, `seed ${SEED}, round ${round}, offset ${offset}`);
    }
    known.push(...records.slice(known.length - from));
    acknowledged += acked.size;
    await again.close();
  }
  const line = `seed ${SEED}: ${KILLS} kills, ${acknowledged} acknowledged, ${known.length} kept\n`;
  Deno.stdout.writeSync(new TextEncoder().encode(line));
  assert(acknowledged > 0);
});
