// Idempotent producers over the wire (spec/wire.md §4.4, §5.4, §8.3; spec/semantics.md §12 ID1
// to ID7): both forms, answers in JSON and in order, refusals as far as the client knows them, and
// what a restart and a kill keep.

import { assert, assertEquals } from "@std/assert";
import { connect } from "@felix/client";
import { DevBroker } from "../support/servers.ts";
import { concat, json, publish, type RawFrame, readAck, readJson } from "./frames.ts";
import { FULL_OFFER, NO_OFFER, type Offer, RawConnection, type RawStream } from "./raw_client.ts";

const NAMES = { tenant_id: "t1", namespace: "default", stream: "events" };
const IDEMPOTENT_PRODUCER = 0x0200;
const SEQUENCE_REUSED = 0x4000;
const BINARY_IDEMPOTENT = 0x0100;

function test(name: string, durable: boolean, body: (world: World) => Promise<void>): void {
  Deno.test({
    name: `${name}, ${durable ? "durable" : "in memory"}`,
    sanitizeOps: true,
    sanitizeResources: true,
    fn: async () => {
      await using broker = await DevBroker.start({ durable });
      await using connection = await RawConnection.connect(broker);
      await body(new World(broker, connection));
    },
  });
}

/** One stream to a broker, and the batches of producers that go over it. */
class World {
  #requestId = 0;
  #stream: RawStream | null = null;

  constructor(readonly broker: DevBroker, readonly connection: RawConnection) {}

  async open(offer: Offer = FULL_OFFER): Promise<RawStream> {
    return this.#stream = await this.connection.stream(offer);
  }

  /** A batch of a producer as a frame. */
  frame(id: number, sequence: number, payloads: string[], form: "binary" | "json"): Uint8Array {
    const requestId = ++this.#requestId;
    if (form === "binary") {
      const producer = { id: BigInt(id), sequence: BigInt(sequence) };
      return publish({ payloads, requestId, ackMode: 2, producer });
    }
    return json({
      type: "publish_idempotent",
      ...NAMES,
      payloads: payloads.map(btoa),
      request_id: requestId,
      producer_id: id,
      sequence,
    });
  }

  /** Sends a batch; the answer without its request id, which has to be the batch's. */
  async send(
    id: number,
    sequence: number,
    payloads: string[],
    form: "binary" | "json" = "binary",
  ): Promise<Record<string, unknown>> {
    const stream = this.#stream ?? await this.open();
    await stream.send(this.frame(id, sequence, payloads, form));
    const { request_id, message: _, ...answer } = await stream.message();
    assertEquals(request_id, this.#requestId);
    return answer;
  }
}

const ok = (offset?: number) => ({
  type: "publish_ok",
  ...(offset === undefined ? {} : { offset }),
});
const refused = (reason: unknown) => ({ type: "publish_refused", reason });

for (const durable of [true, false]) {
  const at = (offset: number) => ok(durable ? offset : undefined);

  test("the scenarios of one producer [ID1 to ID6]", durable, async (world) => {
    assertEquals(await world.send(7, 3, ["a"]), refused("unknown_producer"));
    for (const form of ["binary", "json", "binary"] as const) {
      assertEquals(await world.send(7, 0, ["a", "b"], form), at(0));
    }
    assertEquals(await world.send(7, 2, ["c"]), refused({ sequence_gap: { expected: 1 } }));
    for (let next = 1; next <= 70; next++) {
      const form = next % 2 === 0 ? "binary" : "json";
      assertEquals(await world.send(7, next, [`r${next}`], form), at(next + 1));
    }
    assertEquals(await world.send(7, 0, ["a", "b"]), refused("sequence_expired"));
    assertEquals(await world.send(7, 10, ["r10"]), at(11));
    assertEquals(await world.send(7, 10, ["other"], "json"), refused("sequence_reused"));
    const stream = await world.open();
    await stream.send(concat(...[1, 2].map(() => world.frame(7, 71, ["twice"], "binary"))));
    const both = [await stream.message(), await stream.message()];
    assertEquals(both.map(({ offset }) => offset), durable ? [72, 72] : [undefined, undefined]);
    assertEquals(await world.send(8, 0, ["after"]), at(73));
    const { events } = await world.connection.subscribe({ start: "earliest" });
    assertEquals((await events.events(74)).length, 74);
    events.cancel();
  });

  test("every stream of a broker is offered it", durable, async ({ connection }) => {
    const { answer } = await connection.authenticated(FULL_OFFER);
    const features = IDEMPOTENT_PRODUCER | SEQUENCE_REUSED;
    assertEquals(Number(answer["server_features"]) & features, features);
    assertEquals(Number(answer["server_flags"]) & BINARY_IDEMPOTENT, BINARY_IDEMPOTENT);
  });
}

test("ids are random and below 2^53", false, async ({ connection }) => {
  const stream = await connection.stream();
  const ids = new Set<number>();
  for (let request_id = 1; request_id <= 50; request_id++) {
    const answer = await stream.ask({ type: "producer_init", request_id });
    assertEquals([answer["type"], answer["request_id"]], ["producer_init_ok", request_id]);
    const id = Number(answer["producer_id"]);
    assert(Number.isSafeInteger(id) && id >= 1);
    ids.add(id);
  }
  assertEquals(ids.size, 50);
});

test("a client is told what it knows: reused sequences", true, async (world) => {
  const { client_features = 0, ...rest } = FULL_OFFER;
  await world.open({ ...rest, client_features: (client_features & ~SEQUENCE_REUSED) >>> 0 });
  assertEquals(await world.send(7, 0, ["a"]), ok(0));
  assertEquals(await world.send(7, 1, ["b"]), ok(1));
  assertEquals(await world.send(7, 0, ["other"]), ok(0));
  assertEquals(await world.send(7, 2, ["c"]), ok(2), "nothing was written");
});

test("a client is told what it knows: refusals", true, async (world) => {
  await world.open(NO_OFFER);
  assertEquals(await world.send(7, 0, ["a"]), ok());
  assertEquals(await world.send(7, 2, ["c"], "json"), { type: "publish_error" });
});

test("what is not written is answered in JSON, and the stream goes on", true, async (world) => {
  const stream = await world.open();
  const answers: [Uint8Array, Record<string, unknown>][] = [
    [
      publish({ payloads: [], requestId: 1, ackMode: 2, producer: { id: 7n, sequence: 0n } }),
      { type: "publish_error", code: "invalid_request", retry: "fatal" },
    ],
    [
      publish({
        stream: "nowhere",
        payloads: ["a"],
        requestId: 2,
        producer: { id: 7n, sequence: 0n },
      }),
      { type: "publish_error", code: "not_found", retry: "retry_after" },
    ],
    [
      json({
        type: "publish_idempotent",
        ...NAMES,
        payloads: ["YQ=="],
        shard: 9,
        request_id: 3,
        producer_id: 7,
        sequence: 0,
      }),
      { type: "publish_error", code: "invalid_request", retry: "fatal" },
    ],
  ];
  for (const [frame, expected] of answers) {
    await stream.send(frame);
    const { request_id: _, message: __, ...answer } = await stream.message();
    assertEquals(answer, expected);
  }
  const producer = { id: 7n, sequence: 0n };
  await stream.send(publish({ tenant: "t2", payloads: ["a"], requestId: 4, producer }));
  const { ok: isOk, requestId, message } = readAck(await stream.frame());
  assertEquals([isOk, requestId, message], [false, 4, "forbidden"]);
  await stream.send(publish({ payloads: ["a"], requestId: 5, producer }));
  assertEquals((await stream.message())["offset"], 0);
});

test("answers keep the order of the stream's other publishes", true, async (world) => {
  const stream = await world.open();
  const COUNT = 400;
  const frames = Array.from({ length: COUNT }, (_, at) => {
    const requestId = at + 1;
    const sequence = BigInt(Math.floor(at / 4));
    switch (at % 4) {
      case 0:
        return publish({ payloads: [`i${at}`], requestId, producer: { id: 5n, sequence } });
      case 1:
        return publish({ payloads: [`p${at}`], requestId });
      case 2:
        return publish({
          payloads: [`i${at - 2}`],
          requestId,
          producer: { id: 5n, sequence },
        });
      default:
        return publish({ payloads: ["x"], requestId, producer: { id: 6n, sequence: 9n } });
    }
  });
  const idOf = (frame: RawFrame) =>
    frame.flags === 0 ? Number(readJson(frame)["request_id"]) : readAck(frame).requestId;
  const reading = (async () => {
    const ids: number[] = [];
    while (ids.length < COUNT) ids.push(idOf(await stream.frame()));
    return ids;
  })();
  for (let from = 0; from < COUNT; from += 50) {
    await stream.send(concat(...frames.slice(from, from + 50)));
  }
  assertEquals(await reading, frames.map((_, at) => at + 1));
  const { events } = await world.connection.subscribe({ start: "earliest" });
  assertEquals((await events.events(COUNT / 2)).length, COUNT / 2);
  events.cancel();
});

Deno.test("acknowledged is written, also where acks do not follow the write", async () => {
  await using broker = await DevBroker.start({
    durable: true,
    env: { FELIX_ACK_ON_COMMIT: "false" },
  });
  await using connection = await RawConnection.connect(broker);
  const world = new World(broker, connection);
  const { client_features = 0, ...rest } = FULL_OFFER;
  await world.open({ ...rest, client_features: (client_features & ~0x0008_0000) >>> 0 });
  assertEquals(await world.send(7, 0, ["a"]), ok(0));
  assertEquals(await world.send(7, 2, ["c"]), refused({ sequence_gap: { expected: 1 } }));
});

Deno.test("a restart and a kill keep what is known of a producer [ID7]", async () => {
  await using broker = await DevBroker.start({
    durable: true,
    env: { FELIX_DURABLE_SEGMENT_BYTES: "65536" },
  });
  const record = "x".repeat(3000);
  for (const [round, stop] of ["restart", "kill", "restart"].entries()) {
    await using connection = await RawConnection.connect(broker);
    const world = new World(broker, connection);
    const from = round * 50;
    if (from > 0) assertEquals(await world.send(7, from - 1, [record]), ok(from - 1));
    for (let next = from; next < from + 50; next++) {
      assertEquals(await world.send(7, next, [record]), ok(next));
    }
    assertEquals(await world.send(7, from + 51, [record]), {
      ...refused({ sequence_gap: { expected: from + 50 } }),
    });
    if (stop === "kill") await broker.kill();
    await broker.restart();
  }
});

Deno.test("a producer goes on through restarts and kills: every record once", async () => {
  // The same port again, so that the client finds the broker where it was.
  const socket = Deno.listenDatagram({ transport: "udp", hostname: "127.0.0.1", port: 0 });
  const { port } = socket.addr as Deno.NetAddr;
  socket.close();
  const env = { FELIX_QUIC_BIND: `127.0.0.1:${port}`, FELIX_DURABLE_SEGMENT_BYTES: "65536" };
  await using broker = await DevBroker.start({ durable: true, env });
  const { broker: addresses, tenant, namespace, token, caFile } = broker;
  const options = {
    addresses,
    tenant,
    namespace,
    token,
    serverName: "localhost",
    tls: { caFile },
    requestTimeoutMs: 60_000,
    reconnect: { attempts: 1000, backoffMs: 20, maxBackoffMs: 100 },
  };
  await using felix = await connect(options);
  await using producer = await felix.stream("events").producer();
  const text = (at: number) => `record ${at} ${"x".repeat(at % 300)}`;
  let stopped = false;
  const stopping = (async () => {
    for (const stop of ["kill", "restart", "kill"]) {
      await new Promise((resolve) => setTimeout(resolve, 100));
      if (stop === "kill") await broker.kill();
      await broker.restart();
    }
    stopped = true;
  })();
  const offsets: (bigint | null)[] = [];
  while (!stopped || offsets.length < 500) {
    const from = offsets.length;
    const batches = Array.from({ length: 100 }, (_, at) => [text(from + at)]);
    offsets.push(...(await producer.publishBatches(batches)).map(({ offset }) => offset));
  }
  await stopping;
  assertEquals(offsets, offsets.map((_, at) => BigInt(at)));
  await using other = await connect(options);
  await using subscription = await other.stream("events").subscribe({ start: "earliest" });
  const seen: string[] = [];
  while (seen.length < offsets.length) {
    for (const event of await subscription.readBatch(100)) seen.push(event.text());
  }
  assertEquals(seen, offsets.map((_, at) => text(at)));
});
