// Idempotent producers: the scenarios of spec/semantics.md §12, and that the state is a function of
// the log alone, however it is reached.

import { assertEquals, assertThrows } from "@std/assert";
import fc from "fast-check";
import {
  decodeProducerSnapshot,
  encodeProducerSnapshot,
  type ProducerSnapshot,
} from "../format/producer_snapshot.ts";
import { type NewRecord, RecordKind } from "../format/record.ts";
import { StorageError } from "../storage_error.ts";
import {
  type Admission,
  type OfferedBatch,
  PRODUCER_LIMITS,
  type ProducerLimits,
  ProducerTable,
} from "./producer_table.ts";

const text = (value: string) => new TextEncoder().encode(value);

/** The records of a batch, as they are written. */
function recordsOf({ producerId, sequence, payloads }: OfferedBatch): NewRecord[] {
  const tag = { producerId, sequence, length: payloads.length };
  return payloads.map((payload, index) =>
    index === 0 ? { payload, tag } : { payload, kind: RecordKind.batchContinuation }
  );
}

function offer(producerId: bigint, sequence: number, ...payloads: string[]): OfferedBatch {
  return { producerId, sequence: BigInt(sequence), payloads: payloads.map(text) };
}

/** A log in memory with its table, as a broker keeps them. */
class Shard {
  readonly log: NewRecord[] = [];
  table: ProducerTable;
  base = 0;

  constructor(readonly limits: ProducerLimits = PRODUCER_LIMITS) {
    this.table = new ProducerTable(limits);
  }

  get tail(): number {
    return this.log.length;
  }

  append(...records: NewRecord[]): void {
    for (const record of records) this.table.observe(this.log.push(record) - 1, record);
  }

  /** Admits and appends; `stopAfter` records the leader stops. */
  publish(batch: OfferedBatch, stopAfter = Infinity): Admission {
    const admission = this.table.admit(batch, this.tail);
    const from = admission.kind === "append"
      ? 0
      : admission.kind === "resume"
      ? admission.held
      : -1;
    if (from >= 0) this.append(...recordsOf(batch).slice(from, Math.max(from + 1, stopAfter)));
    return admission;
  }

  /** The state that the records from the base on lead to. */
  rebuilt(): ProducerTable {
    const table = new ProducerTable(this.limits);
    this.log.forEach((record, offset) => {
      if (offset >= this.base) table.observe(offset, record);
    });
    return table;
  }

  get state(): ProducerSnapshot {
    return this.table.snapshot(this.tail);
  }
}

Deno.test("ID1, ID7: a batch sent again is the first one, also after a restart", () => {
  const shard = new Shard();
  assertEquals(shard.publish(offer(1n, 0, "a", "b")), { kind: "append" });
  const duplicate: Admission = { kind: "duplicate", first: 0, length: 2 };
  assertEquals(shard.publish(offer(1n, 0, "a", "b")), duplicate);
  shard.table = shard.rebuilt();
  assertEquals(shard.publish(offer(1n, 0, "a", "b")), duplicate);
  assertEquals(shard.tail, 2);
});

Deno.test("ID2: a batch too far ahead is told what is next", () => {
  const shard = new Shard();
  shard.publish(offer(1n, 0, "a"));
  assertEquals(shard.publish(offer(1n, 2, "c")), { kind: "sequence_gap", expected: 1n });
  assertEquals(shard.tail, 1);
});

Deno.test("ID3: a new producer begins at 0", () => {
  const shard = new Shard();
  assertEquals(shard.publish(offer(1n, 3, "a")), { kind: "unknown_producer" });
  assertEquals(shard.tail, 0);
});

Deno.test("ID4: 64 batches are remembered", () => {
  const shard = new Shard();
  for (let sequence = 0; sequence <= 70; sequence++) shard.publish(offer(1n, sequence, "a"));
  assertEquals(shard.publish(offer(1n, 0, "a")), { kind: "sequence_expired" });
  assertEquals(shard.publish(offer(1n, 6, "a")), { kind: "sequence_expired" });
  assertEquals(shard.publish(offer(1n, 7, "a")), { kind: "duplicate", first: 7, length: 1 });
  assertEquals(shard.publish(offer(1n, 10, "a")), { kind: "duplicate", first: 10, length: 1 });
  assertEquals(shard.tail, 71);
});

Deno.test("ID5: a sequence used for other payloads is seen", () => {
  const shard = new Shard();
  shard.publish(offer(1n, 0, "a", "b"));
  const reused: Admission = { kind: "sequence_reused", first: 0, length: 2, held: 2 };
  assertEquals(shard.publish(offer(1n, 0, "a", "c")), reused);
  assertEquals(shard.publish(offer(1n, 0, "a")), reused);
  assertEquals(shard.publish(offer(1n, 0, "ab", "")), reused);
  assertEquals(shard.tail, 2);
});

Deno.test("ID8: a producer of whose batches none is retained is unknown", () => {
  const shard = new Shard();
  shard.publish(offer(1n, 0, "a", "b"));
  shard.publish(offer(1n, 1, "c"));
  shard.table.forgetBelow(2);
  assertEquals(shard.publish(offer(1n, 0, "a", "b")), { kind: "sequence_expired" });
  assertEquals(shard.publish(offer(1n, 1, "c")), { kind: "duplicate", first: 2, length: 1 });
  shard.table.forgetBelow(3);
  assertEquals(shard.table.isEmpty, true);
  assertEquals(shard.publish(offer(1n, 2, "d")), { kind: "unknown_producer" });
});

Deno.test("ID9: of 4097 producers the one whose newest batch is oldest is forgotten", () => {
  const shard = new Shard();
  for (let id = 1n; id <= 4096n; id++) shard.publish(offer(id, 0, "a"));
  shard.publish(offer(1n, 1, "b"));
  shard.publish(offer(4097n, 0, "a"));
  assertEquals(shard.table.size, 4096);
  assertEquals(shard.publish(offer(2n, 1, "b")), { kind: "unknown_producer" });
  assertEquals(shard.publish(offer(1n, 1, "b")), { kind: "duplicate", first: 4096, length: 1 });
  assertEquals(shard.publish(offer(3n, 1, "b")), { kind: "append" });
});

Deno.test("ID10: of a batch half in the log the missing part is appended", () => {
  const shard = new Shard();
  shard.append({ payload: text("before") });
  shard.publish(offer(1n, 0, "a", "b", "c"), 2);
  shard.table = shard.rebuilt();
  assertEquals(shard.publish(offer(1n, 1, "d")), { kind: "unknown_producer" });
  assertEquals(shard.publish(offer(1n, 0, "a", "b", "c")), { kind: "resume", first: 1, held: 2 });
  assertEquals(shard.tail, 4);
  const duplicate: Admission = { kind: "duplicate", first: 1, length: 3 };
  assertEquals(shard.publish(offer(1n, 0, "a", "b", "c")), duplicate);
});

Deno.test("a batch half in the log that begins otherwise is other payloads", () => {
  const shard = new Shard();
  shard.publish(offer(1n, 0, "a", "b", "c"), 2);
  const reused: Admission = { kind: "sequence_reused", first: 0, length: 3, held: 2 };
  assertEquals(shard.publish(offer(1n, 0, "a", "x", "c")), reused);
  assertEquals(shard.publish(offer(1n, 0, "a", "b")), reused);
  assertEquals(shard.publish(offer(1n, 0, "a", "b", "x")).kind, "resume");
});

Deno.test("a batch half in the log that something follows is not held", () => {
  const followers: NewRecord[] = [
    { payload: text("plain") },
    { payload: text("generation"), kind: RecordKind.generationStart },
    ...recordsOf(offer(2n, 0, "other")),
  ];
  for (const follower of followers) {
    const shard = new Shard();
    shard.publish(offer(1n, 0, "a", "b", "c"), 2);
    shard.append(follower);
    assertEquals(shard.publish(offer(1n, 0, "a", "b", "c")), { kind: "append" });
    const duplicate: Admission = { kind: "duplicate", first: 3, length: 3 };
    assertEquals(shard.publish(offer(1n, 0, "a", "b", "c")), duplicate);
  }
});

Deno.test("records without a mark need not be fed", () => {
  const table = new ProducerTable();
  const [first, second] = recordsOf(offer(1n, 0, "a", "b"));
  table.observe(5, first!);
  assertEquals(table.openBatch(6)?.held, 1);
  assertEquals(table.openBatch(7), null);
  table.observe(7, second!);
  assertEquals(table.isEmpty, true);
});

Deno.test("without a digest nothing is held against a batch", () => {
  const shard = new Shard();
  shard.publish(offer(1n, 0, "a"));
  shard.publish(offer(2n, 0, "b", "c"), 1);
  const { asOf, open, producers: [producer] } = shard.state;
  shard.table = ProducerTable.restore({
    asOf,
    open: { ...open!, digest: null },
    producers: [{ ...producer!, batches: [{ first: 0, length: 1, digest: null }] }],
  });
  assertEquals(shard.publish(offer(1n, 0, "x")), { kind: "duplicate", first: 0, length: 1 });
  assertEquals(shard.publish(offer(1n, 0, "x", "y")).kind, "sequence_reused");
  assertEquals(shard.publish(offer(2n, 0, "x", "c")), { kind: "resume", first: 1, held: 1 });
  assertEquals(shard.state.producers[1]!.batches, [{ first: 1, length: 2, digest: null }]);
});

Deno.test("a batch without records is refused", () => {
  assertThrows(() => new ProducerTable().admit(offer(1n, 0), 0), StorageError);
});

/** Every answer there is: random histories have to lead to all of them. */
const allKinds: Admission["kind"][] = [
  "append",
  "duplicate",
  "resume",
  "sequence_expired",
  "sequence_gap",
  "sequence_reused",
  "unknown_producer",
];

interface Publish {
  readonly producer: number;
  /** Distance from the sequence that is next. */
  readonly ahead: number;
  readonly payloads: readonly Uint8Array[];
  /** Records after which the leader stops. */
  readonly stopAfter: number;
  /** Sent once more at once, as by a client that had no answer. */
  readonly again: boolean;
}
type Step = Publish | "plain" | "generation" | "retention" | "restart" | "snapshot";

const publishes: fc.Arbitrary<Publish> = fc.record({
  producer: fc.nat(5),
  ahead: fc.oneof({ weight: 6, arbitrary: fc.constant(0) }, fc.integer({ min: -6, max: 1 })),
  payloads: fc.array(fc.uint8Array({ maxLength: 2 }), { minLength: 1, maxLength: 4 }),
  stopAfter: fc.oneof({ weight: 2, arbitrary: fc.constant(9) }, fc.integer({ min: 1, max: 3 })),
  again: fc.boolean(),
});
const histories: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof<fc.WeightedArbitrary<Step>[]>(
    { weight: 12, arbitrary: publishes },
    {
      weight: 3,
      arbitrary: fc.constantFrom<Step[]>(
        "plain",
        "generation",
        "retention",
        "restart",
        "snapshot",
      ),
    },
  ),
  { maxLength: 120, size: "max" },
);

/** Offsets at which a segment may begin: not inside a batch. */
function cuts(log: readonly NewRecord[]): number[] {
  return [...log.keys()].filter((at) => log[at]!.kind !== RecordKind.batchContinuation);
}

Deno.test("the state is a function of the retained records, however it was reached", () => {
  const seen = new Set<string>();
  fc.assert(
    fc.property(histories, (history) => {
      const shard = new Shard({ producers: 4, batches: 3 });
      let snapshot: Uint8Array | null = null;
      for (const step of history) {
        if (step === "plain") shard.append({ payload: text("p") });
        else if (step === "generation") {
          shard.append({ payload: text("g"), kind: RecordKind.generationStart });
        } else if (step === "retention") {
          const places = cuts(shard.log).filter((at) => at >= shard.base);
          shard.base = places[places.length >> 1] ?? shard.base;
          shard.table.forgetBelow(shard.base);
        } else if (step === "restart") shard.table = shard.rebuilt();
        else if (step === "snapshot") snapshot = encodeProducerSnapshot(shard.state);
        else {
          const { producer, ahead, payloads, stopAfter, again } = step;
          const producerId = BigInt(producer);
          const known = shard.state.producers.find((state) => state.producerId === producerId);
          const sequence = Math.max(0, Number((known?.lastSequence ?? -1n) + 1n) + ahead);
          const batch = { producerId, sequence: BigInt(sequence), payloads };
          seen.add(shard.publish(batch, stopAfter).kind);
          if (again) seen.add(shard.publish(batch, stopAfter).kind);
        }
        assertEquals(shard.rebuilt().snapshot(shard.tail), shard.state);
      }
      if (snapshot === null) return;
      const restored = ProducerTable.restore(decodeProducerSnapshot(snapshot)!, shard.limits);
      shard.log.forEach((record, offset) => restored.observe(offset, record));
      restored.forgetBelow(shard.base);
      assertEquals(restored.snapshot(shard.tail), shard.state);
    }),
    { numRuns: 300 },
  );
  assertEquals([...seen].sort(), allKinds);
});

/** What is to be done with a batch, read off the whole log; no producer was ever forgotten. */
function admissionByLog(log: readonly NewRecord[], batch: OfferedBatch, limit: number): Admission {
  const starts = [...log.keys()].filter((at) => log[at]!.tag?.producerId === batch.producerId);
  const found = starts.map((first) => {
    const { sequence, length } = log[first]!.tag!;
    let held = 1;
    while (held < length && log[first + held]?.kind === RecordKind.batchContinuation) held++;
    const payloads = log.slice(first, first + held).map(({ payload }) => payload);
    const same = length === batch.payloads.length &&
      payloads.every((payload, index) => payload.toHex() === batch.payloads[index]!.toHex());
    return { sequence, first, length, held, same };
  });
  const newest = found.at(-1);
  if (newest !== undefined && newest.sequence === batch.sequence) {
    const { first, length, held, same } = newest;
    if (held < length && first + held === log.length) {
      return same
        ? { kind: "resume", first, held }
        : { kind: "sequence_reused", first, length, held };
    }
  }
  const whole = found.filter(({ held, length }) => held === length);
  if (batch.sequence === BigInt(whole.length)) return { kind: "append" };
  if (whole.length === 0) return { kind: "unknown_producer" };
  if (batch.sequence > whole.length) {
    return { kind: "sequence_gap", expected: BigInt(whole.length) };
  }
  const match = whole.slice(-limit).find(({ sequence }) => sequence === batch.sequence);
  if (match === undefined) return { kind: "sequence_expired" };
  const { first, length, held, same } = match;
  return same
    ? { kind: "duplicate", first, length }
    : { kind: "sequence_reused", first, length, held };
}

Deno.test("every answer is the one that the whole log gives", () => {
  const seen = new Set<string>();
  const steps = fc.array(
    fc.oneof({ weight: 9, arbitrary: publishes }, fc.constant("plain" as const)),
    { maxLength: 80, size: "max" },
  );
  fc.assert(
    fc.property(steps, (history) => {
      const shard = new Shard({ producers: 10, batches: 3 });
      const next = new Map<number, number>();
      for (const step of history) {
        if (step === "plain") {
          shard.append({ payload: text("p") });
          continue;
        }
        const { producer, ahead, payloads, stopAfter, again } = step;
        const producerId = BigInt(producer);
        const sequence = Math.max(0, (next.get(producer) ?? 0) + ahead);
        const batch = { producerId, sequence: BigInt(sequence), payloads };
        for (let sent = 0; sent < (again ? 2 : 1); sent++) {
          const expected = admissionByLog(shard.log, batch, 3);
          assertEquals(shard.publish(batch, stopAfter), expected);
          seen.add(expected.kind);
        }
        const known = shard.state.producers.find((state) => state.producerId === producerId);
        next.set(producer, Number((known?.lastSequence ?? -1n) + 1n));
      }
    }),
    { numRuns: 300 },
  );
  assertEquals([...seen].sort(), allKinds);
});
