// Client certificates (`ListenOptions.clientCa`): the right authority lets in, everything else is
// refused on both sides, and a listener without the option asks for nothing.

import { X509Certificate } from "node:crypto";
import { Buffer } from "node:buffer";
import { assert, assertEquals } from "@std/assert";
import { quicheTransport } from "../mod.ts";
import type { ConnectOptions } from "../mod.ts";
import { certificates } from "../test_support/certificates.ts";
import {
  bytesOf,
  connect,
  failureOf,
  listen,
  readExactly,
  textOf,
  withPair,
} from "../test_support/pair.ts";

function mutual(name: string, fn: () => Promise<void>): void {
  Deno.test({
    name: `quiche client certificates: ${name}`,
    sanitizeOps: true,
    sanitizeResources: true,
    fn,
  });
}

const clientCa = certificates.authority.cert;

async function assertRefused(options: Partial<ConnectOptions>): Promise<void> {
  const listener = await listen(quicheTransport, { clientCa });
  const accepting = listener.accept().then((incoming) => failureOf(incoming!.accept()));
  const dialling = await failureOf(connect(quicheTransport, listener.port, options));
  assertEquals(dialling.code, "handshake_failed");
  assertEquals((await accepting).code, "handshake_failed");
  await listener.close();
}

mutual(
  "one from the right authority is let in and shown",
  () =>
    withPair(quicheTransport, async ({ client, server }) => {
      const der = server.peerCertificate;
      assert(der !== null);
      assertEquals(new X509Certificate(Buffer.from(der)).checkHost("broker-a"), "broker-a");
      const shown = client.peerCertificate;
      assert(shown !== null);
      assertEquals(new X509Certificate(Buffer.from(shown)).checkHost("localhost"), "localhost");
      const near = await client.openUnidirectional();
      await near.write(bytesOf("inside"));
      assertEquals(textOf(await readExactly((await server.acceptUnidirectional())!, 6)), "inside");
    }, { server: { clientCa }, client: { clientCertificate: certificates.client } }),
);

mutual(
  "one from another authority is refused",
  () => assertRefused({ clientCertificate: certificates.stranger }),
);

mutual("none is refused", () => assertRefused({}));

mutual(
  "an expired one is refused",
  () => assertRefused({ clientCertificate: certificates.expired }),
);

mutual("a listener that does not ask sees none", () =>
  withPair(quicheTransport, ({ server }) => {
    assertEquals(server.peerCertificate, null);
    return Promise.resolve();
  }, { client: { clientCertificate: certificates.client } }));

mutual("a key of another certificate is refused before dialling", async () => {
  const clientCertificate = { cert: certificates.client.cert, key: certificates.server.key };
  const failure = await failureOf(connect(quicheTransport, 9, { clientCertificate }));
  assertEquals(failure.code, "bad_certificate");
  const listening = await failureOf(listen(quicheTransport, { clientCa: "no certificate" }));
  assertEquals(listening.code, "bad_certificate");
});
