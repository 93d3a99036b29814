// The bytes and rules of the generation history (spec/storage.md §5.2).

import { assertEquals } from "@std/assert";
import fc from "fast-check";
import { crc32 } from "./crc32.ts";
import {
  addEpoch,
  cutEpochs,
  decodeEpochs,
  encodeEpochs,
  type Epoch,
  MAX_EPOCHS,
  pruneEpochs,
} from "./epochs.ts";

const record = <T>(model: { [K in keyof T]: fc.Arbitrary<T[K]> }): fc.Arbitrary<T> =>
  fc.record(model, { noNullPrototype: true }) as fc.Arbitrary<T>;
const golden: Epoch[] = [{ generation: 1, start: 0 }, { generation: 3, start: 10 }];

const histories = fc.array(record({ generation: fc.nat(1e12), start: fc.nat(1e12) }), {
  maxLength: 30,
}).map((entries) => entries.reduce(addEpoch, [] as readonly Epoch[]));

Deno.test("a history has the reference bytes", () => {
  const bytes = encodeEpochs(golden);
  assertEquals(
    bytes.toHex(),
    "464c4550" + "0001" + "0002" + "65d91078" + "0000000000000001" + "0000000000000000" +
      "0000000000000003" + "000000000000000a",
  );
  assertEquals(decodeEpochs(bytes), golden);
});

Deno.test("a history comes back as it was written", () => {
  fc.assert(fc.property(histories, (history) => {
    assertEquals(decodeEpochs(encodeEpochs(history)), [...history]);
  }));
});

Deno.test("any changed, missing or added byte makes the history empty", () => {
  const good = encodeEpochs(golden);
  for (let length = 0; length < good.length; length++) {
    assertEquals(decodeEpochs(good.subarray(0, length)), []);
  }
  assertEquals(decodeEpochs(new Uint8Array([...good, 0])), []);
  for (let bit = 0; bit < good.length * 8; bit++) {
    const bytes = good.slice();
    bytes[bit >> 3]! ^= 1 << (bit & 7);
    assertEquals(decodeEpochs(bytes), [], `bit ${bit}`);
  }
});

Deno.test("a history that does not ascend, or counts past 2^53, reads as empty", () => {
  const crafted = (entries: readonly [bigint, bigint][]) => {
    const bytes = new Uint8Array(12 + 16 * entries.length);
    const view = new DataView(bytes.buffer);
    view.setUint32(0, 0x464C_4550);
    view.setUint16(4, 1);
    view.setUint16(6, entries.length);
    entries.flat().forEach((value, index) => view.setBigUint64(12 + 8 * index, value));
    view.setUint32(8, crc32(bytes, 12, bytes.length));
    return decodeEpochs(bytes);
  };
  assertEquals(crafted([[1n, 0n], [2n, 0n]]).length, 2);
  assertEquals(crafted([[2n, 0n], [2n, 1n]]), []);
  assertEquals(crafted([[1n, 5n], [2n, 4n]]), []);
  assertEquals(crafted([[1n, 2n ** 53n]]), []);
  assertEquals(crafted([[2n ** 53n, 0n]]), []);
});

Deno.test("any bytes are read as a history or none", () => {
  fc.assert(fc.property(fc.uint8Array({ maxLength: 80 }), (tail) => {
    decodeEpochs(tail);
    decodeEpochs(new Uint8Array([...encodeEpochs([]).subarray(0, 6), ...tail]));
  }));
});

Deno.test("a generation at or below the newest is not added", () => {
  const added = (generation: number, start: number) => addEpoch(golden, { generation, start });
  assertEquals(added(3, 20), golden);
  assertEquals(added(2, 20), golden);
  assertEquals(added(4, 9), golden);
  assertEquals(added(4, 10).at(-1), { generation: 4, start: 10 });
  assertEquals(golden.length, 2);
});

Deno.test("the newest 1024 generations are kept", () => {
  let history: readonly Epoch[] = [];
  for (let generation = 1; generation <= MAX_EPOCHS + 5; generation++) {
    history = addEpoch(history, { generation, start: generation });
  }
  assertEquals(history.length, MAX_EPOCHS);
  assertEquals(history[0], { generation: 6, start: 6 });
  const over = [{ generation: 1, start: 1 }, ...history];
  assertEquals(pruneEpochs(over, 0), history);
  assertEquals(decodeEpochs(encodeEpochs(over)), [...history]);
});

Deno.test("pruning drops the generations whose records are gone, and the newest never", () => {
  const history = [1, 2, 3].map((generation) => ({ generation, start: generation * 10 }));
  const left = (base: number) => pruneEpochs(history, base).map(({ generation }) => generation);
  assertEquals(left(0), [1, 2, 3]);
  assertEquals(left(19), [1, 2, 3]);
  assertEquals(left(20), [2, 3]);
  assertEquals(left(30), [3]);
  assertEquals(left(1000), [3]);
  assertEquals(pruneEpochs([], 5), []);
  assertEquals(cutEpochs(history, 20), history.slice(0, 1));
});
