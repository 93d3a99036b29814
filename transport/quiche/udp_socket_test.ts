// Both kinds of UDP socket under the quiche engine, and the engine on the one that is not default.

import { assertEquals } from "@std/assert";
import { certificates } from "../test_support/certificates.ts";
import { failureOf, pattern, readAll, until, withPair } from "../test_support/pair.ts";
import { createQuicheTransport } from "./quiche_transport.ts";
import { bindDenoUdp, bindNodeUdp, type BindUdp } from "./udp_socket.ts";

const KINDS: readonly [string, BindUdp][] = [
  ["Deno.listenDatagram", bindDenoUdp],
  ["node:dgram", bindNodeUdp],
];

for (const [name, bind] of KINDS) {
  Deno.test({
    name: `${name}: datagrams go both ways, and to nobody without harm`,
    sanitizeOps: true,
    sanitizeResources: true,
    fn: async () => {
      const got: Uint8Array[] = [];
      const left = await bind("127.0.0.1", 0, (datagram) => got.push(new Uint8Array(datagram)));
      const right = await bind("127.0.0.1", 0, (datagram, from) => {
        right.space().set(datagram);
        right.send(datagram.byteLength, from);
      });
      const nobody = await bind("127.0.0.1", 0, () => {});
      nobody.close();
      nobody.close();
      await until(() => {
        left.space().set(pattern(600));
        left.send(600, nobody.local);
        left.space().set(pattern(700));
        left.send(700, right.local);
        return got.length > 2;
      }, "an answer");
      assertEquals(got[0], pattern(700));
      const taken = await failureOf(bind("127.0.0.1", left.local.port, () => {}));
      assertEquals(taken.code, "bind_failed");
      left.close();
      right.close();
      left.send(1, right.local); // after the end: nothing happens
    },
  });
}

Deno.test({
  name: "the engine runs on node:dgram",
  sanitizeOps: true,
  sanitizeResources: true,
  fn: () => {
    const transport = createQuicheTransport(bindNodeUdp);
    return withPair(transport, async ({ client, server }) => {
      const near = await client.openBidirectional();
      const sending = near.write(pattern(200_000)).then(() => near.finish());
      const far = (await server.acceptBidirectional())!;
      assertEquals(await readAll(far), pattern(200_000));
      await sending;
    }, { server: { cert: certificates.server.cert } });
  },
});
