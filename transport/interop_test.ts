// The two engines against each other, and what each cannot do: the differences that the interface
// names, shown so that a change in an engine does not go unnoticed.

import { assert, assertEquals } from "@std/assert";
import { type Connection, nativeTransport, quicheTransport, type Transport } from "./mod.ts";
import { certificates } from "./test_support/certificates.ts";
import {
  acceptOne,
  bytesOf,
  connect,
  eachEngine,
  failureOf,
  listen,
  type Pair,
  pattern,
  readAll,
  readExactly,
  textOf,
  until,
} from "./test_support/pair.ts";

const alpn = ["felix/1"];

/**
 * One message from the server: a client that closes before the server's last word of the handshake
 * reached it closes in packets whose keys a quiche server has dropped, and is missed until the idle
 * timeout.
 */
async function greet(server: Connection, client: Connection): Promise<void> {
  const stream = await server.openUnidirectional();
  await stream.write(bytesOf("hello"));
  await stream.finish();
  assertEquals(textOf(await readAll((await client.acceptUnidirectional())!)), "hello");
}

function each(name: string, fn: (pair: Pair) => Promise<void>): void {
  const pairs: [Transport, Transport][] = [
    [nativeTransport, quicheTransport],
    [quicheTransport, nativeTransport],
  ];
  for (const [dialling, listening] of pairs) {
    Deno.test({
      name: `${dialling.name} to ${listening.name}: ${name}`,
      sanitizeOps: true,
      sanitizeResources: true,
      fn: async () => {
        const listener = await listen(listening, { alpn });
        const [server, client] = await Promise.all([
          acceptOne(listener),
          connect(dialling, listener.port, { alpn }),
        ]);
        await greet(server, client);
        await fn({ transport: dialling, listener, client, server });
        client.close(5, "over");
        const end = await server.closed;
        assertEquals({ ...end }, { by: "peer", applicationCode: 5, reason: "over" });
        await client.closed;
        await listener.close();
      },
    });
  }
}

each("bulk both ways", async ({ client, server }) => {
  const sent = pattern(1_000_000, 3);
  const near = await client.openBidirectional();
  const sending = near.write(sent).then(() => near.finish());
  const far = await server.acceptBidirectional();
  assert(far !== null);
  const received = await readAll(far);
  await sending;
  assert(received.every((byte, index) => byte === sent[index]));
  const answering = far.write(received).then(() => far.finish());
  assertEquals((await readAll(near)).byteLength, sent.byteLength);
  await answering;
});

each("cancel is seen by the writer", async ({ client, server }) => {
  const near = await client.openUnidirectional();
  await near.write(bytesOf("x"));
  const far = await server.acceptUnidirectional();
  assert(far !== null);
  await readExactly(far, 1);
  far.cancel();
  let code: string | undefined;
  await until(async () => {
    await near.write(bytesOf("more")).catch((error) => code = error.code);
    return code !== undefined;
  }, "the writer learns of the cancel");
  assertEquals(code, "stream_stopped");
});

each("a reset arrives as one if its engine can reset", async ({ client, server, transport }) => {
  const near = await client.openUnidirectional();
  await near.write(bytesOf("x"));
  const far = await server.acceptUnidirectional();
  assert(far !== null);
  await readExactly(far, 1);
  near.reset(9);
  if (!transport.canReset) return assertEquals(await far.read(new Uint8Array(8)), null);
  const failure = await failureOf(far.read(new Uint8Array(8)));
  assertEquals([failure.code, failure.applicationCode], ["stream_reset", 9]);
});

each("a stream finished late still ends", async ({ client, server }) => {
  // The end leaves apart from the bytes, with nothing and with something unacknowledged.
  for (let round = 0; round < 20; round++) {
    const near = await client.openUnidirectional();
    await near.write(bytesOf(`round ${round}`));
    const far = await server.acceptUnidirectional();
    assert(far !== null);
    await readExactly(far, `round ${round}`.length);
    const ending = near.finish();
    assertEquals(await far.read(new Uint8Array(8)), null);
    await ending;
  }
});

eachEngine("client certificates and resets are as `Transport` says", async (transport) => {
  if (transport.canVerifyClients) return;
  const failure = await failureOf(listen(transport, { clientCa: certificates.authority.cert }));
  assertEquals(failure.code, "unsupported");
});

Deno.test("native: a listener without ALPN refuses who offers one, and the reverse", async () => {
  for (const [offered, listed] of [[alpn, []], [[], alpn]]) {
    const listener = await listen(nativeTransport, { alpn: listed! });
    const accepting = listener.accept().then((incoming) => failureOf(incoming!.accept()));
    const failure = await failureOf(connect(nativeTransport, listener.port, { alpn: offered! }));
    assertEquals(failure.code, "handshake_failed");
    assertEquals((await accepting).code, "handshake_failed");
    await listener.close();
  }
});

Deno.test("quiche: a client that offers no ALPN cannot be served", async () => {
  const listener = await listen(quicheTransport);
  const accepting = listener.accept().then((incoming) => failureOf(incoming!.accept()));
  const failure = await failureOf(connect(nativeTransport, listener.port, { alpn: [] }));
  assertEquals(failure.code, "handshake_failed");
  assertEquals((await accepting).code, "handshake_failed");
  const incoming = acceptOne(listener);
  const client = await connect(nativeTransport, listener.port, { alpn }); // stands for "none" there
  const server = await incoming;
  await greet(server, client);
  client.close();
  await Promise.all([client.closed, server.closed]);
  await listener.close();
});
