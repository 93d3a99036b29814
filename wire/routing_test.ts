// Keys and shards against a plain BigInt reading of spec/wire.md §6.

import { assert, assertEquals } from "@std/assert";
import fc from "fast-check";
import { finalize, fnv1a64, shardForKey } from "./routing.ts";

const MASK = 2n ** 64n - 1n;

function referenceHash(key: Uint8Array): bigint {
  let hash = 0xcbf29ce484222325n;
  for (const byte of key) hash = ((hash ^ BigInt(byte)) * 0x100000001b3n) & MASK;
  return hash;
}

function referenceFinalize(value: bigint): bigint {
  let hash = value ^ (value >> 30n);
  hash = (hash * 0xbf58476d1ce4e5b9n) & MASK;
  hash ^= hash >> 27n;
  hash = (hash * 0x94d049bb133111ebn) & MASK;
  return hash ^ (hash >> 31n);
}

function referenceJump(value: bigint, shards: number): number {
  let key = value;
  let bucket = -1;
  let next = 0;
  while (next < shards) {
    bucket = next;
    key = (key * 2862933555777941757n + 1n) & MASK;
    next = Math.trunc((bucket + 1) * (2 ** 31 / (Number(key >> 33n) + 1)));
  }
  return bucket;
}

const keys = fc.oneof(fc.uint8Array({ maxLength: 40 }), fc.uint8Array({ maxLength: 300 }));
/** Widths, also around where the arithmetic changes. */
const widths = fc.oneof(
  fc.integer({ min: 2, max: 100 }),
  fc.integer({ min: 2, max: 0xffff_ffff }),
  fc.constantFrom(2, 2 ** 20 - 1, 2 ** 20, 2 ** 20 + 1, 2 ** 31, 2 ** 32 - 1),
);

Deno.test("hash and finalizer are those of the reference for any key", () => {
  fc.assert(
    fc.property(keys, (key) => {
      assertEquals(fnv1a64(key), referenceHash(key));
      assertEquals(finalize(fnv1a64(key)), referenceFinalize(referenceHash(key)));
    }),
    { numRuns: 1000 },
  );
  fc.assert(
    fc.property(fc.bigInt({ min: 0n, max: MASK }), (value) => {
      assertEquals(finalize(value), referenceFinalize(value));
    }),
    { numRuns: 2000 },
  );
});

Deno.test("shards are those of the reference for any key and width", () => {
  fc.assert(
    fc.property(keys, widths, (key, shards) => {
      const hash = referenceFinalize(referenceHash(key));
      assertEquals(shardForKey(key, shards), Number(hash % BigInt(shards)));
      assertEquals(shardForKey(key, shards, "modulo"), Number(hash % BigInt(shards)));
      assertEquals(shardForKey(key, shards, "jump_hash"), referenceJump(hash, shards));
    }),
    { numRuns: 2000 },
  );
});

Deno.test("no key, no width and one shard are shard 0; the empty key is a key", () => {
  const key = new TextEncoder().encode("customer-1");
  for (const mapping of ["modulo", "jump_hash"] as const) {
    assertEquals([shardForKey(null, 16, mapping), shardForKey(key, 0, mapping)], [0, 0]);
    assertEquals(shardForKey(key, 1, mapping), 0);
  }
  assertEquals(shardForKey(new Uint8Array(0), 4), 3);
});

Deno.test("growing by one shard moves few keys under jump hash, and only to the new shard", () => {
  let moved = 0;
  for (let count = 0; count < 2000; count++) {
    const key = new TextEncoder().encode(`key-${count}`);
    const before = shardForKey(key, 8, "jump_hash");
    const after = shardForKey(key, 9, "jump_hash");
    if (before === after) continue;
    assertEquals(after, 8);
    moved++;
  }
  assert(moved > 150 && moved < 300, `${moved} of 2000 moved`);
});
