// What an open log promises, on a real disk: appends, reads, rolls, cuts, retention, refusals
// (spec/storage.md §6-§12). What survives a crash is in tests/simulation.

import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { temporaryFolder } from "../../tests/support/temporary_folder.ts";
import { RealDisk } from "../disk/real_disk.ts";
import { RecordKind } from "../format/record.ts";
import type { LogRecord, NewRecord } from "../format/record.ts";
import {
  CorruptionError,
  OffsetMismatchError,
  StorageError,
  TrimmedError,
} from "../storage_error.ts";
import { EncodeBuffer } from "./encode_buffer.ts";
import { OpenSegments } from "./open_segments.ts";
import { countExpired } from "./retention.ts";
import { SegmentLog } from "./segment_log.ts";
import { DEFAULT_LOG_SETTINGS } from "./settings.ts";
import type { LogEnvironment, LogSettings } from "./settings.ts";
import { StorageCounters } from "./storage_counters.ts";

const text = (value: string) => new TextEncoder().encode(value);
const plain = (value: string): NewRecord => ({ payload: text(value) });
const texts = (records: LogRecord[]) =>
  records.map(({ payload }) => new TextDecoder().decode(payload));

function environment(settings: Partial<LogSettings> = {}): LogEnvironment & { now: number } {
  const disk = new RealDisk();
  const made = {
    disk,
    settings: { ...DEFAULT_LOG_SETTINGS, ...settings },
    now: 1_000,
    nowMicros: () => made.now,
    encodeBuffer: new EncodeBuffer(),
    openSegments: new OpenSegments(disk, 2),
    counters: new StorageCounters(),
  };
  return made;
}

/** Runs `body` with the directory of a log that does not exist yet. */
async function withFolder(body: (directory: string) => Promise<void>): Promise<void> {
  await using folder = await temporaryFolder();
  await body(`${folder.path}/log`);
}

async function everything(log: SegmentLog): Promise<LogRecord[]> {
  const records: LogRecord[] = [];
  for (let next = log.base; next < log.readable;) {
    const page = await log.read(next, { maxBytes: 64 });
    assert(page.next > next, "a page moves on");
    records.push(...page.records);
    next = page.next;
  }
  return records;
}

Deno.test("offsets are consecutive, and what is appended is read back after a reopen", async () => {
  await withFolder(async (directory) => {
    const shared = environment({ segmentBytes: 200, indexSpacingBytes: 64 });
    let log = await SegmentLog.open(shared, directory, "t/n/s/0");
    const written: string[] = [];
    for (let batch = 0; batch < 30; batch++) {
      const values = Array.from({ length: 1 + batch % 3 }, (_, at) => `${batch}.${at}`);
      shared.now++;
      const { first, next } = await log.append(values.map(plain));
      assertEquals(first, written.length);
      written.push(...values);
      assertEquals(next, written.length);
      assertEquals(log.durable, next);
    }
    assert(log.segments > 5);
    const before = await everything(log);
    assertEquals(texts(before), written);
    assert(shared.openSegments.size <= 2, "what is read is let go of again");
    await log.close();
    log = await SegmentLog.open(shared, directory, "t/n/s/0");
    assertEquals(await everything(log), before);
    assertEquals((await log.append([plain("more")])).first, written.length);
    assertEquals(shared.counters.recoveryIndexRebuilds, 0);
    await log.close();
  });
});

Deno.test("a batch is in one segment; one that outgrows a segment has one alone", async () => {
  await withFolder(async (directory) => {
    const log = await SegmentLog.open(environment({ segmentBytes: 128 }), directory, "l");
    await log.append([plain("a")]);
    await log.append([plain("x".repeat(100)), plain("y".repeat(100))]);
    await log.append([plain("b")]);
    assertEquals(log.segments, 3);
    assertEquals((await everything(log)).length, 4);
    await log.close();
  });
});

Deno.test("appends that wait for a roll keep their order", async () => {
  await withFolder(async (directory) => {
    const log = await SegmentLog.open(environment({ segmentBytes: 100 }), directory, "l");
    const values = Array.from({ length: 50 }, (_, at) => `value ${at}`);
    const staged = await Promise.all(values.map((value) => log.append([plain(value)])));
    assertEquals(staged.map(({ first }) => first), values.map((_, at) => at));
    assertEquals(texts(await everything(log)), values);
    await log.close();
  });
});

Deno.test("a read is bounded in bytes and records, but one record is always read", async () => {
  await withFolder(async (directory) => {
    const log = await SegmentLog.open(environment(), directory, "l");
    await log.append(["aaaa", "bbbb", "cccc", "dddd"].map(plain));
    assertEquals(texts((await log.read(1, { maxBytes: 1 })).records), ["bbbb"]);
    assertEquals(texts((await log.read(0, { maxBytes: 5 })).records), ["aaaa", "bbbb"]);
    assertEquals(texts((await log.read(0, { maxRecords: 3 })).records).length, 3);
    assertEquals(texts((await log.read(1, { until: 3 })).records), ["bbbb", "cccc"]);
    assertEquals(await log.read(4), { records: [], next: 4 });
    assertEquals(await log.read(9), { records: [], next: 9 });
    await log.close();
  });
});

Deno.test("kinds need their segment version: the log moves on to a newer segment", async () => {
  await withFolder(async (directory) => {
    const shared = environment();
    let log = await SegmentLog.open(shared, directory, "l");
    const commit = { payload: text("c"), kind: RecordKind.commit };
    const tag = { producerId: 2n ** 60n, sequence: 3n, length: 2 };
    await log.append([commit]);
    assertEquals(log.segments, 1);
    await log.append([
      { payload: text("first"), tag },
      { payload: text("second"), kind: RecordKind.batchContinuation },
    ]);
    await log.close();
    log = await SegmentLog.open(shared, directory, "l");
    const records = await everything(log);
    assertEquals(records.map(({ kind }) => kind), [
      RecordKind.commit,
      RecordKind.batchStart,
      RecordKind.batchContinuation,
    ]);
    assertEquals(records[1]!.tag, tag);
    await log.close();
  });
});

Deno.test("refusals change nothing", async () => {
  await withFolder(async (directory) => {
    const log = await SegmentLog.open(environment(), directory, "l");
    assertThrows(() => log.stage([]), StorageError, "no records");
    const huge = { length: 64 * 1024 * 1024 + 1 } as Uint8Array;
    const error = assertThrows(() => log.stage([plain("a"), { payload: huge }]), StorageError);
    assertEquals(error.code, "too_large");
    assertThrows(() => log.stage([plain("a")], 1), OffsetMismatchError);
    assertEquals(log.tail, 0);
    assertEquals((await log.append([plain("a")], 0)).first, 0);
    await log.close();
    await assertRejects(() => log.append([plain("b")]), StorageError, "closed");
    await assertRejects(() => log.read(0), StorageError, "closed");
    await log.close();
  });
});

Deno.test("settings out of range are refused by name", async () => {
  await withFolder(async (directory) => {
    const open = () => SegmentLog.open(environment({ segmentBytes: 59 }), directory, "l");
    await assertRejects(open, StorageError, "segmentBytes");
  });
});

Deno.test("trimming takes whole sealed segments from the head", async () => {
  await withFolder(async (directory) => {
    const shared = environment({ segmentBytes: 100 });
    let log = await SegmentLog.open(shared, directory, "l");
    for (let at = 0; at < 10; at++) await log.append([plain(`value number ${at}`)]);
    await log.trimBefore(5);
    const { base } = log;
    assert(base > 0 && base <= 5);
    const error = await assertRejects(() => log.read(0), TrimmedError);
    assertEquals([error.requested, error.oldest], [0, base]);
    assertEquals((await everything(log))[0]!.offset, base);
    await log.close();
    log = await SegmentLog.open(shared, directory, "l");
    assertEquals(log.base, base);
    await log.trimBefore(Infinity);
    assertEquals(log.segments, 1);
    await log.close();
  });
});

Deno.test("retention goes by bytes or age, oldest first, and leaves the active segment", () => {
  const sealed = [10, 20, 30].map((time) => ({ bytes: 100, newestTimestampMicros: time }));
  assertEquals(countExpired(sealed, 50, {}, 1e9), 0);
  assertEquals(countExpired(sealed, 50, { maxBytes: 350 }, 0), 0);
  assertEquals(countExpired(sealed, 50, { maxBytes: 349 }, 0), 1);
  assertEquals(countExpired(sealed, 50, { maxBytes: 1 }, 0), 3);
  assertEquals(countExpired(sealed, 50, { maxAgeMicros: 5 }, 15), 0);
  assertEquals(countExpired(sealed, 50, { maxAgeMicros: 5 }, 16), 1);
  assertEquals(countExpired(sealed, 50, { maxAgeMicros: 5 }, 99), 3);
  const unknown = [{ bytes: 100, newestTimestampMicros: 0 }];
  assertEquals(countExpired(unknown, 0, { maxAgeMicros: 5 }, 99), 0);
});

Deno.test("a truncation at any offset leaves exactly the records before it", async () => {
  for (let cut = 0; cut <= 10; cut++) {
    await withFolder(async (directory) => {
      const shared = environment({ segmentBytes: 100, indexSpacingBytes: 1 });
      let log = await SegmentLog.open(shared, directory, "l");
      for (let at = 0; at < 10; at++) await log.append([plain(`value ${at}`)]);
      await log.truncate(cut);
      const kept = Array.from({ length: cut }, (_, at) => `value ${at}`);
      assertEquals(texts(await everything(log)), kept);
      assertEquals((await log.append([plain("new")])).first, cut);
      await log.close();
      log = await SegmentLog.open(shared, directory, "l");
      assertEquals(texts(await everything(log)), [...kept, "new"]);
      await log.close();
    });
  }
});

Deno.test("a reset begins anew at another offset", async () => {
  await withFolder(async (directory) => {
    const shared = environment({ segmentBytes: 100 });
    let log = await SegmentLog.open(shared, directory, "l");
    for (let at = 0; at < 5; at++) await log.append([plain(`value ${at}`)]);
    await log.reset(100);
    assertEquals([log.base, log.tail, log.durable], [100, 100, 100]);
    await log.append([plain("hundred")]);
    await assertRejects(() => log.truncate(99), StorageError, "cannot cut");
    await log.close();
    log = await SegmentLog.open(shared, directory, "l");
    assertEquals((await everything(log)).map(({ offset }) => offset), [100]);
    await log.close();
  });
});

Deno.test("whatever happens to an index file, reads return the same", async () => {
  await withFolder(async (directory) => {
    const shared = environment({ segmentBytes: 300, indexSpacingBytes: 1 });
    let log = await SegmentLog.open(shared, directory, "l");
    for (let at = 0; at < 20; at++) await log.append([plain(`value ${at}`)]);
    const before = await everything(log);
    await log.close();
    const path = `${directory}/00000000000000000001.index`;
    const good = Deno.readFileSync(path);
    const garbled: Uint8Array[] = [new Uint8Array(0), good.subarray(0, good.length - 5)];
    for (let at = 0; at < good.length; at++) {
      const bytes = good.slice();
      bytes[at]! ^= 0x15;
      garbled.push(bytes);
    }
    for (const bytes of garbled) {
      Deno.writeFileSync(path, bytes);
      log = await SegmentLog.open(shared, directory, "l");
      assertEquals(await everything(log), before);
      for (const { offset } of before) {
        assertEquals((await log.read(offset, { maxBytes: 1 })).records[0], before[offset]);
      }
      await log.close();
    }
    Deno.removeSync(path);
    log = await SegmentLog.open(shared, directory, "l");
    assertEquals(await everything(log), before);
    assertEquals(Deno.readFileSync(path), good, "a rebuilt index has the same bytes");
    await log.close();
  });
});

Deno.test("a flipped byte in a sealed segment fails the read that meets it, by name", async () => {
  await withFolder(async (directory) => {
    const shared = environment({ segmentBytes: 300, indexSpacingBytes: 1 });
    let log = await SegmentLog.open(shared, directory, "t/n/s/0");
    for (let at = 0; at < 20; at++) await log.append([plain(`value ${at}`)]);
    await log.close();
    const path = `${directory}/00000000000000000000.log`;
    const bytes = Deno.readFileSync(path);
    bytes[32 + 28]! ^= 1;
    Deno.writeFileSync(path, bytes);
    log = await SegmentLog.open(shared, directory, "t/n/s/0");
    const error = await assertRejects(() => log.read(0), CorruptionError);
    assertEquals([error.kind, error.segment, error.position], ["RecordChecksum", 0, 32]);
    assertEquals((await log.read(1, { maxBytes: 1 })).records[0]!.offset, 1);
    await log.close();
    const careful = environment({ verifyAllOnOpen: true });
    await assertRejects(() => SegmentLog.open(careful, directory, "t/n/s/0"), CorruptionError);
  });
});

Deno.test("a change is heard by whoever asked before it", async () => {
  await withFolder(async (directory) => {
    const log = await SegmentLog.open(environment(), directory, "l");
    const change = log.nextChange();
    await log.append([plain("a")]);
    await change;
    const closed = log.nextChange();
    await log.close();
    await closed;
  });
});
