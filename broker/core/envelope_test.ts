// Frames of an envelope are encoded once per shape; a tail begins at its record.

import { assertEquals, assertStrictEquals } from "@std/assert";
import { batchOf, newShard, streamIn, textsOf } from "./core_fixture.ts";
import { EnvelopeTail, HEADROOM_BYTES } from "./envelope.ts";
import type { Envelope } from "./envelope.ts";
import { recordsAt } from "./record_batch.ts";
import { StreamRegistry } from "./stream_registry.ts";

Deno.test("each shape is encoded at most once and then shared", () => {
  const encodeStats = { encodes: 0, shares: 0 };
  const shard = streamIn(new StreamRegistry({ encodeStats })).shards[0]!;
  const envelope = shard.append([batchOf("a")]);
  const shapes: string[] = [];
  const encoder = (from: Envelope, shape: string): Uint8Array => {
    shapes.push(shape);
    return from.storage.subarray(1);
  };
  const plain = envelope.frame("plain", encoder);
  assertStrictEquals(envelope.frame("plain", encoder), plain);
  const offsets = envelope.frame("offsets", encoder);
  assertStrictEquals(envelope.frame("offsets", encoder), offsets);
  assertStrictEquals(envelope.frame("plain", encoder), plain);
  assertEquals(shapes, ["plain", "offsets"]);
  assertEquals(encodeStats, { encodes: 2, shares: 3 });
});

Deno.test("B2: an envelope is headroom and the bodies of its claim, copied", () => {
  const first = batchOf("a", "bc");
  const envelope = newShard().append([first, batchOf("def")]);
  first.body.fill(0);
  assertEquals(envelope.storage.subarray(0, HEADROOM_BYTES), new Uint8Array(HEADROOM_BYTES));
  assertEquals(textsOf(envelope.storage, 3), ["a", "bc", "def"]);
  assertEquals([envelope.base, envelope.count, envelope.payloadBytes], [0, 3, 6]);
  assertStrictEquals(envelope.envelope, envelope);
  assertEquals([envelope.from, envelope.bodyStart], [0, HEADROOM_BYTES]);
});

Deno.test("a tail has the records from its index on", () => {
  const shard = newShard();
  shard.append([batchOf("x")]);
  const tail = new EnvelopeTail(shard.append([batchOf("a", "bc", "def")]), 1);
  assertEquals([tail.base, tail.from, tail.count, tail.payloadBytes], [2, 1, 2, 5]);
  const records = recordsAt(tail.envelope.storage, tail.bodyStart, tail.count);
  assertEquals(records.map((record) => record.length), [2, 3]);
});
