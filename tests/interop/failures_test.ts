// The published client when things go wrong: who is let in, what is unknown, what is too large, and
// a broker that goes away and comes back.

import { assert, assertEquals } from "@std/assert";
import { createCertificateAuthority } from "@felix/transport";
import { poll } from "../support/poll.ts";
import { temporaryFolder } from "../support/temporary_folder.ts";
import { type DriverEvent, PublishedClientError, textOf } from "./python_driver.ts";
import { CACHE, type Step, STREAM, testInWorld, World } from "./world.ts";

async function wrongToken(world: World): Promise<void> {
  for (const token of ["", "not a token", `${world.broker.token.slice(0, -8)}AAAAAAAA`]) {
    const args = { ...world.connectArguments(), client: world.newName(), token };
    const error = await world.python.failure("connect", args);
    assertEquals(error.type, "AuthError", error.message);
  }
}

async function wrongTenant(world: World): Promise<void> {
  const args = { ...world.connectArguments(), client: world.newName(), tenant: "another" };
  assertEquals((await world.python.failure("connect", args)).type, "AuthError");
  const client = await world.connectPython();
  const scope = ["another", world.broker.namespace, STREAM];
  const error = await world.python.failure("publish", { client, scope, payload: "" });
  assertEquals([error.type, error.felixCode], ["AuthError", "forbidden"]);
}

async function wrongCertificate(world: World): Promise<void> {
  await using folder = await temporaryFolder("felix-interop-");
  const ca_file = `${folder.path}/other.pem`;
  await Deno.writeTextFile(ca_file, (await createCertificateAuthority("another")).cert);
  const args = { ...world.connectArguments(), client: world.newName() };
  const unknownIssuer = await world.python.failure("connect", { ...args, ca_file });
  assertEquals(unknownIssuer.type, "ConnectionError", unknownIssuer.message);
  const wrongName = await world.python.failure("connect", { ...args, server_name: "elsewhere" });
  assertEquals(wrongName.type, "ConnectionError", wrongName.message);
}

async function unknownStream(world: World): Promise<void> {
  const client = await world.connectPython();
  const scope = world.scope("no-such-stream");
  const args = { client, scope, payload: "", reader: world.newName() };
  const publish = await world.python.failure("publish", args);
  assertEquals([publish.type, publish.felixCode], ["NotFoundError", "not_found"]);
  const keyed = await world.python.failure("publish", { ...args, key: "YQ==" });
  assertEquals([keyed.type, keyed.felixCode], ["NotFoundError", "not_found"]);
  const subscribe = await world.python.failure("subscribe", args);
  assertEquals([subscribe.type, subscribe.felixCode], ["NotFoundError", "not_found"]);
  assertEquals(await world.publish(client, STREAM, "still works"), null);
}

async function tooLargeHurtsNobodyElse(world: World): Promise<void> {
  const sender = await world.connectPython();
  const other = await world.connectPython();
  const reader = await world.subscribe(other, STREAM);
  const args = { client: sender, scope: world.scope(STREAM), length: 16 * 1024 * 1024 + 1 };
  const error = await world.python.failure("publish_zeros", args);
  assert(["ConnectionError", "FelixError"].includes(error.type), `${error}`);
  await world.publish(other, STREAM, "unharmed");
  const event = await world.python.call<DriverEvent>("next_event", { reader });
  assertEquals(textOf(event.payload), "unharmed");
  await poll(() => world.publish(sender, STREAM, "sender again").then(() => true), {
    what: "the sender publishing again",
  });
}

const STEPS: readonly Step[] = [
  ["a wrong token is an AuthError", wrongToken],
  ["another tenant is refused", wrongTenant],
  ["a certificate of another authority or name is a ConnectionError", wrongCertificate],
  ["an unknown stream is a NotFoundError", unknownStream],
  ["a payload over 16 MiB is refused and hurts no other connection", tooLargeHurtsNobodyElse],
];

testInWorld("published client: refusals", {}, STEPS);

/** A UDP port that was free a moment ago: the restarted broker has to come back on it. */
function freeUdpPort(): number {
  const socket = Deno.listenDatagram({ hostname: "127.0.0.1", port: 0, transport: "udp" });
  const { port } = socket.addr as Deno.NetAddr;
  socket.close();
  return port;
}

Deno.test({
  name: "published client: reconnects when the broker comes back on its address",
  sanitizeOps: true,
  sanitizeResources: true,
  fn: async () => {
    const env = { FELIX_QUIC_BIND: `127.0.0.1:${freeUdpPort()}` };
    await using world = await World.open({ env });
    const client = await world.connectPython();
    const reader = await world.subscribe(client, STREAM);
    const cached = { client, scope: world.scope(CACHE), key: "k" };
    await world.python.call("cache_put", { ...cached, value: "dg==" });
    await world.publish(client, STREAM, "before");
    const event = await world.python.call<DriverEvent>("next_event", { reader });
    assertEquals(textOf(event.payload), "before");

    await world.broker.restart();

    // A read is repeated inside the call; the in-memory value is gone with the old process.
    assertEquals(await world.python.call("cache_get", cached), null);
    // Without offsets a subscription cannot resume: it fails, or ends (spec/interop.md §6).
    const lost = await world.python.call<unknown>("next_event", { reader, timeout: 20 })
      .catch((error) => {
        assert(error instanceof PublishedClientError && error.type === "ConnectionError");
        return null;
      });
    assertEquals(lost, null);
    // A publish may fail once for the connection that was lost, never twice.
    await world.publish(client, STREAM, "first").catch((error) => {
      assert(error instanceof PublishedClientError && error.type === "ConnectionError");
    });
    const again = await world.subscribe(client, STREAM);
    await world.publish(client, STREAM, "after");
    const first = await world.python.call<DriverEvent>("next_event", { reader: again });
    assertEquals(textOf(first.payload), "after");
  },
});
