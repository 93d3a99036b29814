// The bytes of segments and indexes against the reference vectors (spec/storage.md §3.5, §4).

import { assertEquals } from "@std/assert";
import fc from "fast-check";
import { crc32 } from "./crc32.ts";
import { encodeRecord, MAX_PAYLOAD_BYTES, RecordCursor, RecordKind, recordSize } from "./record.ts";
import type { NewRecord } from "./record.ts";
import { decodeSegmentHeader, encodeSegmentHeader } from "./segment_header.ts";
import { SparseIndex } from "./sparse_index.ts";

const text = (value: string) => new TextEncoder().encode(value);
const hex = (bytes: Uint8Array) => bytes.toHex();
const unhex = (value: string) => Uint8Array.fromHex(value.replaceAll(" ", ""));

function encode(record: NewRecord, offset: number, timestampMicros: number): Uint8Array {
  const bytes = new Uint8Array(recordSize(record));
  encodeRecord(bytes, new DataView(bytes.buffer), 0, record, offset, timestampMicros);
  return bytes;
}

function decode(bytes: Uint8Array, version = 5) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const cursor = new RecordCursor();
  const failure = cursor.readHeader(bytes, view, 0, version);
  if (failure !== null) return failure;
  if (cursor.size > bytes.length) return "Truncated";
  return cursor.verifies(bytes, view, 0) ? cursor.record(bytes, view, 0) : "RecordChecksum";
}

Deno.test("crc32 has the reference check value, by table and by the runtime", () => {
  assertEquals(crc32(text("123456789"), 0, 9), 0xCBF4_3926);
  const long = text("123456789".repeat(100));
  let byTable = 0;
  for (let at = 0; at < long.length; at += 9) byTable = crc32(long, at, at + 9, byTable);
  assertEquals(byTable, crc32(long, 0, long.length));
});

Deno.test("segment headers have the reference bytes", () => {
  const sums = { 2: "7a09e5b1", 3: "adeb65e9", 4: "e7d5eea2", 5: "30376efa" };
  for (const [version, sum] of Object.entries(sums)) {
    const header = { version: Number(version), base: 1, createdAtMicros: 2 };
    const bytes = encodeSegmentHeader(header);
    assertEquals(
      hex(bytes),
      `464c5347000${version}000000000000000000010000000000000002${sum}00000000`,
    );
    assertEquals(decodeSegmentHeader(bytes), header);
  }
});

Deno.test("every fault of a segment header has its name", () => {
  const good = encodeSegmentHeader({ version: 3, base: 1, createdAtMicros: 2 });
  const broken = (at: number, value: number) => {
    const bytes = good.slice();
    bytes[at] = value;
    return decodeSegmentHeader(bytes);
  };
  assertEquals(decodeSegmentHeader(good.subarray(0, 31)), "Truncated");
  assertEquals(broken(0, 0), "SegmentMagic");
  assertEquals(broken(5, 1), "SegmentVersion");
  assertEquals(broken(5, 6), "SegmentVersion");
  assertEquals(broken(7, 1), "SegmentFlags");
  assertEquals(broken(15, 9), "SegmentHeaderChecksum");
  assertEquals(broken(27, 9), "SegmentHeaderChecksum");
});

Deno.test("records have the reference bytes", () => {
  const vectors: [NewRecord, number, number, string][] = [
    [{ payload: text("hi") }, 7, 9, "00000002 0000000000000007 0000000000000009 c654de27 2402152c"],
    [{ payload: text("") }, 0, 0, "00000000 0000000000000000 0000000000000000 0fd59b8d 715c81e1"],
    [
      { payload: text("hi"), tag: { producerId: 1n, sequence: 0n, length: 2 } },
      7,
      9,
      "80000002 0000000000000007 0000000000000009 ada59e0b 70dd38e5 " +
      "0000000000000001 0000000000000000 00000002",
    ],
    [
      { payload: text("ok"), kind: RecordKind.batchContinuation },
      8,
      9,
      "40000002 0000000000000008 0000000000000009 2c15b1e0 30f668f4",
    ],
    [
      { payload: unhex("0000000000000003"), kind: RecordKind.generationStart },
      5,
      9,
      "20000008 0000000000000005 0000000000000009 c07279f3 4d16f385",
    ],
    [
      {
        payload: unhex("01 00000002 6576 00000001 00 00000001 6b 00000001 76"),
        kind: RecordKind.commit,
      },
      6,
      9,
      "10000016 0000000000000006 0000000000000009 55b0dff3 9d02d1bd",
    ],
  ];
  for (const [record, offset, timestampMicros, head] of vectors) {
    const bytes = encode(record, offset, timestampMicros);
    assertEquals(hex(bytes), head.replaceAll(" ", "") + hex(record.payload));
    assertEquals(decode(bytes), {
      offset,
      timestampMicros,
      kind: record.tag ? RecordKind.batchStart : record.kind ?? RecordKind.plain,
      tag: record.tag ?? null,
      payload: record.payload,
    });
  }
});

Deno.test("every flipped bit of a record is seen", () => {
  const tag = { producerId: 5n, sequence: 6n, length: 1 };
  for (const record of [{ payload: text("payload") }, { payload: text("tagged"), tag }]) {
    const good = encode(record, 3, 4);
    for (let bit = 0; bit < good.length * 8; bit++) {
      const bytes = good.slice();
      bytes[bit >> 3]! ^= 1 << (bit & 7);
      const result = decode(bytes);
      const expected = bit >> 3 < 24 ? "RecordHeaderChecksum" : "RecordChecksum";
      assertEquals(result, expected, `bit ${bit}`);
    }
  }
});

Deno.test("kinds that the version does not allow, doubled kinds and lengths are refused", () => {
  const generation = encode({ payload: text("x"), kind: RecordKind.generationStart }, 0, 0);
  assertEquals(decode(generation, 3), "RecordFlags");
  const crafted = (word: number) => {
    const bytes = new Uint8Array(64);
    const view = new DataView(bytes.buffer);
    view.setUint32(0, word);
    view.setUint32(20, crc32(bytes, 0, 20));
    return decode(bytes);
  };
  assertEquals(crafted(0xC000_0000), "RecordFlags");
  assertEquals(crafted(MAX_PAYLOAD_BYTES + 1), "RecordTooLarge");
  assertEquals(crafted(MAX_PAYLOAD_BYTES), "Truncated");
});

Deno.test("zeroes are never a record", () => {
  assertEquals(decode(new Uint8Array(64)), "RecordHeaderChecksum");
});

Deno.test("the index takes an entry each spacing, as the reference does", () => {
  const index = new SparseIndex(0, 100);
  for (let offset = 0; offset < 10; offset++) index.add(offset, 32 + 40 * offset, 40);
  const decoded = SparseIndex.decode(index.encode(), 0, 100)!;
  assertEquals([0, 2, 3, 8, 9, 50].map((offset) => decoded.find(offset).position), [
    32,
    32,
    152,
    272,
    392,
    392,
  ]);
  const one = new SparseIndex(0, 4096);
  one.add(0, 32, 40);
  assertEquals(
    hex(one.encode()),
    "464c534900030000000000000000000000000000000000000000000000000000" + "0000000000000020",
  );
});

Deno.test("any bytes as an index are unusable or ascending", () => {
  fc.assert(fc.property(fc.uint8Array({ maxLength: 200 }), (tail) => {
    const head = new SparseIndex(3, 10).encode();
    const index = SparseIndex.decode(new Uint8Array([...head, ...tail]), 3, 10)!;
    assertEquals(index.length <= tail.length / 16, true);
    assertEquals(index.find(0), { offset: 3, position: 32 });
    SparseIndex.decode(tail, 3, 10);
  }));
});
