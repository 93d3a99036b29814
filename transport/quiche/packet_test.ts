// Reading a datagram before anybody trusts it.

import { Buffer } from "node:buffer";
import { assertEquals } from "@std/assert";
import * as fc from "fast-check";
import { destinationKey, idKey, LOCAL_ID_BYTES, longHeader, mayStart } from "./packet.ts";

function initial(destination: Uint8Array, source: Uint8Array, totalBytes: number): Buffer {
  const packet = Buffer.alloc(Math.max(totalBytes, 7 + destination.length + source.length));
  packet[0] = 0xc3;
  packet.writeUInt32BE(1, 1);
  packet[5] = destination.length;
  packet.set(destination, 6);
  packet[6 + destination.length] = source.length;
  packet.set(source, 7 + destination.length);
  return packet;
}

Deno.test("a long header gives its ids", () => {
  const ids = fc.uint8Array({ maxLength: 20 });
  fc.assert(fc.property(ids, ids, (destination, source) => {
    const packet = initial(destination, source, 1200);
    const header = longHeader(packet)!;
    assertEquals(new Uint8Array(header.destination), destination);
    assertEquals(new Uint8Array(header.source), source);
    assertEquals(header.version, 1);
    assertEquals(destinationKey(packet), idKey(destination));
    assertEquals(mayStart(header, packet.length), destination.length >= 8);
    assertEquals(mayStart(header, 1199), false);
  }));
});

Deno.test("a short header is matched by the length of our own ids", () => {
  const id = Uint8Array.from({ length: LOCAL_ID_BYTES }, (_, index) => 240 + index);
  const packet = Buffer.alloc(40);
  packet[0] = 0x41;
  packet.set(id, 1);
  assertEquals(destinationKey(packet), idKey(id));
  assertEquals(longHeader(packet), null);
  assertEquals(destinationKey(packet.subarray(0, LOCAL_ID_BYTES)), null);
});

Deno.test("no bytes throw, and ids never reach past the datagram", () => {
  fc.assert(fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => {
    const packet = Buffer.from(bytes);
    const key = destinationKey(packet);
    if (key !== null) assertEquals(key.length <= packet.length, true);
    const header = longHeader(packet);
    if (header === null) return;
    const used = 7 + header.destination.length + header.source.length;
    assertEquals(used <= packet.length, true);
  }));
});

Deno.test("only an Initial may start a connection", () => {
  for (const [first, expected] of [[0xc0, true], [0xd0, false], [0xe0, false], [0x80, false]]) {
    const packet = initial(new Uint8Array(8), new Uint8Array(8), 1200);
    packet[0] = first as number;
    assertEquals(mayStart(longHeader(packet)!, packet.length), expected as boolean);
  }
});
