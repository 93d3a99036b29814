// Durable streams over the wire: offsets on acks and events, history from the log that joins the
// live tail, positions, what survives a restart and a kill (spec/semantics.md §4.5, §12 ST10-ST15,
// ST35).

import { assert, assertEquals } from "@std/assert";
import type { FelixClient } from "@felix/client";
import { connectTo } from "../support/dev_client.ts";
import { shardDirectoryName } from "@felix/storage";
import { DevBroker } from "../support/servers.ts";
import { poll } from "../support/poll.ts";
import { json, readJson } from "./frames.ts";
import { RawConnection } from "./raw_client.ts";

const NAMES = { tenant_id: "t1", namespace: "default", stream: "events" };
/** Small segments, so that everything below crosses several. */
const SMALL = { FELIX_DURABLE_SEGMENT_BYTES: "65536", FELIX_STREAM_RING_RECORDS: "64" };

function test(name: string, body: (broker: DevBroker) => Promise<void>): void {
  Deno.test({
    name,
    sanitizeOps: true,
    sanitizeResources: true,
    fn: async () => {
      await using broker = await DevBroker.start({ durable: true, env: SMALL });
      await body(broker);
    },
  });
}

const text = (at: number) => `record ${at} ${"x".repeat(at % 50)}`;
const texts = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, at) => text(from + at));

async function publishAll(felix: FelixClient, from: number, to: number): Promise<void> {
  const stream = felix.stream("events");
  const results = await Promise.all(texts(from, to).map((value) => stream.publish(value)));
  results.forEach(({ offset }, at) => assertEquals(Number(offset), from + at));
}

/** Reads until it has `count` events; offsets have to follow each other. */
async function readFrom(
  felix: FelixClient,
  start: "earliest" | "latest" | bigint,
  from: number,
  count: number,
): Promise<string[]> {
  await using subscription = await felix.stream("events").subscribe({ start });
  const seen: string[] = [];
  while (seen.length < count) {
    for (const event of await subscription.readBatch(count - seen.length)) {
      assertEquals(Number(event.offset), from + seen.length, "no gap and no duplicate");
      seen.push(event.text());
    }
  }
  return seen;
}

test("acks and events tell offsets; history is read from the log [ST10, ST13]", async (broker) => {
  await using felix = await connectTo(broker);
  await publishAll(felix, 0, 1000);
  assertEquals(await readFrom(felix, "earliest", 0, 1000), texts(0, 1000));
  assertEquals(await readFrom(felix, 700n, 700, 300), texts(700, 1000));
  assertEquals(await broker.metric("felix_storage_append_records_total"), 1000);
  assertEquals(await broker.metric("felix_storage_unsynced_records"), 0);
  assert(await broker.metric("felix_storage_sync_total") > 0);
  await using connection = await RawConnection.connect(broker);
  const ask = async (start: unknown) => {
    const stream = await connection.stream();
    await stream.send(json({ type: "subscribe", ...NAMES, start }));
    const answer = readJson((await stream.frame())!);
    stream.cancel();
    return answer;
  };
  const { start_offset, live_offset } = await ask("earliest");
  assertEquals([start_offset, live_offset], [0, 1000]);
  assertEquals(await ask({ offset: 1001 }), {
    type: "subscribe_cursor_error",
    reason: "in_future",
    requested: 1001,
    available: 1000,
  });
});

test("history joins the live tail under full load: every offset once [ST15]", async (broker) => {
  await using felix = await connectTo(broker);
  await publishAll(felix, 0, 3000);
  const publishing = (async () => {
    for (let at = 3000; at < 8000; at += 500) await publishAll(felix, at, at + 500);
  })();
  const readers = [0n, 10n, 2900n].map((start) =>
    readFrom(felix, start, Number(start), 8000 - Number(start))
  );
  const [first] = await Promise.all([...readers, publishing]);
  assertEquals(first, texts(0, 8000));
});

test("records and offsets survive a restart and a kill [ST35]", async (broker) => {
  for (const [round, stop] of ["restart", "kill", "restart"].entries()) {
    await using felix = await connectTo(broker);
    await publishAll(felix, round * 200, (round + 1) * 200);
    await felix.close();
    if (stop === "kill") await broker.kill();
    await broker.restart();
    await using again = await connectTo(broker);
    const count = (round + 1) * 200;
    assertEquals(await readFrom(again, "earliest", 0, count), texts(0, count));
  }
});

Deno.test("a subscription goes on by offset after a kill and a restart", async () => {
  // The same port again, so that the client finds the broker where it was.
  const socket = Deno.listenDatagram({ transport: "udp", hostname: "127.0.0.1", port: 0 });
  const { port } = socket.addr as Deno.NetAddr;
  socket.close();
  const env = { ...SMALL, FELIX_QUIC_BIND: `127.0.0.1:${port}` };
  await using broker = await DevBroker.start({ durable: true, env });
  await using felix = await connectTo(broker);
  await publishAll(felix, 0, 500);
  await using subscription = await felix.stream("events").subscribe({ start: "earliest" });
  const seen: string[] = [];
  const read = async (count: number) => {
    while (seen.length < count) {
      for (const event of await subscription.readBatch(count - seen.length)) {
        assertEquals(Number(event.offset), seen.length, "no gap and no duplicate");
        seen.push(event.text());
      }
    }
  };
  await read(50);
  await broker.kill();
  await broker.restart();
  await using other = await connectTo(broker);
  await publishAll(other, 500, 600);
  await read(600);
  assertEquals(seen, texts(0, 600));
});

Deno.test("retention moves the base: `too_old` names it [ST11, ST12]", async () => {
  const env = {
    ...SMALL,
    FELIX_DURABLE_RETENTION_BYTES: "131072",
    FELIX_DURABLE_RETENTION_INTERVAL_SECONDS: "1",
  };
  await using broker = await DevBroker.start({ durable: true, env });
  await using felix = await connectTo(broker);
  await publishAll(felix, 0, 4000);
  await using connection = await RawConnection.connect(broker);
  const answer = await poll(async () => {
    const stream = await connection.stream();
    await stream.send(json({ type: "subscribe", ...NAMES, start: { offset: 2 } }));
    const answer = readJson((await stream.frame())!);
    stream.cancel();
    return answer["type"] === "subscribe_cursor_error" ? answer : null;
  }, { what: "retention" });
  assertEquals([answer["reason"], answer["requested"]], ["too_old", 2]);
  const base = Number(answer["available"]);
  assert(base > 2 && base < 4000);
  assertEquals((await readFrom(felix, "earliest", base, 10))[0], text(base));
});

Deno.test("a broker with a damaged log does not start and says where", async () => {
  await using broker = await DevBroker.start({ durable: true });
  {
    await using felix = await connectTo(broker);
    await publishAll(felix, 0, 10);
  }
  await broker.stop();
  const key = { tenant: "t1", namespace: "default", name: "events", shard: 0 };
  const path = `${broker.state}/data/${shardDirectoryName(key)}/00000000000000000000.log`;
  const bytes = Deno.readFileSync(path);
  bytes[60]! ^= 1;
  Deno.writeFileSync(path, bytes);
  await broker.restart().then(() => assert(false, "it started"), () => {});
  const found = await poll(() => {
    const line = broker.stdout.split("\n").find((line) => line.includes("damaged"));
    return Promise.resolve(line ?? null);
  }, { what: "the refusal in the log" });
  assert(found.includes("segment 0, byte 32: RecordChecksum"), found);
});
