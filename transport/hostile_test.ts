// What anybody may throw at a UDP port: noise, truncated and bent QUIC packets, floods of first
// contacts. Held by both engines: the listener goes on serving.

import { Buffer } from "node:buffer";
import { createSocket } from "node:dgram";
import { assertEquals, assertGreater } from "@std/assert";
import {
  acceptOne,
  bytesOf,
  connect,
  eachEngine,
  listen,
  pattern,
  pause,
  readExactly,
  textOf,
} from "./test_support/pair.ts";
import { udpRelay } from "./test_support/udp_relay.ts";
import type { Listener, Transport } from "./mod.ts";

/** Sends datagrams to `port` and waits until they are out. */
async function throwAt(port: number, datagrams: Iterable<Uint8Array>): Promise<void> {
  const socket = createSocket("udp4");
  socket.on("error", () => {});
  for (const datagram of datagrams) {
    await new Promise((resolve) => socket.send(datagram, port, "127.0.0.1", resolve));
  }
  await new Promise<void>((resolve) => socket.close(() => resolve()));
}

/** A long header with a type and a version, and `bytes` of noise behind it. */
function longPacket(firstByte: number, version: number, length: number, seed: number): Uint8Array {
  const packet = Buffer.from(pattern(length, seed));
  packet[0] = firstByte;
  packet.writeUInt32BE(version, 1);
  packet[5] = 8;
  packet[14] = 8;
  return packet;
}

function* noise(): Generator<Uint8Array> {
  for (let seed = 1; seed <= 60; seed++) yield pattern((seed * 37) % 1500 + 1, seed);
  yield new Uint8Array(0);
  for (const length of [1, 5, 6, 7, 20, 21, 1199, 1200, 1500]) {
    yield new Uint8Array(length);
    yield new Uint8Array(length).fill(0xff);
    yield new Uint8Array(length).fill(0xc0);
    for (const first of [0xc0, 0xd0, 0xe0, 0xf0, 0x80]) {
      if (length >= 20) yield longPacket(first, 1, length, first + length);
      if (length >= 20) yield longPacket(first, 0, length, first);
      if (length >= 20) yield longPacket(first, 0x1a2a3a4a, length, first);
    }
  }
}

async function assertServes(transport: Transport, listener: Listener): Promise<void> {
  const accepting = (async () => {
    for (;;) { // noise that looks like a first contact comes up here as well
      const incoming = await listener.accept();
      const connection = await incoming?.accept().catch(() => null);
      if (connection) return connection;
    }
  })();
  const client = await connect(transport, listener.port);
  const server = await accepting;
  const near = await client.openUnidirectional();
  await near.write(bytesOf("served"));
  const far = await server.acceptUnidirectional();
  assertEquals(textOf(await readExactly(far!, 6)), "served");
  client.close();
  await Promise.all([client.closed, server.closed]);
}

eachEngine("noise on the port does not keep a client out", async (transport) => {
  const listener = await listen(transport);
  await throwAt(listener.port, noise());
  await pause(20);
  await assertServes(transport, listener);
  await listener.close();
});

eachEngine("a flood of first contacts is bounded and passes", async (transport) => {
  const listener = await listen(transport);
  const flood = Array.from({ length: 600 }, (_, index) => longPacket(0xc0, 1, 1200, index));
  const refusing = (async () => {
    for (let seen = 0; seen < 20; seen++) (await listener.accept())?.refuse();
  })();
  await throwAt(listener.port, flood);
  await pause(50);
  listener.stopAccepting(); // must not wait for those that nobody answered
  await refusing;
  await listener.close();
  const next = await listen(transport);
  await assertServes(transport, next);
  await next.close();
});

eachEngine("replayed and bent packets of a connection do not break it", async (transport) => {
  const listener = await listen(transport);
  const relay = await udpRelay(listener.port);
  const [server, client] = await Promise.all([
    acceptOne(listener),
    connect(transport, relay.port),
  ]);
  const near = await client.openUnidirectional();
  await near.write(bytesOf("first "));
  const far = await server.acceptUnidirectional();
  assertEquals(textOf(await readExactly(far!, 6)), "first ");
  assertGreater(relay.toServer.length, 2);
  const bent = relay.toServer.map((datagram, index) => {
    const copy = datagram.slice();
    copy[(index * 131) % copy.byteLength]! ^= 0x55;
    return copy;
  });
  await throwAt(listener.port, [...relay.toServer, ...bent]);
  await pause(20);
  await near.write(bytesOf("second"));
  assertEquals(textOf(await readExactly(far!, 6)), "second");
  client.close();
  await Promise.all([client.closed, server.closed]);
  await listener.close();
  await relay.close();
});
