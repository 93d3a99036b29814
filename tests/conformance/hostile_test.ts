// Thousands of random, mutated and cut frames thrown at an open port, with and without a token:
// the broker does not crash, does not hang, does not grow, and still serves everybody else.

import { assert, assertEquals } from "@std/assert";
import { poll } from "../support/poll.ts";
import { DevBroker, metricIn } from "../support/servers.ts";
import { concat, frame, json, publish, publishBody, readAck, uint } from "./frames.ts";
import { FULL_OFFER, RawConnection } from "./raw_client.ts";

const FRAMES = 10_000;
const FRAMES_PER_CONNECTION = 500;
const STREAMS_AT_ONCE = 50;
const MEBIBYTE = 1024 * 1024;

/** Numbers in [0, 2^32) from a seed: a failure can be run again. */
function numbersFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x9e37_79b9) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 16), 0x21f0_aaad);
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a_2d97);
    return (mixed ^ (mixed >>> 15)) >>> 0;
  };
}

const names = { tenant_id: "t1", namespace: "default" };

/** Good frames to start from; the bad ones are made of them. */
const models: readonly Uint8Array[] = [
  publish({ payloads: ["one", "two"], requestId: 1 }),
  publish({ payloads: ["one"], key: "k" }),
  publish({ payloads: ["one"], requestId: 2, producer: { id: 1n, sequence: 0n } }),
  json({ type: "subscribe", ...names, stream: "events", start: "earliest" }),
  json({ type: "cache_put", ...names, cache: "sessions", key: "k", value: "dg==", request_id: 1 }),
  json({ type: "cache_get", ...names, cache: "sessions", key: "k", request_id: 2 }),
  json({ type: "publish_batch", ...names, stream: "events", payloads: ["eA=="], request_id: 3 }),
  json({ type: "stream_shards", ...names, stream: "events", request_id: 4 }),
  json({ type: "extension", name: "x", body: { deep: [[[[{}]]]] } }),
  json({ type: "auth", tenant_id: "t1", token: "a.b.c", ...FULL_OFFER }),
];

function randomBytes(next: () => number, size: number): Uint8Array {
  return Uint8Array.from({ length: size }, () => next() & 0xff);
}

/** One hostile piece of input. */
function hostile(next: () => number): Uint8Array {
  const model = models[next() % models.length]!.slice();
  switch (next() % 6) {
    case 0:
      return randomBytes(next, next() % 300);
    case 1:
      return frame(next() & 0xffff, randomBytes(next, next() % 300));
    case 2:
      return model.subarray(0, next() % model.length);
    case 3: {
      for (let count = 1 + (next() % 4); count > 0; count--) {
        model[next() % model.length]! ^= 1 << (next() % 8);
      }
      return model;
    }
    case 4:
      return frame(next() & 0xffff, model.subarray(12), { length: next() >>> (next() % 32) });
    default: {
      const at = 12 + (next() % (model.length - 12));
      const payload = concat(model.subarray(12, at), randomBytes(next, 8), model.subarray(at));
      return concat(frame(model[7]! | (model[6]! << 8), payload), model);
    }
  }
}

/** Throws one piece at a stream of its own; whatever comes back has to be whole frames. */
async function throwOne(connection: RawConnection, next: () => number): Promise<void> {
  const authenticated = next() % 2 === 0;
  const bytes = hostile(next);
  const stream = authenticated ? await connection.stream() : await connection.open();
  await stream.offer(bytes);
  await stream.finish();
  await stream.rest();
}

async function throwMany(broker: DevBroker, count: number, next: () => number): Promise<void> {
  for (let left = count; left > 0; left -= FRAMES_PER_CONNECTION) {
    await using connection = await RawConnection.connect(broker);
    let pieces = Math.min(left, FRAMES_PER_CONNECTION);
    const worker = async (): Promise<void> => {
      while (pieces-- > 0) await throwOne(connection, next);
    };
    await Promise.all(Array.from({ length: STREAMS_AT_ONCE }, worker));
    await connection.assertServes();
  }
}

async function assertServes(broker: DevBroker): Promise<void> {
  await using connection = await RawConnection.connect(broker);
  const { events } = await connection.subscribe();
  const stream = await connection.stream();
  await stream.send(publish({ payloads: ["still here"], requestId: 1 }));
  assertEquals(readAck(await stream.frame()).ok, true);
  assertEquals(new TextDecoder().decode((await events.events(1))[0]), "still here");
  events.cancel();
  await stream.finish();
}

/** Memory returns to about where it was; the runtime may take its time. */
async function assertMemory(broker: DevBroker, before: number, allowance: number): Promise<void> {
  await poll(async () => {
    const now = await broker.residentBytes();
    if (now < before + allowance) return true;
    throw new RangeError(`${Math.round((now - before) / MEBIBYTE)} MiB more than before`);
  }, { what: "memory back to about where it was", everyMs: 200, deadlineMs: 60_000 });
}

Deno.test({
  name: "ten thousand hostile frames",
  sanitizeOps: true,
  sanitizeResources: true,
  fn: async () => {
    await using broker = await DevBroker.start();
    const next = numbersFrom(0x5eed);
    await throwMany(broker, FRAMES / 5, next);
    const before = await broker.residentBytes();
    await throwMany(broker, FRAMES - FRAMES / 5, next);
    assert(broker.alive);
    assertEquals(broker.stderr, "");
    await assertServes(broker);
    const { text } = await broker.page("/metrics");
    await poll(async () => await broker.metric("felix_quic_connections") === 0, {
      what: "every connection gone",
    });
    assertEquals(metricIn(text, "felix_ready_state"), 1);
    await assertMemory(broker, before, 96 * MEBIBYTE);
    assertEquals(await broker.stop(), 0);
  },
});

Deno.test({
  name: "datagrams that are no QUIC are nobody's business",
  sanitizeOps: true,
  sanitizeResources: true,
  fn: async () => {
    await using broker = await DevBroker.start();
    const next = numbersFrom(0xda7a);
    const socket = Deno.listenDatagram({ hostname: "127.0.0.1", port: 0, transport: "udp" });
    const target = { hostname: "127.0.0.1", port: broker.port, transport: "udp" as const };
    for (let count = 0; count < 2000; count++) {
      await socket.send(randomBytes(next, next() % 1400), target);
    }
    socket.close();
    await assertServes(broker);
    assertEquals(broker.stderr, "");
  },
});

Deno.test({
  name: "declared lengths cost nothing until the bytes arrive",
  sanitizeOps: true,
  sanitizeResources: true,
  fn: async () => {
    await using broker = await DevBroker.start();
    await assertServes(broker);
    await using connection = await RawConnection.connect(broker);
    const before = await broker.residentBytes();
    const head = frame(0x0001, uint(7, 8), { length: 16 * MEBIBYTE });
    const streams = [];
    for (let count = 0; count < 400; count++) {
      const stream = await connection.stream();
      await stream.send(head);
      streams.push(stream);
    }
    await connection.assertServes();
    const grown = await broker.residentBytes() - before;
    assert(grown < 64 * MEBIBYTE, `${Math.round(grown / MEBIBYTE)} MiB for 400 declared lengths`);
    for (const stream of streams) await stream.finish();
    await connection.assertServes();
  },
});

Deno.test({
  name: "a million empty records in one frame are taken, delivered and forgotten",
  sanitizeOps: true,
  sanitizeResources: true,
  fn: async () => {
    await using broker = await DevBroker.start();
    await using connection = await RawConnection.connect(broker);
    const { events } = await connection.subscribe();
    const stream = await connection.stream();
    const count = 1_000_000;
    const scope = publishBody({ payloads: [] }).slice(0, -4);
    const body = concat(uint(1, 8), uint(2, 1), scope, uint(count, 4), new Uint8Array(4 * count));
    const before = await broker.residentBytes();
    await stream.send(frame(0x0009, body));
    assertEquals(readAck(await stream.frame()), { ok: true, requestId: 1, message: "" });
    assertEquals((await events.events(count)).length, count);
    await assertMemory(broker, before, 96 * MEBIBYTE);
    events.cancel();
    await stream.finish();
  },
});
