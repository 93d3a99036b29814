// The builder and reader that the conformance tests stand on, held to the examples of
// spec/wire.md §2 and §5, byte for byte.

import { assertEquals, assertThrows } from "@std/assert";
import { FrameCutter, json, publish, readAck, readEvents, readJson, textOf } from "./frames.ts";

const acme = { tenant: "acme", namespace: "prod", stream: "orders" };
const head = "464c58310001";
const scope = "000461636d65000470726f6400066f7264657273";

function bytes(hex: string): Uint8Array {
  return Uint8Array.fromHex(hex.replaceAll(" ", ""));
}

function cut(hex: string): { flags: number; payload: Uint8Array } {
  const cutter = new FrameCutter();
  cutter.push(bytes(hex));
  const frame = cutter.next();
  if (frame === null) throw new RangeError("no whole frame");
  assertEquals(cutter.pending, 0);
  return frame;
}

Deno.test("frames are built as the specification prints them", () => {
  assertEquals(json({ type: "ok" }), bytes(`${head} 0000 0000000d 7b2274797065223a226f6b227d`));
  assertEquals(
    publish({ ...acme, payloads: ["hi", "yo!"] }),
    bytes(`${head} 0001 00000025 ${scope} 00000002 00000002 6869 00000003 796f21`),
  );
  assertEquals(
    publish({ ...acme, payloads: ["hi"], key: "c9" }),
    bytes(`${head} 0041 00000022 0002 6339 ${scope} 00000001 00000002 6869`),
  );
  assertEquals(
    publish({ ...acme, payloads: ["hi"], requestId: 5 }),
    bytes(`${head} 0009 00000027 0000000000000005 01 ${scope} 00000001 00000002 6869`),
  );
  assertEquals(
    publish({
      ...acme,
      payloads: ["hi"],
      key: "c9",
      requestId: 6,
      ackMode: 2,
      producer: { id: 0x0102030405060708n, sequence: 3n },
    }),
    bytes(
      `${head} 0149 0000003b 0000000000000006 02 0102030405060708 0000000000000003 0002 6339` +
        `${scope} 00000001 00000002 6869`,
    ),
  );
});

Deno.test("acks are read as the specification prints them", () => {
  const base = { requestId: 5, message: "" };
  const nope = { ok: false, requestId: 5, message: "nope" };
  const ok = `${head} 0010 0000000b 00 0000000000000005 0000`;
  assertEquals(readAck(cut(ok)), { ok: true, ...base });
  assertEquals(
    readAck(cut(`${head} 0210 00000012 01 0000000000000005 0004 6e6f7065 000a 02`)),
    { ...nope, code: 10, retry: 2 },
  );
  assertEquals(
    readAck(
      cut(
        `${head} 0610 00000022 01 0000000000000005 0004 6e6f7065 0005 01 0006 6d6f76696e67` +
          "0000000000000064",
      ),
    ),
    { ...nope, code: 5, retry: 1, reason: "moving", retryAfterMs: 100 },
  );
  assertEquals(
    readAck(cut(`${head} 1010 00000013 00 0000000000000005 0000 00000000000003e8`)),
    { ok: true, ...base, offset: 1000 },
  );
  assertThrows(() => readAck(cut(`${head} 0010 0000000c 00 0000000000000005 0000 00`)), RangeError);
});

Deno.test("events and JSON are read as the specification prints them", () => {
  const plain = readEvents(cut(`${head} 0004 00000011 00000002 00000002 6869 00000003 796f21`));
  assertEquals(plain.payloads.map(textOf), ["hi", "yo!"]);
  const based = readEvents(
    cut(`${head} 0024 00000019 0000000000000010 00000002 00000002 6869 00000003 796f21`),
  );
  assertEquals([based.base, based.payloads.length], [16, 2]);
  const ok = cut(`${head} 0000 0000000d 7b2274797065223a226f6b227d`);
  assertEquals(readJson(ok), { type: "ok" });
});

Deno.test("the cutter waits for whole frames and refuses other headers", () => {
  const whole = json({ type: "ok" });
  const cutter = new FrameCutter();
  for (const byte of whole.subarray(0, -1)) {
    cutter.push(Uint8Array.of(byte));
    assertEquals(cutter.next(), null);
  }
  cutter.push(whole.subarray(-1));
  assertEquals(cutter.next()?.payload.length, 13);
  cutter.push(bytes("464c58320001000000000000"));
  assertThrows(() => cutter.next(), RangeError);
});
