// What a log says of its idempotent producers is what its records say, whatever became of the file
// that spares reading them: the power goes after every operation of a log's life and again while it
// recovers, and the file is garbled in every way (spec/storage.md §5.4, §11).

import { assert, assertEquals } from "@std/assert";
import {
  CRASH_SHAPES,
  LogStore,
  type NewRecord,
  ProducerTable,
  RecordKind,
  type SegmentLog,
  SimulatedCrash,
  SimulatedDisk,
  StorageError,
} from "@felix/storage";
import { readAll } from "./history.ts";

const KEY = { tenant: "t", namespace: "n", name: "s", shard: 0 };

async function openStore(disk: SimulatedDisk, warnings: string[] = []): Promise<LogStore> {
  let now = 1;
  return await LogStore.open({
    disk,
    root: "/data",
    settings: { segmentBytes: 250, indexSpacingBytes: 60 },
    nowMicros: () => now++,
    owner: "test",
    warn: (what) => warnings.push(what),
  });
}

const openLog = async (disk: SimulatedDisk, warnings?: string[]): Promise<SegmentLog> =>
  await (await openStore(disk, warnings)).openLog("streams", KEY);

const bytes = (text: string) => new TextEncoder().encode(text);

/** Batch number `sequence` of a producer; of its records only the first `held`. */
function batch(producer: number, sequence: number, length: number, held = length): NewRecord[] {
  const tag = { producerId: BigInt(producer), sequence: BigInt(sequence), length };
  return Array.from({ length: held }, (_, at): NewRecord => {
    const payload = bytes(`${producer}.${sequence}.${at}`);
    return at === 0 ? { payload, tag } : { payload, kind: RecordKind.batchContinuation };
  });
}

const plain: NewRecord[] = [{ payload: bytes("plain") }];

type Step = (log: SegmentLog) => Promise<unknown>;
const append = (records: NewRecord[]): Step => (log) => log.append(records);

const SCENARIOS: Record<string, Step[]> = {
  "rolls": [
    append(plain),
    append(batch(1, 0, 2)),
    append(batch(2, 0, 1)),
    append(batch(1, 1, 2)),
    append(batch(2, 1, 3)),
    append(plain),
    (log) => Promise.all([2, 3, 4].map((sequence) => log.append(batch(1, sequence, 2)))),
    (log) => log.roll(),
    append(batch(2, 2, 1)),
  ],
  "half a batch at a roll": [
    append(batch(1, 0, 2)),
    append(batch(1, 1, 3, 1)),
    (log) => log.roll(),
    append(batch(1, 1, 3).slice(1)),
    append(batch(1, 2, 2, 1)),
    (log) => log.roll(),
    append(plain),
  ],
  "retention": [
    append(batch(1, 0, 3)),
    append(batch(2, 0, 3)),
    append(batch(2, 1, 3)),
    append(batch(2, 2, 3)),
    (log) => log.trimBefore(4),
    append(batch(2, 3, 3)),
    (log) => log.retain({ maxBytes: 300 }, 1000),
    append(batch(3, 0, 1)),
  ],
  "cuts": [
    append(batch(1, 0, 2)),
    append(batch(1, 1, 2)),
    append(batch(2, 0, 2)),
    append(batch(1, 2, 2)),
    (log) => log.truncate(7),
    append(batch(3, 0, 2)),
    append(batch(3, 1, 2)),
    (log) => log.truncate(3),
    append(batch(4, 0, 2)),
    append(batch(4, 1, 2)),
    append(batch(4, 2, 2)),
    (log) => log.reset(100),
    append(batch(5, 0, 2)),
  ],
};

/** Runs a scenario until its end or until the power goes. */
async function run(disk: SimulatedDisk, steps: Step[]): Promise<void> {
  try {
    const log = await openLog(disk);
    for (const step of steps) {
      await step(log);
      await check(log);
    }
    await log.close();
  } catch (error) {
    const went = error instanceof SimulatedCrash || error instanceof StorageError;
    assert(disk.crashed && went, String(error));
  }
}

/** Holds what is known to what the records lead to. */
async function check(log: SegmentLog): Promise<void> {
  const table = new ProducerTable();
  for (const record of await readAll(log)) table.observe(record.offset, record);
  assertEquals(log.producers!.snapshot(log.tail), table.snapshot(log.tail));
}

const everyByte = (disk: SimulatedDisk) =>
  disk.paths().map((path) => `${path} ${disk.bytes(path).toHex()}`);

async function checkRecovered(disk: SimulatedDisk): Promise<void> {
  const log = await openLog(disk);
  await check(log);
  const after = everyByte(disk);
  const again = disk.afterCrash({ names: "lost", data: "lost" });
  const reopened = await openLog(again);
  await check(reopened);
  assertEquals(everyByte(again), after, "a second opening changes nothing");
  await reopened.append(batch(9, 0, 2));
  await reopened.roll();
  await check(reopened);
}

for (const [name, steps] of Object.entries(SCENARIOS)) {
  Deno.test(`producers at crash points: ${name}`, async () => {
    const whole = new SimulatedDisk();
    await run(whole, steps);
    assert(!whole.crashed);
    for (let operations = 0; operations <= whole.operations; operations++) {
      const disk = new SimulatedDisk();
      disk.crashAfter(operations);
      await run(disk, steps);
      for (const shape of CRASH_SHAPES) {
        await checkRecovered(disk.afterCrash(shape));
        const probe = disk.afterCrash(shape);
        await openLog(probe);
        for (let more = 0; more < probe.operations; more++) {
          const recovering = disk.afterCrash(shape);
          recovering.crashAfter(more);
          await openLog(recovering).catch(() => {});
          assert(recovering.crashed);
          const second = CRASH_SHAPES[(operations + more) % CRASH_SHAPES.length]!;
          await checkRecovered(recovering.afterCrash(second));
        }
      }
    }
  });
}

Deno.test("a file of producers that does not verify is told of and made again", async () => {
  const disk = new SimulatedDisk();
  await run(disk, SCENARIOS["rolls"]!);
  const path = disk.paths().find((path) => path.endsWith("/producers"))!;
  const good = disk.bytes(path);
  for (let at = 0; at < good.length; at++) {
    // Two bytes say nothing.
    if (at === 6 || at === 7) continue;
    const damaged = disk.afterCrash({ names: "lost", data: "lost" });
    damaged.setBytes(path, good.with(at, good[at]! ^ 0x15));
    const warnings: string[] = [];
    await check(await openLog(damaged, warnings));
    if (at >= 8 && at < 16) continue;
    assertEquals([warnings.length, damaged.bytes(path)], [1, good], `byte ${at}`);
  }
});

Deno.test("the offset of the file is outside its checksum, and is not believed", async () => {
  const disk = new SimulatedDisk();
  await run(disk, SCENARIOS["rolls"]!);
  const path = disk.paths().find((path) => path.endsWith("/producers"))!;
  const good = disk.bytes(path);
  const { tail } = await openLog(disk.afterCrash({ names: "lost", data: "lost" }));
  for (let asOf = 0; asOf <= tail; asOf++) {
    const damaged = disk.afterCrash({ names: "lost", data: "lost" });
    damaged.setBytes(path, good.with(15, asOf));
    await check(await openLog(damaged));
    assertEquals(damaged.bytes(path), good, `as of ${asOf}`);
  }
});

Deno.test("a log without producers is opened without reading its sealed segments", async () => {
  const disk = new SimulatedDisk();
  const log = await openLog(disk);
  for (let at = 0; at < 40; at++) await log.append(plain);
  await log.close();
  assert(log.segments > 5);
  const store = await openStore(disk.afterCrash({ names: "lost", data: "lost" }));
  await store.openLog("streams", KEY);
  assertEquals([store.counters.readRecords, store.counters.producerStateRebuilds], [0, 0]);
});

Deno.test("a full disk costs the file of producers and nothing else", async () => {
  const disk = new SimulatedDisk();
  const store = await openStore(disk);
  const log = await store.openLog("streams", KEY);
  await log.append(batch(1, 0, 2));
  disk.fail({ operation: "rename", code: "full" });
  await log.roll();
  await log.append(batch(1, 1, 2));
  assertEquals(store.counters.producerWriteFailures, 1);
  await check(await openLog(disk.afterCrash({ names: "lost", data: "lost" })));
});
