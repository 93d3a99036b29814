// Streams that only the client writes (spec/wire.md §1.4, §9.5 and the right column of §10): they
// publish, nobody answers, and anything that does not belong there ends them and nothing else.

import type { SendStream } from "@felix/transport";
import { assertEquals } from "@std/assert";
import { poll } from "../support/poll.ts";
import { DevBroker } from "../support/servers.ts";
import { frame, json, publish, publishBody, readAck, textOf, uint, utf8 } from "./frames.ts";
import { FULL_OFFER, RawConnection } from "./raw_client.ts";

const names = { tenant_id: "t1", namespace: "default" };

interface Row {
  readonly name: string;
  /** Sent after `auth`; before it with `unauthenticated`. */
  readonly send: Uint8Array;
  readonly unauthenticated?: true;
  readonly then: "goes on" | "ends";
}

const rows: readonly Row[] = [
  { name: "publish", send: publish({ payloads: ["first"] }), then: "goes on" },
  {
    name: "JSON publish; request id and ack are ignored",
    send: json({
      type: "publish",
      ...names,
      stream: "events",
      payload: btoa("first"),
      request_id: 1,
    }),
    then: "goes on",
  },
  {
    name: "unknown stream",
    send: publish({ stream: "nowhere", payloads: ["x"] }),
    then: "goes on",
  },
  {
    name: "publish_width",
    send: json({ type: "publish_width", ...names, stream: "events", shards: 1 }),
    then: "goes on",
  },
  { name: "bad magic", send: utf8("GET / HTTP/1.1\r\n\r\n"), then: "ends" },
  {
    name: "oversize length",
    send: frame(0, new Uint8Array(0), { length: 16 * 1024 * 1024 + 1 }),
    then: "ends",
  },
  { name: "unknown flag bit", send: frame(0x8000, utf8("x")), then: "ends" },
  {
    name: "publish before auth",
    send: publish({ payloads: ["x"] }),
    unauthenticated: true,
    then: "ends",
  },
  {
    name: "request before auth",
    send: json({ type: "topology" }),
    unauthenticated: true,
    then: "ends",
  },
  {
    name: "auth refused",
    send: json({ type: "auth", tenant_id: "t1", token: "no.such.token" }),
    unauthenticated: true,
    then: "ends",
  },
  {
    name: "second auth",
    send: json({ type: "auth", tenant_id: "t1", token: "x" }),
    then: "ends",
  },
  { name: "not JSON", send: json("nonsense"), then: "ends" },
  { name: "unknown type", send: json({ type: "stream_fork", request_id: 1 }), then: "ends" },
  { name: "extension", send: json({ type: "extension", name: "acme.x" }), then: "ends" },
  { name: "broker-only type", send: json({ type: "ok" }), then: "ends" },
  { name: "request that is no publish", send: json({ type: "topology" }), then: "ends" },
  {
    name: "acked binary publish",
    send: publish({ payloads: ["x"], requestId: 1, tenant: "t2" }),
    then: "ends",
  },
  { name: "unacked binary: bad body", send: frame(0x0001, utf8("??")), then: "ends" },
  {
    name: "unacked binary: tenant mismatch",
    send: publish({ tenant: "t2", payloads: ["x"] }),
    then: "ends",
  },
  {
    name: "idempotent bit without the acked bit",
    send: frame(0x0101, new Uint8Array([...uint(1, 8), ...publishBody({ payloads: ["x"] })])),
    then: "ends",
  },
];

/** Writes publishes until the broker refuses to take more. */
async function writeUntilStopped(stream: SendStream, marker: string): Promise<void> {
  await poll(async () => {
    try {
      await stream.write(publish({ payloads: [marker] }));
      return false;
    } catch {
      return true;
    }
  }, { what: "the end of the stream" });
}

async function runRow(connection: RawConnection, row: Row, marker: string): Promise<void> {
  const { events } = await connection.subscribe();
  const stream = await connection.oneWay();
  if (!row.unauthenticated) await stream.write(json(connection.auth(FULL_OFFER)));
  await stream.write(row.send).catch(() => {});
  const publisher = await connection.stream();
  if (row.then === "goes on") {
    await stream.write(publish({ payloads: [marker] }));
    let seen = "";
    while (seen !== marker) seen = textOf((await events.events(1))[0]!);
    await stream.finish();
  } else {
    await writeUntilStopped(stream, marker);
    await publisher.send(publish({ payloads: ["after"], requestId: 1 }));
    assertEquals(readAck(await publisher.frame()).ok, true);
    assertEquals((await events.events(1)).map(textOf), ["after"]);
  }
  await publisher.finish();
  events.cancel();
  await connection.assertServes();
}

Deno.test({
  name: "one-way streams",
  sanitizeOps: true,
  sanitizeResources: true,
  fn: async (test) => {
    await using broker = await DevBroker.start();
    await using connection = await RawConnection.connect(broker);
    for (const [index, row] of rows.entries()) {
      await test.step(`${row.name}: ${row.then}`, () => runRow(connection, row, `m${index}`));
    }
    assertEquals(broker.stderr, "");
  },
});
