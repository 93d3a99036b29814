// Damage to the files of a log: flipped bits, cuts, zeroes and garbage at the end. Opening either
// refuses and names the place, or repairs what is provably an unfinished write; what it then reads
// is a prefix of what was written, and never other data (spec/storage.md §20 I7-I9, §21).

import { assert, assertEquals } from "@std/assert";
import { CorruptionError, type LogRecord, LogStore, SimulatedDisk } from "@felix/storage";
import { readAll } from "./history.ts";

const KEY = { tenant: "t", namespace: "n", name: "s", shard: 0 };
const HEADER_BYTES = 32;

async function openStore(disk: SimulatedDisk, segmentBytes: number): Promise<LogStore> {
  const settings = { segmentBytes, indexSpacingBytes: 60 };
  return await LogStore.open({ disk, root: "/data", settings, nowMicros: () => 7, owner: "test" });
}

interface Written {
  readonly disk: SimulatedDisk;
  readonly records: LogRecord[];
  readonly directory: string;
  /** Path of the newest segment, and where each of its records begins. */
  readonly newest: string;
}

/** A log of ten records, closed well; in one segment or in several. */
async function write(segmentBytes: number): Promise<Written> {
  const disk = new SimulatedDisk();
  const store = await openStore(disk, segmentBytes);
  const log = await store.openLog("streams", KEY);
  for (let at = 0; at < 10; at++) {
    await log.append([{ payload: new TextEncoder().encode(`record ${at} ${"x".repeat(at * 9)}`) }]);
  }
  const records = await readAll(log);
  await store.close();
  const directory = store.directoryOf("streams", KEY);
  const segments = disk.paths().filter((path) => path.endsWith(".log"));
  return {
    disk: disk.afterCrash({ names: "lost", data: "lost" }),
    records,
    directory,
    newest: segments.at(-1)!,
  };
}

interface Outcome {
  readonly records: LogRecord[];
  readonly refusal: CorruptionError | null;
}

/** Opens and reads everything; corruption may show at either. */
async function openAndRead(disk: SimulatedDisk, segmentBytes: number): Promise<Outcome> {
  const records: LogRecord[] = [];
  try {
    const store = await openStore(disk, segmentBytes);
    const log = await store.openLog("streams", KEY);
    for (let next = log.base; next < log.tail;) {
      const page = await log.read(next, { maxBytes: 1 });
      records.push(...page.records);
      next = page.next;
    }
    return { records, refusal: null };
  } catch (error) {
    assert(error instanceof CorruptionError, String(error));
    return { records, refusal: error };
  }
}

function damaged({ disk }: Written, path: string, bytes: Uint8Array): SimulatedDisk {
  const copy = disk.afterCrash({ names: "kept", data: "kept" });
  copy.setBytes(path, bytes);
  return copy;
}

const withoutMark = (written: Written): Written => {
  const disk = written.disk.afterCrash({ names: "kept", data: "kept" });
  disk.setBytes(`${written.directory}/durable.mark`, new Uint8Array(0));
  return { ...written, disk };
};

for (const [name, segmentBytes] of [["one segment", 10_000], ["several segments", 300]] as const) {
  Deno.test(`every flipped bit is refused by place or read right: ${name}`, async () => {
    const written = await write(segmentBytes);
    let refused = 0;
    for (const path of written.disk.paths().filter((path) => path.startsWith(written.directory))) {
      const good = written.disk.bytes(path);
      for (let bit = 0; bit < good.length * 8; bit++) {
        const bytes = good.slice();
        bytes[bit >> 3]! ^= 1 << (bit & 7);
        const disk = damaged(written, path, bytes);
        const { records, refusal } = await openAndRead(disk, segmentBytes);
        const where = `${path} bit ${bit}`;
        assertEquals(records, written.records.slice(0, records.length), where);
        if (path.endsWith(".log")) {
          // Every byte of a segment is covered by a checksum but the header's four reserved ones.
          const reserved = bit >> 3 >= 28 && bit >> 3 < HEADER_BYTES;
          assertEquals(refusal === null, reserved, where);
          if (refusal === null) continue;
          refused++;
          assertEquals(refusal.segment, Number(path.slice(-24, -4)), where);
          assert(refusal.position <= bit >> 3, where);
        } else assertEquals(refusal, null, where);
        if (refusal === null) assertEquals(records.length, written.records.length, where);
      }
    }
    assert(refused > 1000);
  });
}

Deno.test("the newest segment cut at every byte is read up to the last whole record", async () => {
  for (const base of [await write(300), await write(10_000)]) {
    for (const written of [base, withoutMark(base)]) {
      const good = written.disk.bytes(written.newest);
      for (let length = HEADER_BYTES; length < good.length; length++) {
        const disk = damaged(written, written.newest, good.slice(0, length));
        const { records, refusal } = await openAndRead(disk, 300);
        assertEquals(refusal, null);
        assertEquals(records, written.records.slice(0, records.length));
        const lost = written.records.slice(records.length);
        const bytes = lost.reduce((sum, { payload }) => sum + 28 + payload.length, 0);
        const left = good.length - bytes;
        assert(left <= length, `kept more than is there at ${length}`);
        const next = left + 28 + lost[0]!.payload.length;
        assert(next > length, `lost a whole record at ${length}`);
      }
    }
  }
});

Deno.test("zeroes from a sector in the last record on are an unfinished write", async () => {
  const disk = new SimulatedDisk();
  let store = await openStore(disk, 10_000);
  let log = await store.openLog("streams", KEY);
  await log.append([{ payload: new Uint8Array(100).fill(1) }]);
  await log.append([{ payload: new Uint8Array(3000).fill(2) }]);
  await store.close();
  const path = `${store.directoryOf("streams", KEY)}/00000000000000000000.log`;
  const good = disk.bytes(path);
  for (let from = 512; from < good.length; from += 512) {
    const copy = disk.afterCrash({ names: "kept", data: "kept" });
    copy.setBytes(path, good.slice().fill(0, from));
    store = await openStore(copy, 10_000);
    log = await store.openLog("streams", KEY);
    assertEquals([log.tail, log.recovery.cuts[0]!.cause], [1, "RecordChecksum"]);
  }
});

Deno.test("garbage behind the last record is cut where the mark ends", async () => {
  const written = await write(10_000);
  const good = written.disk.bytes(written.newest);
  for (const tail of [[1], [1, 2, 3], Array(27).fill(9), Array(28).fill(9), Array(500).fill(255)]) {
    const bytes = new Uint8Array([...good, ...tail]);
    const cut = await openAndRead(damaged(written, written.newest, bytes), 10_000);
    assertEquals(cut, { records: written.records, refusal: null });
    const { refusal } = await openAndRead(
      damaged(withoutMark(written), written.newest, bytes),
      10_000,
    );
    // Without a mark it could be a record that was synced and rotted.
    assertEquals(refusal === null, tail.length < 28);
  }
});

Deno.test("a segment missing in the middle is refused, a missing head is a trim", async () => {
  const written = await write(300);
  const segments = written.disk.paths().filter((path) => path.endsWith(".log"));
  assert(segments.length >= 4);
  const middle = written.disk.afterCrash({ names: "kept", data: "kept" });
  middle.unlink(segments[1]!);
  const { refusal } = await openAndRead(middle, 300);
  assertEquals([refusal!.kind, refusal!.segment, refusal!.position], ["OffsetOutOfOrder", 2, 0]);
  const head = written.disk.afterCrash({ names: "kept", data: "kept" });
  head.unlink(segments[0]!);
  const { records } = await openAndRead(head, 300);
  assertEquals(records, written.records.slice(written.records.length - records.length));
  assert(records.length > 0 && records.length < 10);
});

Deno.test("what would not open is known without opening it", async () => {
  const written = await write(10_000);
  const bytes = written.disk.bytes(written.newest);
  bytes[40]! ^= 1;
  const disk = damaged(written, written.newest, bytes);
  const store = await openStore(disk, 10_000);
  const before = disk.operations;
  const [refusal, ...others] = await store.verify();
  assertEquals(others, []);
  assertEquals(refusal!.directory, written.directory);
  assert(refusal!.error instanceof CorruptionError);
  assertEquals(disk.operations, before, "looking changes nothing");
});
