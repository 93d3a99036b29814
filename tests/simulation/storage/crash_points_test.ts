// The power goes after every single operation of a log's life, in every shape of what may be left,
// and again after every operation of the recovery that follows. Nothing acknowledged is lost,
// nothing is invented, and a second opening changes nothing (storage/README.md S3, S4, S5).

import { assert, assertEquals } from "@std/assert";
import {
  CRASH_SHAPES,
  type LogSettings,
  LogStore,
  type NewRecord,
  RecordKind,
  type SegmentLog,
  SimulatedCrash,
  SimulatedDisk,
  StorageError,
} from "@felix/storage";
import { History, readAll } from "./history.ts";

const KEY = { tenant: "t", namespace: "n", name: "s", shard: 0 };
const SETTINGS: Partial<LogSettings> = { segmentBytes: 160, indexSpacingBytes: 60 };

async function openStore(disk: SimulatedDisk): Promise<LogStore> {
  let now = 1;
  return await LogStore.open({
    disk,
    root: "/data",
    settings: SETTINGS,
    nowMicros: () => now++,
    owner: "test",
  });
}

const openLog = async (disk: SimulatedDisk): Promise<SegmentLog> =>
  await (await openStore(disk)).openLog("streams", KEY);

type Step = (log: SegmentLog, history: History) => Promise<void>;

const record = (text: string, kind: NewRecord["kind"]): NewRecord => ({
  payload: new TextEncoder().encode(text),
  ...(kind === undefined ? {} : { kind }),
});

function append(texts: string[], kind?: NewRecord["kind"]): Step {
  return async (log, history) => {
    history.attempt(texts);
    const { next } = await log.append(texts.map((text) => record(text, kind)));
    history.acknowledge(next);
  };
}

/** Several appends at once: one flush may serve many, a roll may stand between them. */
function appendTogether(texts: string[]): Step {
  return async (log, history) => {
    history.attempt(texts);
    await Promise.all(texts.map(async (text) => {
      const { next } = await log.append([record(text, undefined)]);
      history.acknowledge(next);
    }));
  };
}

function truncate(offset: number): Step {
  return async (log, history) => {
    history.cut(offset);
    await log.truncate(offset);
    history.cutDone();
  };
}

function reset(base: number): Step {
  return async (log, history) => {
    history.cut(0, base);
    await log.reset(base);
    history.cutDone();
    history.acknowledge(base);
  };
}

function trim(offset: number): Step {
  return async (log, history) => {
    history.trim(offset);
    await log.trimBefore(offset);
  };
}

const retain: Step = async (log, history) => {
  history.trim(log.tail);
  await log.retain({ maxBytes: 200 }, 1000);
};

const roll: Step = async (log) => {
  await log.roll();
};

const words = (from: number, count: number) =>
  Array.from({ length: count }, (_, at) => `record ${from + at}`);

const SCENARIOS: Record<string, Step[]> = {
  append: [append(["a"]), append(["b", "c"]), append(["d"]), appendTogether(["e", "f", "g"])],
  roll: [
    append(words(0, 3)),
    append(words(3, 3)),
    append(words(6, 1)),
    roll,
    roll,
    append(words(7, 2)),
    append(["x".repeat(400)]),
    appendTogether(words(10, 12)),
  ],
  "versions": [
    append(["plain"]),
    append(["generation"], RecordKind.generationStart),
    append(["commit"], RecordKind.commit),
    append(["plain again"]),
  ],
  truncate: [
    append(words(0, 3)),
    append(words(3, 3)),
    append(words(6, 3)),
    truncate(7),
    append(["other"]),
    truncate(4),
    append(words(20, 5)),
    truncate(3),
    append(["at the edge of a segment"]),
    truncate(0),
    append(["from nothing"]),
  ],
  "reset": [append(words(0, 4)), append(words(4, 4)), reset(100), append(["a hundred"])],
  retention: [
    append(words(0, 4)),
    append(words(4, 4)),
    append(words(8, 4)),
    trim(5),
    append(words(12, 4)),
    append(words(16, 4)),
    retain,
    append(["after"]),
  ],
};

/** Runs a scenario until its end or until the power goes. */
async function run(disk: SimulatedDisk, steps: Step[], history: History): Promise<void> {
  try {
    const log = await openLog(disk);
    for (const step of steps) await step(log, history);
    await log.close();
  } catch (error) {
    assert(disk.crashed, String(error));
    assert(error instanceof SimulatedCrash || error instanceof StorageError, String(error));
  }
}

const everyByte = (disk: SimulatedDisk) =>
  disk.paths().map((path) => `${path} ${disk.bytes(path).toHex()}`);

/** Opens what a crash left, holds it to the history, opens it again, and goes on writing. */
async function checkRecovered(disk: SimulatedDisk, history: History): Promise<void> {
  let log = await openLog(disk);
  const records = await readAll(log);
  history.check(log.base, records);
  const after = everyByte(disk);
  log = await openLog(disk.afterCrash({ names: "kept", data: "kept" }));
  assertEquals(await readAll(log), records);
  const again = disk.afterCrash({ names: "lost", data: "lost" });
  log = await openLog(again);
  assertEquals(await readAll(log), records, "what was recovered is durable");
  assertEquals(everyByte(again), after, "a second opening changes nothing");
  const { first } = await log.append([record("new", undefined)]);
  assertEquals(first, log.base + records.length);
  assertEquals((await readAll(log)).length, records.length + 1);
}

for (const [name, steps] of Object.entries(SCENARIOS)) {
  Deno.test(`crash points: ${name}`, async () => {
    const whole = new SimulatedDisk();
    await run(whole, steps, new History());
    assert(!whole.crashed);
    let states = 0;
    for (let operations = 0; operations <= whole.operations; operations++) {
      const history = new History();
      const disk = new SimulatedDisk();
      disk.crashAfter(operations);
      await run(disk, steps, history);
      for (const shape of CRASH_SHAPES) {
        await checkRecovered(disk.afterCrash(shape), history);
        states++;
        // The power goes again while the log recovers.
        const probe = disk.afterCrash(shape);
        await openLog(probe);
        for (let more = 0; more < probe.operations; more++) {
          const recovering = disk.afterCrash(shape);
          recovering.crashAfter(more);
          await openLog(recovering).catch(() => {});
          assert(recovering.crashed);
          const second = CRASH_SHAPES[(operations + more) % CRASH_SHAPES.length]!;
          await checkRecovered(recovering.afterCrash(second), history);
          states++;
        }
      }
    }
    const visited = `${name}: ${whole.operations} operations, ${states} states\n`;
    Deno.stdout.writeSync(new TextEncoder().encode(visited));
  });
}
