// The bytes of the producer snapshot (spec/storage.md §5.4).

import { assertEquals } from "@std/assert";
import fc from "fast-check";
import { crc32 } from "./crc32.ts";
import {
  decodeProducerSnapshot,
  encodeProducerSnapshot,
  type ProducerSnapshot,
  snapshotFits,
} from "./producer_snapshot.ts";

const unhex = (value: string) => Uint8Array.fromHex(value.replaceAll(/\s/g, ""));

const example: ProducerSnapshot = {
  asOf: 12,
  open: { producerId: 9n, sequence: 4n, first: 10, length: 5, held: 2, digest: 0xABn },
  producers: [
    {
      producerId: 7n,
      lastSequence: 1n,
      batches: [{ first: 3, length: 2, digest: 1n }, { first: 5, length: 1, digest: null }],
    },
  ],
};

/** Everything after byte 24 of the example, by hand. */
const exampleBody = `
  01 0000000000000009 0000000000000004 00000005 000000000000000a 00000002 01 00000000000000ab
  0000000000000007 0000000000000001 0002
  0000000000000003 00000002 01 0000000000000001
  0000000000000005 00000001 00 0000000000000000`;

/** A snapshot file around a body, with the sum that belongs to it. */
function file(version: number, asOf: number, count: number, body: string): Uint8Array {
  const bytes = unhex(`464c5053 0000 0000 0000000000000000 00000000 00000000 ${body}`);
  const view = new DataView(bytes.buffer);
  view.setUint16(4, version);
  view.setBigUint64(8, BigInt(asOf));
  view.setUint32(16, count);
  view.setUint32(20, crc32(bytes, 24, bytes.length));
  return bytes;
}

const u64 = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n });
const batchSizes = fc.array(fc.tuple(fc.nat(5), fc.integer({ min: 1, max: 9 }), fc.option(u64)), {
  minLength: 1,
  maxLength: 64,
});
const snapshots: fc.Arbitrary<ProducerSnapshot> = fc.tuple(
  fc.uniqueArray(fc.tuple(u64, batchSizes), { selector: ([id]) => id, maxLength: 5 }),
  fc.option(fc.tuple(u64, u64, fc.integer({ min: 1, max: 99 }), fc.option(u64))),
).map(([drawn, drawnOpen]) => {
  let offset = 0;
  const producers = drawn.map(([producerId, sizes]) => {
    const batches = sizes.map(([gap, length, digest]) => {
      const first = offset + gap;
      offset = first + length;
      return { first, length, digest };
    });
    return { producerId, lastSequence: BigInt(batches.length + 3), batches };
  });
  if (drawnOpen === null) return { asOf: offset, open: null, producers };
  const [producerId, sequence, held, digest] = drawnOpen;
  const open = { producerId, sequence, first: offset, length: held + 1, held, digest };
  return { asOf: offset + held, open, producers };
});

Deno.test("a snapshot has the bytes of its layout", () => {
  assertEquals(encodeProducerSnapshot(example), file(2, 12, 1, exampleBody));
  assertEquals(decodeProducerSnapshot(file(2, 12, 1, exampleBody)), example);
  const empty = { asOf: 5, open: null, producers: [] };
  assertEquals(encodeProducerSnapshot(empty), file(2, 5, 0, "00"));
});

Deno.test("version 1 is read: the same without digests", () => {
  const bytes = file(
    1,
    12,
    1,
    `01 0000000000000009 0000000000000004 00000005 000000000000000a 00000002
     0000000000000007 0000000000000001 0002
     0000000000000003 00000002 0000000000000005 00000001`,
  );
  const { open, producers: [producer] } = example;
  const batches = producer!.batches.map((batch) => ({ ...batch, digest: null }));
  assertEquals(decodeProducerSnapshot(bytes), {
    asOf: 12,
    open: { ...open!, digest: null },
    producers: [{ ...producer!, batches }],
  });
});

Deno.test("a snapshot comes back as it was written", () => {
  fc.assert(fc.property(snapshots, (snapshot) => {
    assertEquals(decodeProducerSnapshot(encodeProducerSnapshot(snapshot)), snapshot);
  }));
});

Deno.test("any changed, missing or added byte of what is summed makes a snapshot absent", () => {
  const good = encodeProducerSnapshot(example);
  for (let length = 0; length < good.length; length++) {
    assertEquals(decodeProducerSnapshot(good.subarray(0, length)), null);
  }
  assertEquals(decodeProducerSnapshot(new Uint8Array([...good, 0])), null);
  for (let bit = 20 * 8; bit < good.length * 8; bit++) {
    const bytes = good.slice();
    bytes[bit >> 3]! ^= 1 << (bit & 7);
    assertEquals(decodeProducerSnapshot(bytes), null, `bit ${bit}`);
  }
});

Deno.test("what no log could have led to is absent, whatever its sum", () => {
  const producer = "0000000000000007 0000000000000001 0002";
  const batch = (first: number, length: number, present = 1) =>
    `${first.toString(16).padStart(16, "0")} ${length.toString(16).padStart(8, "0")}
     0${present} 0000000000000001`;
  const cases: [string, Uint8Array][] = [
    ["version 3", file(3, 12, 1, exampleBody)],
    ["too few producers", file(2, 12, 0, exampleBody)],
    ["too many producers", file(2, 12, 2, exampleBody)],
    ["a count that would fill the memory", file(2, 12, 0xFFFF_FFFF, exampleBody)],
    ["an open batch that does not end the log", file(2, 13, 1, exampleBody)],
    ["a batch past the end", file(2, 5, 1, `00 ${producer} ${batch(3, 2)} ${batch(5, 1)}`)],
    ["batches that overlap", file(2, 9, 1, `00 ${producer} ${batch(3, 2)} ${batch(4, 1)}`)],
    ["an empty batch", file(2, 9, 1, `00 ${producer} ${batch(3, 0)} ${batch(4, 1)}`)],
    ["a digest neither there nor not", file(2, 9, 1, `00 ${producer} ${batch(3, 2, 2)}`)],
    ["no batches", file(2, 9, 1, "00 0000000000000007 0000000000000001 0000")],
    [
      "more batches than sequences",
      file(2, 9, 1, `00 0000000000000007 0000000000000000 0002 ${batch(3, 2)} ${batch(5, 1)}`),
    ],
    [
      "a producer twice",
      file(2, 9, 2, `00 ${`0000000000000007 0000000000000001 0001 ${batch(3, 2)}`.repeat(2)}`),
    ],
    ["an open byte of 2", file(2, 9, 0, "02")],
  ];
  for (const [name, bytes] of cases) assertEquals(decodeProducerSnapshot(bytes), null, name);
});

Deno.test("any bytes are a snapshot or none", () => {
  fc.assert(fc.property(fc.uint8Array({ maxLength: 80 }), fc.nat(3), (tail, count) => {
    decodeProducerSnapshot(tail);
    decodeProducerSnapshot(file(2, 100, count, `01${tail.toHex()}`));
    decodeProducerSnapshot(file(1, 100, count, `00${tail.toHex()}`));
  }));
});

Deno.test("a snapshot fits a log that holds its offset", () => {
  assertEquals([11, 12, 13].map((base) => snapshotFits(example, base, 20)), [true, true, false]);
  assertEquals([11, 12, 13].map((tail) => snapshotFits(example, 0, tail)), [false, true, true]);
});
