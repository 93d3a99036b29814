// The contract of connections and listeners, held by both engines: how they end, who is let in, and
// what each failure is called.

import { assert, assertEquals, assertGreater, assertLess, assertMatch } from "@std/assert";
import type { Connection, Listener } from "./mod.ts";
import { certificates } from "./test_support/certificates.ts";
import {
  acceptOne,
  bytesOf,
  connect,
  eachEngine,
  failureOf,
  listen,
  pause,
  readExactly,
  textOf,
  withPair,
} from "./test_support/pair.ts";
import { udpRelay } from "./test_support/udp_relay.ts";

/** A port of loopback on which nothing answers, held so that nobody else takes it. */
async function withSilentPort(fn: (port: number) => Promise<void>): Promise<void> {
  const socket = Deno.listenDatagram({ transport: "udp", hostname: "127.0.0.1", port: 0 });
  try {
    await fn((socket.addr as Deno.NetAddr).port);
  } finally {
    socket.close();
  }
}

/** Accepts whatever comes, forgiving those that fail, until the listener stops. */
async function acceptAll(listener: Listener): Promise<Connection[]> {
  const accepted: Connection[] = [];
  for (;;) {
    const incoming = await listener.accept();
    if (incoming === null) return accepted;
    await incoming.accept().then((connection) => accepted.push(connection), () => {});
  }
}

eachEngine("close carries its code and reason to the other side", async (transport) => {
  for (const closer of ["client", "server"] as const) {
    await withPair(transport, async ({ client, server }) => {
      const [near, far] = closer === "client" ? [client, server] : [server, client];
      const waiting = [far.acceptBidirectional(), far.acceptUnidirectional()];
      near.close(7, "enough for today");
      near.close(8, "ignored");
      const expected = { applicationCode: 7, reason: "enough for today" };
      assertEquals({ ...await far.closed }, { by: "peer", ...expected });
      assertEquals({ ...await near.closed }, { by: "local", ...expected });
      assertEquals(await Promise.all(waiting), [null, null]);
      assertEquals(await far.acceptBidirectional(), null);
      assertEquals(await near.acceptUnidirectional(), null);
    });
  }
});

eachEngine(
  "the end of a connection ends its streams with connection_closed",
  (transport) =>
    withPair(transport, async ({ client, server }) => {
      const near = await client.openBidirectional();
      await near.write(bytesOf("x"));
      const far = await server.acceptBidirectional();
      assert(far !== null);
      await readExactly(far, 1);
      const failures = [
        failureOf(near.read(new Uint8Array(8))),
        failureOf(far.read(new Uint8Array(8))),
      ];
      server.close(3, "done");
      for (const failure of await Promise.all(failures)) {
        assertEquals(failure.code, "connection_closed");
        assertEquals(failure.applicationCode, 3);
      }
      await client.closed;
      for (const connection of [client, server]) {
        assertEquals((await failureOf(connection.openBidirectional())).code, "connection_closed");
        assertEquals((await failureOf(connection.openUnidirectional())).code, "connection_closed");
      }
      assertEquals((await failureOf(near.write(bytesOf("y")))).code, "connection_closed");
      assertEquals((await failureOf(far.write(bytesOf("y")))).code, "connection_closed");
      near.cancel();
      far.reset(0);
    }),
);

eachEngine("closing the listener closes its connections with the given code", async (transport) => {
  const listener = await listen(transport);
  const [server, client] = await Promise.all([
    acceptOne(listener),
    connect(transport, listener.port),
  ]);
  const accepting = listener.accept();
  await Promise.all([listener.close(0, "broker shutting down"), listener.close(1, "ignored")]);
  assertEquals(await accepting, null);
  assertEquals(await listener.accept(), null);
  const reason = "broker shutting down";
  assertEquals({ ...await client.closed }, { by: "peer", applicationCode: 0, reason });
  assertEquals({ ...await server.closed }, { by: "local", applicationCode: 0, reason });
});

eachEngine(
  "a listener that stopped accepting keeps its connections",
  (transport) =>
    withPair(transport, async ({ client, server, listener }) => {
      const accepting = listener.accept();
      listener.stopAccepting();
      listener.stopAccepting();
      assertEquals(await accepting, null);
      assertEquals(await listener.accept(), null);
      const refused = await failureOf(
        connect(transport, listener.port, { handshakeTimeoutMs: 400 }),
      );
      assertMatch(refused.code, /^(timeout|handshake_failed)$/);
      const near = await client.openBidirectional();
      await near.write(bytesOf("still here"));
      const far = await server.acceptBidirectional();
      assert(far !== null);
      assertEquals(textOf(await readExactly(far, 10)), "still here");
    }),
);

eachEngine("a refused connection fails at once, the next one may come in", async (transport) => {
  const listener = await listen(transport);
  const refusing = listener.accept().then((incoming) => {
    incoming?.refuse();
    incoming?.refuse();
  });
  const failure = await failureOf(connect(transport, listener.port));
  await refusing;
  assertEquals(failure.code, "handshake_failed");
  const [server, client] = await Promise.all([
    acceptOne(listener),
    connect(transport, listener.port),
  ]);
  client.close();
  await Promise.all([client.closed, server.closed]);
  await listener.close();
});

eachEngine("the server's certificate is verified", async (transport) => {
  const listener = await listen(transport);
  const accepting = acceptAll(listener);
  const { authority, otherAuthority } = certificates;
  const cases = [
    { serverName: "elsewhere.example", caCerts: [authority.cert] },
    { serverName: "10.1.2.3", caCerts: [authority.cert] },
    { serverName: "localhost", caCerts: [otherAuthority.cert] },
    { serverName: "localhost", caCerts: [] },
  ];
  for (const options of cases) {
    const failure = await failureOf(connect(transport, listener.port, options));
    assertEquals(failure.code, "handshake_failed", JSON.stringify(options.serverName));
  }
  for (const serverName of ["localhost", "127.0.0.1"]) {
    const client = await connect(transport, listener.port, { serverName });
    assertMatch(client.remoteAddress, /^127\.0\.0\.1:\d+$/);
    client.close();
    await client.closed;
  }
  await listener.close();
  const accepted = await accepting;
  await Promise.all(accepted.map((connection) => connection.closed));
});

eachEngine("a name is dialled and is what the certificate is checked for", async (transport) => {
  const listener = await listen(transport);
  const accepting = acceptAll(listener);
  const client = await transport.connect({
    hostname: "localhost",
    port: listener.port,
    caCerts: [certificates.authority.cert],
  });
  client.close();
  await client.closed;
  const failure = await failureOf(
    transport.connect({ hostname: "no-such-host.invalid", port: listener.port }),
  );
  assertEquals(failure.code, "dial_failed");
  await listener.close();
  await accepting;
});

eachEngine(
  "a handshake that nobody answers times out, or is given up",
  (transport) =>
    withSilentPort(async (port) => {
      const started = performance.now();
      const late = await failureOf(connect(transport, port, { handshakeTimeoutMs: 200 }));
      assertEquals(late.code, "timeout");
      assertGreater(performance.now() - started, 150);
      const controller = new AbortController();
      const dialing = failureOf(connect(transport, port, { signal: controller.signal }));
      await pause(50);
      controller.abort();
      assertEquals((await dialing).code, "dial_failed");
      const before = await failureOf(connect(transport, port, { signal: AbortSignal.abort() }));
      assertEquals(before.code, "dial_failed");
    }),
);

eachEngine("ALPN ids must meet", async (transport) => {
  const alpn = ["felix-internal/1"];
  await withPair(transport, async () => {}, { server: { alpn }, client: { alpn } });
  const listener = await listen(transport, { alpn });
  const accepting = acceptAll(listener);
  const options = { alpn: ["felix/2"] };
  assertEquals(
    (await failureOf(connect(transport, listener.port, options))).code,
    "handshake_failed",
  );
  await listener.close();
  await accepting;
});

eachEngine("a listener needs a certificate, its key, and a free port", async (transport) => {
  const { server, authority } = certificates;
  for (
    const pair of [
      { cert: "no certificate", key: server.key },
      { cert: server.cert, key: "no key" },
      { cert: server.cert, key: authority.key },
    ]
  ) {
    assertEquals((await failureOf(listen(transport, pair))).code, "bad_certificate");
  }
  const listener = await listen(transport);
  assertEquals(listener.address, `127.0.0.1:${listener.port}`);
  const taken = await failureOf(listen(transport, { port: listener.port }));
  assertEquals(taken.code, "bind_failed");
  await listener.close();
});

eachEngine("a peer that falls silent is lost, on both sides", async (transport) => {
  const listener = await listen(transport, { idleTimeoutMs: 1000, keepAliveMs: 200 });
  const relay = await udpRelay(listener.port);
  const accepting = acceptOne(listener);
  const client = await connect(transport, relay.port, { idleTimeoutMs: 1000, keepAliveMs: 200 });
  const server = await accepting;
  const stream = await client.openBidirectional();
  await stream.write(bytesOf("x"));
  const far = await server.acceptBidirectional();
  assert(far !== null);
  await readExactly(far, 1);
  await pause(1500); // idle, and kept alive
  await far.write(bytesOf("y"));
  assertEquals(textOf(await readExactly(stream, 1)), "y");
  const reading = failureOf(stream.read(new Uint8Array(8)));
  relay.silence();
  assertEquals((await client.closed).by, "lost");
  assertEquals((await server.closed).by, "lost");
  assertEquals((await reading).code, "connection_lost");
  assertEquals((await failureOf(far.write(bytesOf("z")))).code, "connection_lost");
  assertEquals((await failureOf(client.openBidirectional())).code, "connection_lost");
  await listener.close();
  await relay.close();
});

eachEngine("by default a dead peer is noticed after six seconds of silence", async (transport) => {
  const listener = await listen(transport);
  const relay = await udpRelay(listener.port);
  const accepting = acceptOne(listener);
  const client = await connect(transport, relay.port);
  const server = await accepting;
  relay.silence();
  const started = performance.now();
  assertEquals((await client.closed).by, "lost");
  assertEquals((await server.closed).by, "lost");
  const tookMs = performance.now() - started;
  assertGreater(tookMs, 3000);
  assertLess(tookMs, 12_000); // six seconds, one keep-alive, and a busy machine
  await listener.close();
  await relay.close();
});
