// Connecting: order of addresses, terminal errors, validation, tokens, TLS (spec/client.md §3, §14,
// §23 traps 1 to 3 and 13).

import { assert, assertEquals, assertInstanceOf, assertRejects, assertThrows } from "@std/assert";
import { connect } from "./client.ts";
import { AuthError, ConnectionError, InvalidArgumentError } from "./failure/classes.ts";
import type { ConnectOptions } from "./options.ts";
import { refreshingToken } from "./token/refreshing_token.ts";
import { connectTo, networkTest, until } from "./testing/fixture.ts";
import { ScriptedBroker, testCertificates } from "./testing/scripted_broker.ts";

/** An address where nobody answers and the port is closed. */
async function deadAddress(): Promise<string> {
  const broker = await ScriptedBroker.start();
  const { address } = broker;
  await broker.stop();
  return address;
}

networkTest("one connection, one authenticated stream, at once", async () => {
  await using broker = await ScriptedBroker.start();
  await using client = await connectTo(broker, { tenant: "acme" });
  assertEquals(broker.connections.length, 1);
  assertEquals(broker.auths.map((auth) => [auth.tenant_id, auth.token]), [["acme", "a-token"]]);
  assertEquals(client.tenant, "acme");
  assertEquals(client.endpoints(), [broker.address]);
  const [connection] = client.connections();
  assertEquals(connection?.broker, broker.address);
  assertEquals(connection?.state, "open");
  assert(client.supports("cacheDelete"));
  assert(!client.supports("topology"));
});

networkTest("a dead first address does not keep it from the second", async () => {
  await using broker = await ScriptedBroker.start();
  const dead = await deadAddress();
  await using client = await connectTo(broker, {
    addresses: `${dead},${broker.address}`,
    dialTimeoutMs: 300,
  });
  assertEquals((await client.stream("orders").publish("x")).broker, broker.address);
  assertEquals(client.endpoints(), [dead, broker.address]);
});

networkTest("nobody there: ConnectionError after the policy's attempts", async () => {
  const dead = await deadAddress();
  const { ca } = await testCertificates();
  let failures = 0;
  const error = await assertRejects(() =>
    connect({
      addresses: dead,
      tenant: "t1",
      token: "x",
      tls: { caCerts: [ca] },
      dialTimeoutMs: 150,
      reconnect: { attempts: 2, backoffMs: 1 },
      hooks: { onRetry: () => failures++ },
    }), ConnectionError);
  assertEquals(error.code, "connection");
  assertEquals(error.phase, "dial");
  assert(error.retryable);
  assertEquals(failures, 1);
});

networkTest("a refused token is terminal: one auth, no retry", async () => {
  let auths = 0;
  await using broker = await ScriptedBroker.start({
    auth(stream) {
      auths++;
      stream.refuse("unauthenticated", "fatal", "auth failed");
      stream.finish();
      return true;
    },
  });
  const error = await assertRejects(() => connectTo(broker), AuthError);
  assertEquals(error.code, "unauthenticated");
  assertEquals(auths, 1);
  assert(!error.message.includes("a-token"));
});

networkTest("a refused token is replaced once, on the same connection", async () => {
  await using broker = await ScriptedBroker.start({
    auth(stream, { token }) {
      if (token !== "old") return false;
      stream.refuse("unauthenticated", "fatal", "auth failed");
      stream.finish();
      return true;
    },
  });
  const token = refreshingToken({ initial: "old", fetch: () => Promise.resolve("new") });
  await using client = await connectTo(broker, { token });
  assertEquals(broker.connections.length, 1);
  assertEquals(broker.auths.map((auth) => auth.token), ["new"]);
  assert(!client.closed);
});

networkTest("a token refused in mid-life is replaced once for a new stream", async () => {
  let valid = "one";
  await using broker = await ScriptedBroker.start({
    auth(stream, { token }) {
      if (token === valid) return false;
      stream.refuse("unauthenticated", "fatal", "auth failed");
      stream.finish();
      return true;
    },
  });
  let calls = 0;
  const refreshed: unknown[] = [];
  await using client = await connectTo(broker, {
    token: () => {
      calls++;
      return Promise.resolve(valid);
    },
    hooks: { onTokenRefresh: (info) => refreshed.push(info) },
  });
  await client.stream("orders").publish("x");
  valid = "two";
  await using subscription = await client.stream("orders").subscribe();
  assert(!subscription.closed);
  assertEquals(calls, 2);
  assertEquals(refreshed.length, 2);
  assertEquals(client.metrics().tokenRefreshes, 2n);
});

networkTest("a plain `ok` is a broker without features", async () => {
  await using broker = await ScriptedBroker.start({
    auth(stream) {
      stream.send({ type: "ok" });
      return true;
    },
  });
  await using client = await connectTo(broker);
  assert(!client.supports("errorCodes"));
  assertEquals((await client.stream("orders").publish("x")).offset, 0n);
  await assertRejects(() => client.cache("sessions").delete("k"));
});

networkTest("what answers auth with nonsense is no broker", async () => {
  await using broker = await ScriptedBroker.start({
    auth(stream) {
      stream.raw(new TextEncoder().encode("HTTP/1.1 400 Bad Request\r\n\r\n"));
      return true;
    },
  });
  const error = await assertRejects(() => connectTo(broker, { reconnect: { attempts: 1 } }));
  assertEquals((error as { code?: string }).code, "protocol");
});

networkTest("an auth that is never answered ends with the dial's time", async () => {
  await using broker = await ScriptedBroker.start({ auth: () => true });
  const options: Partial<ConnectOptions> = { dialTimeoutMs: 200, reconnect: { attempts: 1 } };
  const error = await assertRejects(() => connectTo(broker, options), ConnectionError);
  assertEquals(error.phase, "auth");
});

networkTest("connect can be given up", async () => {
  await using broker = await ScriptedBroker.start({ auth: () => true });
  const abort = new AbortController();
  const reason = new Error("not today");
  const connecting = connectTo(broker, { signal: abort.signal });
  await until(() => broker.connections.length > 0);
  abort.abort(reason);
  assertEquals(await assertRejects(() => connecting), reason);
});

networkTest("ALPN is offered only when asked for", async () => {
  await using plain = await ScriptedBroker.start();
  await using strict = await ScriptedBroker.start({}, { alpn: ["felix/1"] });
  const once: Partial<ConnectOptions> = { reconnect: { attempts: 1 }, dialTimeoutMs: 1000 };
  const refused = await assertRejects(() => connectTo(strict, once), ConnectionError);
  assertInstanceOf(refused, ConnectionError);
  const { ca } = await testCertificates();
  const tls = { offerAlpn: true, caCerts: [ca] };
  await using client = await connectTo(strict, { tls });
  assert(!client.closed);
  await assertRejects(() => connectTo(plain, { ...once, tls }), ConnectionError);
});

networkTest("an unknown certificate authority is refused", async () => {
  await using broker = await ScriptedBroker.start();
  const once: Partial<ConnectOptions> = { reconnect: { attempts: 1 }, tls: {} };
  const error = await assertRejects(() => connectTo(broker, once), ConnectionError);
  assertEquals(error.phase, "handshake");
});

networkTest("several client ports are used in turn", async () => {
  const other = await ScriptedBroker.start();
  await using _other = other;
  await using broker = await ScriptedBroker.start({}, { listenerPorts: [other.port] });
  other.advertised.listenerPorts = [broker.port];
  await using client = await connectTo(broker);
  await client.cache("sessions").put("k", "v");
  await using _subscription = await client.stream("orders").subscribe();
  assertEquals(broker.connections.length + other.connections.length, 3);
  assert(other.connections.length > 0);
});

networkTest("eager pools are there at once", async () => {
  await using broker = await ScriptedBroker.start();
  await using client = await connectTo(broker, { pools: { eager: true } });
  const roles = client.connections().map(({ role }) => role).sort();
  assertEquals(roles, ["cache", "event", "publish"]);
});

networkTest("a shared topology has one connection for everything", async () => {
  await using broker = await ScriptedBroker.start();
  await using client = await connectTo(broker, { pools: { topology: "shared" } });
  await client.stream("orders").publish("x");
  await client.cache("sessions").put("k", "v");
  await using _subscription = await client.stream("orders").subscribe();
  assertEquals(broker.connections.length, 1);
  assertEquals(client.connections().map(({ role }) => role), ["shared"]);
});

Deno.test("options are checked before anything is dialled", async () => {
  const good: ConnectOptions = { addresses: "h:1", tenant: "t", token: "x" };
  const wrong: Partial<ConnectOptions>[] = [
    { addresses: [] },
    { addresses: "h:99999" },
    { tenant: "" },
    { namespace: "" },
    { token: "" },
    { requestTimeoutMs: -1 },
    { maxFrameBytes: 1 },
    { pools: { cache: { connections: 0 } } },
    { limits: { publishInflightBytes: -5 } },
    { reconnect: { attempts: 0 } },
    { reconnect: { backoffMs: -1 } },
    { publish: { ack: "maybe" as "none" } },
  ];
  for (const options of wrong) {
    const dialled: string[] = [];
    const transport = {
      name: "native",
      canReset: false,
      canVerifyClients: false,
      listen: () => Promise.reject(new Error("no")),
      connect: () => {
        dialled.push("!");
        return Promise.reject(new Error("no"));
      },
    } as const;
    await assertRejects(
      () => connect({ ...good, ...options, transport }),
      InvalidArgumentError,
    );
    assertEquals(dialled, [], JSON.stringify(options));
  }
});

networkTest("names are checked, handles cost nothing", async () => {
  await using broker = await ScriptedBroker.start();
  await using client = await connectTo(broker);
  const makes = [() => client.stream(""), () => client.cache(""), () => client.namespace("")];
  for (const make of makes) assertThrows(make, InvalidArgumentError, "must not be empty");
  const view = client.namespace("other");
  assertEquals(view.stream("s").namespace, "other");
  assertEquals(view.cache("c").namespace, "other");
  assertEquals(client.stream("s", { namespace: "third" }).namespace, "third");
  assertEquals(client.stream("s").namespace, "default");
  assertEquals(broker.messages.length, 0);
});
