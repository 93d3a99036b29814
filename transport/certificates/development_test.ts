// Development certificates: made once, kept, and made again exactly when they must be.

import { X509Certificate } from "node:crypto";
import { join } from "node:path";
import { assert, assertEquals, assertNotEquals } from "@std/assert";
import { connect, listen } from "../test_support/pair.ts";
import { nativeTransport } from "../mod.ts";
import { ensureDevelopmentCertificates } from "./development.ts";
import { createCertificateAuthority, issueCertificate } from "./issue.ts";

async function withDirectory(fn: (directory: string) => Promise<void>): Promise<void> {
  const parent = await Deno.makeTempDir();
  try {
    await fn(join(parent, "certificates"));
  } finally {
    await Deno.remove(parent, { recursive: true });
  }
}

async function modeOf(path: string): Promise<number> {
  return ((await Deno.stat(path)).mode ?? 0) & 0o777;
}

Deno.test("they are what a server and its clients need", () =>
  withDirectory(async (directory) => {
    const made = await ensureDevelopmentCertificates(directory, ["broker.example", "10.0.0.7"]);
    const leaf = new X509Certificate(made.cert);
    const authority = new X509Certificate(made.ca);
    assert(!leaf.ca && authority.ca);
    assert(leaf.verify(authority.publicKey));
    for (const name of ["localhost", "broker.example"]) assertEquals(leaf.checkHost(name), name);
    for (const ip of ["127.0.0.1", "::1", "10.0.0.7"]) assertEquals(leaf.checkIP(ip), ip);
    assertEquals(await Deno.readTextFile(made.caFile), made.ca);
    assertEquals(await Deno.readTextFile(made.certFile), made.cert);
    assertEquals(await Deno.readTextFile(made.keyFile), made.key);
    assert(made.key.startsWith("-----BEGIN PRIVATE KEY-----"));
    const { cert, key } = made;
    const listener = await listen(nativeTransport, { cert, key });
    const accepting = listener.accept().then((incoming) => incoming!.accept());
    const client = await connect(nativeTransport, listener.port, { caCerts: [made.ca] });
    client.close();
    await Promise.all([client.closed, accepting.then(({ closed }) => closed)]);
    await listener.close();
  }));

Deno.test("private keys are for their owner alone", () =>
  withDirectory(async (directory) => {
    const made = await ensureDevelopmentCertificates(directory);
    if (Deno.build.os === "windows") return;
    assertEquals(await modeOf(directory), 0o700);
    assertEquals(await modeOf(made.keyFile), 0o600);
    assertEquals(await modeOf(join(directory, "ca_key.pem")), 0o600);
    for await (const { name } of Deno.readDir(directory)) assert(!name.endsWith(".tmp"), name);
  }));

Deno.test("they are kept, also under concurrent calls and another spelling of the names", () =>
  withDirectory(async (directory) => {
    const names = ["Broker.Example", "FE80::0001"];
    const made = await Promise.all(
      [1, 2, 3].map(() => ensureDevelopmentCertificates(directory, names)),
    );
    const again = await ensureDevelopmentCertificates(directory, ["fe80::1", "broker.example"]);
    for (const other of made) assertEquals(other, again);
  }));

Deno.test("other names give another certificate under the same authority", () =>
  withDirectory(async (directory) => {
    const before = await ensureDevelopmentCertificates(directory, ["a.example"]);
    const after = await ensureDevelopmentCertificates(directory, ["b.example"]);
    assertEquals(after.ca, before.ca);
    assertNotEquals(after.cert, before.cert);
    assertEquals(new X509Certificate(after.cert).checkHost("a.example"), undefined);
  }));

Deno.test("one that is about to expire is issued again, one with time left is not", () =>
  withDirectory(async (directory) => {
    const made = await ensureDevelopmentCertificates(directory);
    const authority = {
      cert: made.ca,
      key: await Deno.readTextFile(join(directory, "ca_key.pem")),
    };
    for (const [days, kept] of [[6, false], [8, true]] as const) {
      const planted = await issueCertificate(authority, {
        names: ["localhost", "127.0.0.1", "::1"],
        validUntil: new Date(Date.now() + days * 24 * 60 * 60 * 1000),
      });
      await Deno.writeTextFile(made.certFile, planted.cert);
      await Deno.writeTextFile(made.keyFile, planted.key);
      const after = await ensureDevelopmentCertificates(directory);
      assertEquals(after.cert === planted.cert, kept, `${days} days left`);
      assertEquals(after.ca, made.ca);
    }
  }));

Deno.test("what is broken or foreign is replaced", () =>
  withDirectory(async (directory) => {
    const made = await ensureDevelopmentCertificates(directory);
    const other = await createCertificateAuthority("Other");
    const foreign = await issueCertificate(other, { names: ["localhost", "127.0.0.1", "::1"] });
    const breakages: (() => Promise<void>)[] = [
      () => Deno.writeTextFile(made.certFile, "torn"),
      () => Deno.writeTextFile(made.keyFile, foreign.key),
      () => Deno.remove(made.keyFile),
      async () => {
        await Deno.writeTextFile(made.certFile, foreign.cert);
        await Deno.writeTextFile(made.keyFile, foreign.key);
      },
    ];
    for (const breakIt of breakages) {
      await breakIt();
      const after = await ensureDevelopmentCertificates(directory);
      assertEquals(after.ca, made.ca);
      assert(new X509Certificate(after.cert).verify(new X509Certificate(made.ca).publicKey));
      assertNotEquals(after.cert, foreign.cert);
    }
    await Deno.writeTextFile(made.caFile, "torn");
    const renewed = await ensureDevelopmentCertificates(directory);
    assertNotEquals(renewed.ca, made.ca);
    assert(new X509Certificate(renewed.cert).verify(new X509Certificate(renewed.ca).publicKey));
  }));
