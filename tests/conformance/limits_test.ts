// Limits of a connection seen from outside (spec/wire.md §1.2, §1.6 and the last row of §10): who
// is let in, and that a client which does not read its answers is not read either.

import { nativeTransport, TransportError } from "@felix/transport";
import { assert, assertEquals, assertRejects } from "@std/assert";
import { sleep } from "../support/poll.ts";
import { DevBroker } from "../support/servers.ts";
import { concat, json } from "./frames.ts";
import { RawConnection } from "./raw_client.ts";

const MEBIBYTE = 1024 * 1024;

async function dial(broker: DevBroker, alpn: readonly string[]): Promise<void> {
  const connection = await nativeTransport.connect({
    hostname: "127.0.0.1",
    port: broker.port,
    serverName: "localhost",
    caCerts: [broker.ca],
    alpn,
  });
  connection.close();
  await connection.closed;
}

Deno.test({
  name: "the listener takes clients without ALPN, or exactly felix/1 when it requires one",
  sanitizeOps: true,
  sanitizeResources: true,
  fn: async () => {
    await using plain = await DevBroker.start();
    await dial(plain, []);
    await using strict = await DevBroker.start({ env: { FELIX_TLS_REQUIRE_ALPN: "true" } });
    await dial(strict, ["felix/1"]);
    await assertRejects(() => dial(strict, []), TransportError);
    await assertRejects(() => dial(strict, ["felix-internal/1"]), TransportError);
  },
});

Deno.test({
  name: "connections beyond the limit are refused, and let in when others have gone",
  sanitizeOps: true,
  sanitizeResources: true,
  fn: async () => {
    await using broker = await DevBroker.start({ env: { FELIX_MAX_CLIENT_CONNECTIONS: "2" } });
    await using first = await RawConnection.connect(broker);
    await first.assertServes();
    {
      await using second = await RawConnection.connect(broker);
      await second.assertServes();
      await assertRejects(() => RawConnection.connect(broker), TransportError);
      await first.assertServes();
    }
    const deadline = performance.now() + 20_000;
    for (;;) {
      try {
        await using third = await RawConnection.connect(broker);
        await third.assertServes();
        break;
      } catch (error) {
        assert(error instanceof TransportError && performance.now() < deadline, String(error));
        await sleep(50);
      }
    }
    assert(await broker.metric("felix_quic_connections_refused_total") > 0);
  },
});

Deno.test({
  name: "a client that does not read its answers is not read either, and loses none",
  sanitizeOps: true,
  sanitizeResources: true,
  fn: async () => {
    await using broker = await DevBroker.start();
    await using connection = await RawConnection.connect(broker);
    const scope = { tenant_id: "t1", namespace: "default", cache: "sessions", key: "large" };
    const stream = await connection.stream();
    const value = "A".repeat(64 * 1024);
    const stored = await stream.ask({ type: "cache_put", ...scope, value, request_id: 0 });
    assertEquals(stored["type"], "cache_ok");
    const before = await broker.residentBytes();
    const count = 2000;
    const requests = Array.from(
      { length: count },
      (_, index) => json({ type: "cache_get", ...scope, request_id: index + 1 }),
    );
    let sent = 0;
    const sending = (async () => {
      for (; sent < count; sent += 10) {
        await stream.send(concat(...requests.slice(sent, sent + 10)));
      }
    })();
    await sleep(1500);
    const grown = await broker.residentBytes() - before;
    assert(grown < 64 * MEBIBYTE, `${Math.round(grown / MEBIBYTE)} MiB of unread answers`);
    await connection.assertServes();
    for (let index = 1; index <= count; index++) {
      const answer = await stream.message();
      assertEquals([answer["request_id"], answer["value"]], [index, value]);
    }
    await sending;
    await stream.finish();
  },
});
