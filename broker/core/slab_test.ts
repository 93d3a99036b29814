// Slab memory is never handed out twice, and an idle shard stays small.

import { assert, assertEquals } from "@std/assert";
import fc from "fast-check";
import { Slab } from "./slab.ts";

Deno.test("views are zeroed, of the size asked for, and never overlap", () => {
  const sizes = fc.array(
    fc.oneof(fc.integer({ min: 1, max: 600 }), fc.integer({ min: 1, max: 80_000 })),
    { maxLength: 60, size: "max" },
  );
  fc.assert(fc.property(sizes, (wanted) => {
    const slab = new Slab();
    const views = wanted.map((bytes, at) => {
      const view = slab.allocate(bytes);
      assertEquals(view.length, bytes);
      assert(view.every((byte) => byte === 0));
      return view.fill(at + 1);
    });
    views.forEach((view, at) => assert(view.every((byte) => byte === at + 1)));
  }));
});

Deno.test("buffers grow from 4 KiB to 256 KiB; a body of 64 KiB has its own", () => {
  const slab = new Slab();
  const buffers = new Set<ArrayBuffer>();
  for (let at = 0; at < 1000; at++) buffers.add(slab.allocate(1024).buffer);
  const sizes = [...buffers].map((buffer) => buffer.byteLength / 1024);
  assertEquals(sizes.slice(0, 8), [4, 8, 16, 32, 64, 128, 256, 256]);
  assertEquals(slab.allocate(64 * 1024).buffer.byteLength, 64 * 1024);
  assertEquals(new Slab().allocate(20_000).buffer.byteLength, 32 * 1024);
});
