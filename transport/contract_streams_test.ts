// The contract of streams, held by both engines: bytes both ways, half close, cancel, reset, many
// streams in a row, and the limits on how many there may be.

import { assert, assertEquals, assertLess } from "@std/assert";
import type { ByteStream, Connection } from "./mod.ts";
import {
  bytesOf,
  eachEngine,
  failureOf,
  pattern,
  pause,
  readAll,
  readExactly,
  textOf,
  until,
  withPair,
} from "./test_support/pair.ts";

/** Answers every stream in both directions with what it said, until the connection ends. */
async function echo(connection: Connection): Promise<void> {
  for (;;) {
    const stream = await connection.acceptBidirectional();
    if (stream === null) return;
    await stream.write(await readAll(stream));
    await stream.finish();
  }
}

async function opened(from: Connection, to: Connection): Promise<[ByteStream, ByteStream]> {
  const near = await from.openBidirectional();
  await near.write(bytesOf("."));
  const far = await to.acceptBidirectional();
  assert(far !== null);
  assertEquals(textOf(await readExactly(far, 1)), ".");
  return [near, far];
}

eachEngine(
  "streams in both directions carry bytes from either side",
  (transport) =>
    withPair(transport, async ({ client, server }) => {
      for (const [from, to] of [[client, server], [server, client]] as const) {
        const near = await from.openBidirectional();
        await near.write(bytesOf("ask "));
        await near.write(bytesOf("twice"));
        await near.finish();
        const far = await to.acceptBidirectional();
        assert(far !== null);
        assertEquals(textOf(await readAll(far)), "ask twice");
        await far.write(bytesOf("answer"));
        await far.finish();
        assertEquals(textOf(await readAll(near)), "answer");
        assertEquals(await near.read(new Uint8Array(1)), null, "an end stays an end");
      }
    }),
);

eachEngine(
  "one-way streams carry bytes from either side",
  (transport) =>
    withPair(transport, async ({ client, server }) => {
      for (const [from, to] of [[client, server], [server, client]] as const) {
        const near = await from.openUnidirectional();
        await near.write(bytesOf("one way"));
        await near.finish();
        const far = await to.acceptUnidirectional();
        assert(far !== null);
        assertEquals(textOf(await readAll(far)), "one way");
      }
    }),
);

eachEngine(
  "a read returns a view of the memory it was given",
  (transport) =>
    withPair(transport, async ({ client, server }) => {
      const [near, far] = await opened(client, server);
      let memory = new Uint8Array(1024);
      for (let round = 0; round < 3; round++) {
        await near.write(pattern(100, round));
        const view = await far.read(memory.subarray(24, 24 + 100));
        assert(view !== null);
        assertEquals(view.byteOffset, 24);
        assertEquals(view.buffer.byteLength, 1024);
        assertEquals(view.slice(), pattern(100, round));
        memory = new Uint8Array(view.buffer);
      }
      await Promise.all([near.finish(), far.finish()]);
    }),
);

eachEngine(
  "one half ends while the other goes on",
  (transport) =>
    withPair(transport, async ({ client, server }) => {
      const [near, far] = await opened(client, server);
      await near.finish();
      assertEquals(await far.read(new Uint8Array(8)), null);
      for (let round = 0; round < 5; round++) {
        await far.write(bytesOf(`late ${round} `));
        await pause(2);
      }
      await far.finish();
      assertEquals(textOf(await readAll(near)), "late 0 late 1 late 2 late 3 late 4 ");
      assertEquals((await failureOf(near.write(bytesOf("x")))).code, "stream_closed");
      await near.finish(); // again: nothing happens
    }),
);

eachEngine(
  "a stream that is opened and ended without a byte arrives as an end",
  (transport) =>
    withPair(transport, async ({ client, server }) => {
      const near = await client.openBidirectional();
      await near.finish();
      const far = await server.acceptBidirectional();
      assert(far !== null);
      assertEquals(await far.read(new Uint8Array(8)), null);
      await far.finish();
      assertEquals(await near.read(new Uint8Array(8)), null);
    }),
);

eachEngine(
  "cancel reaches the writer as stream_stopped",
  (transport) =>
    withPair(transport, async ({ client, server }) => {
      const [near, far] = await opened(client, server);
      far.cancel();
      assertEquals((await failureOf(far.read(new Uint8Array(8)))).code, "stream_closed");
      let code: string | undefined;
      await until(async () => {
        await near.write(bytesOf("more")).catch((error) => code = error.code);
        return code !== undefined;
      }, "the writer learns of the cancel");
      assertEquals(code, "stream_stopped");
      assertEquals((await failureOf(near.write(bytesOf("x")))).code, "stream_stopped");
      // The other half is not concerned.
      await far.write(bytesOf("still here"));
      await far.finish();
      assertEquals(textOf(await readAll(near)), "still here");
    }),
);

eachEngine(
  "cancel ends a waiting read, and the writer learns of it",
  (transport) =>
    withPair(transport, async ({ client, server }) => {
      const [near, far] = await opened(client, server);
      const waiting = failureOf(far.read(new Uint8Array(8)));
      far.cancel();
      far.cancel();
      assertEquals((await waiting).code, "stream_closed");
      let code: string | undefined;
      await until(async () => {
        await near.write(bytesOf("more")).catch((error) => code = error.code);
        return code !== undefined;
      }, "the writer learns of the cancel");
      assertEquals(code, "stream_stopped");
    }),
);

eachEngine(
  "reset ends the stream: as a reset where the engine can, else as an end",
  (transport) =>
    withPair(transport, async ({ client, server }) => {
      const [near, far] = await opened(client, server);
      near.reset(42);
      near.reset(43);
      assertEquals((await failureOf(near.write(bytesOf("x")))).code, "stream_closed");
      if (transport.canReset) {
        const failure = await failureOf(far.read(new Uint8Array(8)));
        assertEquals(failure.code, "stream_reset");
        assertEquals(failure.applicationCode, 42);
      } else {
        assertEquals(await far.read(new Uint8Array(8)), null);
      }
      await far.write(bytesOf("the other half goes on"));
      await far.finish();
      assertEquals(textOf(await readAll(near)), "the other half goes on");
    }),
);

eachEngine(
  "a thousand streams one after the other leak no credit",
  (transport) =>
    withPair(transport, async ({ client, server }) => {
      const serving = echo(server);
      for (let round = 0; round < 1000; round++) {
        const stream = await client.openBidirectional();
        await stream.write(bytesOf(`round ${round}`));
        await stream.finish();
        assertEquals(textOf(await readAll(stream, 64)), `round ${round}`);
      }
      client.close();
      await serving;
    }, { server: { maxBidirectionalStreams: 16 } }),
);

eachEngine(
  "cancelled and reset streams give their credit back",
  (transport) =>
    withPair(transport, async ({ client, server }) => {
      for (let round = 0; round < 40; round++) {
        const near = await client.openBidirectional();
        await near.write(bytesOf("x"));
        const far = await server.acceptBidirectional();
        assert(far !== null);
        await far.write(bytesOf("bye"));
        // What a server does that refuses a request: answer, end, and drop what else may come.
        await far.finish();
        far.cancel();
        assertEquals(textOf(await readAll(near)), "bye");
        if (round % 2 === 0) await near.finish();
        else near.reset(1);
      }
    }, { server: { maxBidirectionalStreams: 8 } }),
);

eachEngine(
  "one more stream than the peer allows waits for one to end",
  (transport) =>
    withPair(transport, async ({ client, server }) => {
      const held: [ByteStream, ByteStream][] = [];
      for (let index = 0; index < 3; index++) held.push(await opened(client, server));
      let late: ByteStream | null = null;
      const opening = client.openBidirectional().then((stream) => late = stream);
      await pause(200);
      assertEquals(late, null, "a fourth stream must wait");
      const [near, far] = held[0]!;
      await near.finish();
      assertEquals(await far.read(new Uint8Array(8)), null);
      await far.finish();
      assertEquals(await near.read(new Uint8Array(8)), null);
      const stream = await opening;
      await stream.write(bytesOf("let in"));
      await stream.finish();
      const accepted = await server.acceptBidirectional();
      assert(accepted !== null);
      assertEquals(textOf(await readAll(accepted)), "let in");
    }, { server: { maxBidirectionalStreams: 3 } }),
);

eachEngine(
  "one-way streams have a limit of their own",
  (transport) =>
    withPair(transport, async ({ client, server }) => {
      for (let index = 0; index < 2; index++) {
        await (await server.openUnidirectional()).write(bytesOf(`${index}`));
      }
      let late = false;
      const opening = server.openUnidirectional().then(async (stream) => {
        late = true;
        await stream.write(bytesOf("2"));
        await stream.finish();
      });
      await pause(200);
      assert(!late, "a third one-way stream must wait");
      await server.openBidirectional(); // the other kind is not concerned
      const first = await client.acceptUnidirectional();
      assert(first !== null);
      assertEquals(textOf(await readExactly(first, 1)), "0");
      client.close();
      assertEquals((await failureOf(opening)).code, "connection_closed");
    }, { client: { maxUnidirectionalStreams: 2 } }),
);

eachEngine(
  "transfers of many sizes arrive byte for byte",
  (transport) =>
    withPair(transport, async ({ client, server }) => {
      const serving = echo(server);
      for (const size of [1, 1200, 65_536, 65_537, 262_144, 1_048_576]) {
        const sent = pattern(size, size);
        const stream = await client.openBidirectional();
        await Promise.all([stream.write(sent), stream.finish()]);
        const received = await readAll(stream);
        assertEquals(received.byteLength, size);
        assert(received.every((byte, index) => byte === sent[index]), `content of ${size} bytes`);
      }
      client.close();
      await serving;
    }),
);

eachEngine(
  "many streams at once do not mix",
  (transport) =>
    withPair(transport, async ({ client, server }) => {
      const serving = (async () => {
        for (;;) {
          const stream = await server.acceptBidirectional();
          if (stream === null) return;
          void readAll(stream).then(async (bytes) => {
            await stream.write(bytes);
            await stream.finish();
          });
        }
      })();
      await Promise.all(Array.from({ length: 50 }, async (_, index) => {
        const sent = pattern(20_000 + index, index);
        const stream = await client.openBidirectional();
        await stream.write(sent);
        await stream.finish();
        assertEquals(await readAll(stream), sent);
      }));
      client.close();
      await serving;
    }),
);

eachEngine(
  "a reader that pauses stops its writer, and loses nothing",
  (transport) =>
    withPair(transport, async ({ client, server }) => {
      const chunk = pattern(65_536, 7);
      const total = 48 * 1024 * 1024;
      const [near, far] = await opened(client, server);
      let written = 0;
      const writing = (async () => {
        for (; written < total; written += chunk.byteLength) await near.write(chunk);
        await near.finish();
      })();
      let last = -1;
      await until(async () => {
        const before = last;
        last = written;
        await pause(400);
        return before === written;
      }, "the writer stalls");
      // Windows of the receiver and what the sender may hold: nothing near the whole.
      assertLess(written, 16 * 1024 * 1024);
      let received = 0;
      let buffer = new Uint8Array(65_536);
      for (;;) {
        const view = await far.read(buffer);
        if (view === null) break;
        for (let at = 0; at < view.byteLength; at += 997) {
          assertEquals(view[at], chunk[(received + at) % chunk.byteLength], "content");
        }
        received += view.byteLength;
        buffer = new Uint8Array(view.buffer);
      }
      assertEquals(received, total);
      await writing;
    }, {
      server: { connectionWindowBytes: 2 * 1024 * 1024, streamWindowBytes: 1024 * 1024 },
    }),
);
