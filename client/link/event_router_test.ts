// The router of one connection with hand-made streams: both orders, bounds in number and time, and
// what happens to halves when the connection ends (spec/client.md §7.1).

import { assert, assertEquals, assertRejects } from "@std/assert";
import { ByteWriter, encodeMessage } from "@felix/wire";
import type { Message } from "@felix/wire";
import type { ReceiveStream } from "@felix/transport";
import { ConnectionError } from "../failure/classes.ts";
import { EventRouter } from "./event_router.ts";

class HandMadeStream implements ReceiveStream {
  cancelled = false;
  readonly #bytes: Uint8Array | null;
  #give: (() => void) | null = null;

  constructor(bytes: Uint8Array | null) {
    this.#bytes = bytes;
  }

  read(into: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer> | null> {
    const bytes = this.#bytes;
    if (bytes === null) return new Promise((resolve) => this.#give = () => resolve(null));
    into.set(bytes);
    return Promise.resolve(into.subarray(0, bytes.length));
  }

  cancel(): void {
    this.cancelled = true;
    this.#give?.();
  }
}

function saying(message: Message): HandMadeStream {
  const out = new ByteWriter();
  encodeMessage(message, out);
  return new HandMadeStream(out.take());
}

function hello(id: bigint): HandMadeStream {
  return saying({ type: "event_stream_hello", subscription_id: id });
}

function router(maxPending = 10): { router: EventRouter; dropped: string[] } {
  const dropped: string[] = [];
  const made = new EventRouter({
    broker: "h:1",
    maxFrameBytes: 65536,
    maxPending,
    dropped: (reason) => dropped.push(reason),
  });
  return { router: made, dropped };
}

Deno.test("hello first or subscriber first, each gets its own", async () => {
  const { router: events } = router();
  const [one, two] = [hello(1n), hello(2n)];
  await events.accept(one);
  const waiting = events.wait(2n);
  assertEquals(events.pending, 2);
  await events.accept(two);
  assertEquals((await waiting).stream, two);
  assertEquals((await events.wait(1n)).stream, one);
  assertEquals(events.pending, 0);
});

Deno.test("a stream that does not greet, or greets wrongly, is given up", async () => {
  const { router: events, dropped } = router();
  const wrong = saying({ type: "ok" });
  await events.accept(wrong);
  const first = hello(7n);
  const again = hello(7n);
  await events.accept(first);
  await events.accept(again);
  assert(wrong.cancelled && again.cancelled && !first.cancelled);
  assertEquals(dropped.length, 2);
});

Deno.test("what waits is bounded in number", async () => {
  const { router: events, dropped } = router(3);
  const streams = [1n, 2n, 3n, 4n].map(hello);
  for (const stream of streams) await events.accept(stream);
  assertEquals(streams.map(({ cancelled }) => cancelled), [false, false, false, true]);
  assertEquals([events.pending, dropped.length], [3, 1]);
});

Deno.test("what waits is bounded in time, a silent stream as well", async () => {
  const { router: events, dropped } = router();
  const matched = hello(1n);
  const silent = new HandMadeStream(null);
  await events.accept(matched);
  const greeting = events.accept(silent);
  events.sweep(performance.now() + 29_000);
  assertEquals(events.pending, 2);
  events.sweep(performance.now() + 31_000);
  await greeting;
  assert(matched.cancelled && silent.cancelled);
  assertEquals([events.pending, dropped.length], [0, 2]);
});

Deno.test("one that nobody waits for any more is cancelled", async () => {
  const { router: events } = router();
  const stream = hello(1n);
  await events.accept(stream);
  events.forget(1n);
  assert(stream.cancelled);
  void events.wait(2n);
  events.forget(2n);
  assertEquals(events.pending, 0);
});

Deno.test("the end of the connection ends both halves", async () => {
  const { router: events } = router();
  const stream = hello(1n);
  await events.accept(stream);
  const waiting = events.wait(2n);
  events.close();
  assert(stream.cancelled);
  await assertRejects(() => waiting, ConnectionError);
  await assertRejects(() => events.wait(3n), ConnectionError);
  const late = hello(4n);
  await events.accept(late);
  assert(late.cancelled);
});
