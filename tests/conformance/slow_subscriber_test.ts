// A subscriber that reads nothing beside one that reads: the slow one costs a bounded amount of
// memory and its own events, each of them counted, and the other one misses nothing.

import { assert, assertEquals } from "@std/assert";
import { poll } from "../support/poll.ts";
import { DevBroker } from "../support/servers.ts";
import { type Ack, publish, readAck, readEvents, uint } from "./frames.ts";
import { type FrameStream, RawConnection, type RawStream } from "./raw_client.ts";

/** Seconds of load; a soak run sets more. */
const SECONDS = Number(Deno.env.get("FELIX_TEST_SLOW_SUBSCRIBER_SECONDS") ?? "4");
const RECORD_BYTES = 4096;
const RECORDS_PER_BATCH = 64;
const MEBIBYTE = 1024 * 1024;
/** Queue of 16 MiB, engine's send buffer of 10 MiB, replay ring of 8 MiB, and room to collect. */
const ALLOWANCE = 160 * MEBIBYTE;
/** Bytes that must have been offered before a queue of 16 MiB behind a full window is full. */
const LEAST_BYTES = 64 * MEBIBYTE;

/** Reads until a record of `sentinel` bytes; answers how many came before it. */
async function countUntil(
  events: FrameStream,
  sentinel: number,
  seen: (count: number) => void = () => {},
): Promise<number> {
  let count = 0;
  for (;;) {
    for (const payload of readEvents(await events.frame()).payloads) {
      if (payload.length === sentinel) return count;
      count++;
    }
    seen(count);
  }
}

Deno.test({
  name: "a subscriber that reads nothing costs only itself",
  sanitizeOps: true,
  sanitizeResources: true,
  fn: async () => {
    const env = { FELIX_SUB_QUEUE_POLICY: "drop_new" };
    await using broker = await DevBroker.start({ env });
    await using slow = await RawConnection.connect(broker);
    await using quick = await RawConnection.connect(broker);
    await using publishing = await RawConnection.connect(broker);
    const slowEvents = (await slow.subscribe()).events;
    const quickEvents = (await quick.subscribe()).events;
    const publisher = await publishing.stream();
    const payloads = Array.from(
      { length: RECORDS_PER_BATCH },
      () => new Uint8Array(RECORD_BYTES).fill(1),
    );
    const before = await broker.residentBytes();
    let published = 0;
    let read = 0;
    let peak = 0;
    let requestId = 0;
    const reading = countUntil(quickEvents, 1, (count) => read = count);
    reading.catch(() => {}); // Told when it is awaited; a failure before that has its own message.
    const publishBatch = async (batch: readonly Uint8Array[]): Promise<void> => {
      await publisher.send(publish({ payloads: batch, requestId: ++requestId }));
      assertEquals(readAck(await publisher.frame()).ok, true);
      published += batch.length;
    };
    const until = performance.now() + SECONDS * 1000;
    while (performance.now() < until || published * RECORD_BYTES < LEAST_BYTES) {
      await publishBatch(payloads);
      // The one that reads is never pushed past its queue: what it misses would be the slow one's
      // doing.
      await poll(() => published - read < 64 * RECORDS_PER_BATCH, { everyMs: 1 });
      peak = Math.max(peak, await broker.residentBytes());
    }
    await poll(() => read === published, { what: "the quick subscriber at the end" });
    const dropped = await broker.metric("felix_subscribe_dropped_total");
    assert(dropped > 0, "the slow subscriber's queue never filled");
    assert(
      peak - before < ALLOWANCE,
      `${Math.round((peak - before) / MEBIBYTE)} MiB more with a slow subscriber`,
    );
    // Now the slow one reads what was kept for it; the sentinel comes once there is room again.
    const slowReading = countUntil(slowEvents, 2);
    await poll(async () => await broker.metric("felix_sub_queue_len") === 0, {
      what: "empty queues",
    });
    await publishBatch([new Uint8Array(2)]);
    await publishBatch([new Uint8Array(1)]);
    const slowRead = await slowReading;
    assertEquals(await reading, published - 1, "the quick subscriber saw every record");
    const counted = await broker.metric("felix_subscribe_dropped_total");
    assertEquals(slowRead + counted, published - 2, "delivered and dropped add up");
    quickEvents.cancel();
    slowEvents.cancel();
    await publisher.finish();
    assertEquals(broker.stderr, "");
  },
});

/** A record that carries its number. */
function numbered(number: number): Uint8Array {
  const record = new Uint8Array(64 * 1024);
  record.set(uint(number, 4));
  return record;
}

function numberOf(record: Uint8Array): number {
  return new DataView(record.buffer, record.byteOffset).getUint32(0);
}

/** Publishes with up to 32 unanswered until an answer is no success; answers all acks. */
async function publishUntilRefused(publisher: RawStream): Promise<Ack[]> {
  const acks: Ack[] = [];
  let sent = 0;
  while (acks.every((ack) => ack.ok)) {
    while (sent - acks.length < 32) {
      await publisher.send(publish({ payloads: [numbered(sent + 1)], requestId: sent + 1 }));
      sent++;
    }
    acks.push(readAck(await publisher.frame()));
  }
  while (acks.length < sent) acks.push(readAck(await publisher.frame()));
  return acks;
}

Deno.test({
  name: "under `block` a subscriber that reads nothing holds publishers up and loses nothing",
  sanitizeOps: true,
  sanitizeResources: true,
  fn: async () => {
    const env = { FELIX_SUB_QUEUE_POLICY: "block" };
    await using broker = await DevBroker.start({ env });
    await using slow = await RawConnection.connect(broker);
    await using publishing = await RawConnection.connect(broker);
    const { events } = await slow.subscribe();
    const publisher = await publishing.stream();
    const before = await broker.residentBytes();
    const acks = await publishUntilRefused(publisher);
    const refused = acks.filter((ack) => !ack.ok);
    assert(refused.length > 0);
    // `overloaded`: nothing was written. `unacknowledged`: it may have been.
    const codes = new Set(refused.map((ack) => ack.code));
    assert(codes.isSubsetOf(new Set([9, 10])), `codes ${[...codes]}`);
    assert(await broker.residentBytes() - before < ALLOWANCE);

    const seen: number[] = [];
    const reading = (async () => {
      for (;;) {
        for (const record of readEvents(await events.frame()).payloads) {
          if (record.length === 1) return;
          seen.push(numberOf(record));
        }
      }
    })();
    reading.catch(() => {}); // Told when it is awaited.
    await poll(async () => {
      await publisher.send(publish({ payloads: [new Uint8Array(1)], requestId: 0 }));
      return readAck(await publisher.frame()).ok;
    }, { what: "room again" });
    await reading;
    const certain = acks.filter((ack) => ack.ok).map((ack) => ack.requestId);
    const unknown = new Set(refused.filter((ack) => ack.code === 9).map((ack) => ack.requestId));
    assertEquals(seen.filter((number) => !unknown.has(number)), certain);
    assertEquals(seen, seen.toSorted((left, right) => left - right));
    assertEquals(await broker.metric("felix_subscribe_dropped_total"), 0);
    events.cancel();
    await publisher.finish();
  },
});
