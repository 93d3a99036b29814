// The files that settings name: read and checked before anything is bound.

import { assertEquals, assertRejects, assertStringIncludes, assertThrows } from "@std/assert";
import { X509Certificate } from "node:crypto";
import { createCertificateAuthority, issueCertificate } from "@felix/transport";
import { ConfigError } from "../config/config_error.ts";
import { loadConfig } from "../config/load.ts";
import type { BrokerSettings } from "../config/settings.ts";
import type { BrokerLog } from "../log/broker_log.ts";
import { silentLog } from "../log/create_log.ts";
import { certificateWatcher } from "./certificate_watch.ts";
import { prepare, readCatalog } from "./prepare.ts";
import { generateTlsIdentity, readTlsFiles } from "./tls_identity.ts";

const directory = Deno.makeTempDirSync();
const path = (name: string): string => `${directory}/${name}`;
const NONE = { tlsCert: null, tlsKey: null, tlsCertExport: null };
const FILES = { ...NONE, tlsCert: path("cert.pem"), tlsKey: path("key.pem") };

const authority = await createCertificateAuthority("test");
const first = await issueCertificate(authority, { names: ["localhost"] });
const second = await issueCertificate(authority, { names: ["localhost"] });

function write(cert: string, key: string): void {
  Deno.writeTextFileSync(FILES.tlsCert, cert);
  Deno.writeTextFileSync(FILES.tlsKey, key);
}

Deno.test.afterAll(() => Deno.removeSync(directory, { recursive: true }));

Deno.test("a pair that belongs together is served", () => {
  write(first.cert, first.key);
  assertEquals(readTlsFiles(FILES), { ...first, generated: false });
  assertEquals(readTlsFiles(NONE), null);
});

Deno.test("files that cannot serve are refused before anything is bound", () => {
  const cases: [string, string, string][] = [
    [first.cert, second.key, "does not belong to"],
    [first.cert, "nothing", "holds no PEM"],
    ["-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", first.key, "cannot be"],
    [first.cert, "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", "cannot be"],
  ];
  for (const [cert, key, part] of cases) {
    write(cert, key);
    assertThrows(() => readTlsFiles(FILES), ConfigError, part);
  }
  const gone = { ...FILES, tlsKey: path("none.pem") };
  write(first.cert, first.key);
  assertThrows(() => readTlsFiles(gone), ConfigError, "there is no file");
});

Deno.test("a generated certificate names localhost and its authority can be exported", async () => {
  const exported = path("export.pem");
  const identity = await generateTlsIdentity({ ...NONE, tlsCertExport: exported });
  assertEquals(identity.generated, true);
  const leaf = new X509Certificate(identity.cert);
  const root = new X509Certificate(Deno.readTextFileSync(exported));
  assertEquals(leaf.checkIssued(root), true);
  assertStringIncludes(leaf.subjectAltName ?? "", "localhost");
  await assertRejects(
    () => generateTlsIdentity({ ...NONE, tlsCertExport: "/nowhere/at/all.pem" }),
    ConfigError,
  );
});

Deno.test("changed certificate files are announced once, broken ones as an error", () => {
  write(first.cert, first.key);
  const lines: string[] = [];
  const log: BrokerLog = {
    ...silentLog,
    warn: (msg) => void lines.push(`warn ${msg}`),
    error: (msg) => void lines.push(`error ${msg}`),
  };
  const look = certificateWatcher(FILES as unknown as BrokerSettings, log);
  look();
  assertEquals(lines, []);
  write(`${second.cert}\n`, `${second.key}\n`);
  look();
  look();
  assertEquals(lines, [
    "warn certificate files have changed; restart to serve the new certificate",
  ]);
  write("nothing", second.key);
  look();
  assertEquals(lines[1], "error certificate files have changed and cannot be used");
});

Deno.test("every file that settings name is read and checked", async () => {
  const keys = path("keys.json");
  const load = (env: Record<string, string>): BrokerSettings => {
    const outcome = loadConfig({
      args: [],
      env: { FELIX_JWKS_FILE: keys, ...env },
      readFile: () => null,
    });
    if (!("settings" in outcome)) throw new Error(outcome.mode);
    return outcome.settings;
  };
  const refused = (env: Record<string, string>, part: string): Promise<ConfigError> =>
    assertRejects(() => prepare(load(env)), ConfigError, part);
  await refused({}, `there is no file ${keys}`);
  Deno.writeTextFileSync(keys, "{");
  await refused({}, "is not JSON");
  Deno.writeTextFileSync(keys, '{"keys":[]}');
  await refused({}, "no usable Ed25519 key");
  const x = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";
  Deno.writeTextFileSync(keys, JSON.stringify({ keys: [{ kty: "OKP", crv: "Ed25519", x }] }));
  await refused({ FELIX_CATALOG_FILE: path("none.yml") }, "FELIX_CATALOG_FILE: there is no file");
  Deno.writeTextFileSync(path("catalog.yml"), "tenant: 1");
  await refused({ FELIX_CATALOG_FILE: path("catalog.yml") }, "tenant: unknown key");
  await refused({ FELIX_DEV_INFO: "[]" }, "FELIX_DEV_INFO");
  Deno.writeTextFileSync(path("catalog.yml"), "tenants: [{ id: t1 }]");
  assertEquals(readCatalog(path("catalog.yml")).tenants, ["t1"]);
  const prepared = await prepare(load({ FELIX_CATALOG_FILE: path("catalog.yml") }));
  assertEquals(prepared.keySource, { kind: "file", path: keys });
});
