// The broker entry as a process: exit codes, what it prints, signals, and what it leaves behind.

import { assertEquals, assertStringIncludes } from "@std/assert";
import { ensureDevelopmentKey } from "./dev/development_token.ts";
import { eventually, path, readJson, run, start } from "./process/testing/broker_process.ts";

const MAIN = path("../../main.ts");
const directory = Deno.makeTempDirSync();
const { jwksFile } = await ensureDevelopmentKey(directory);
const catalog = `${directory}/catalog.yml`;
const BASE = {
  FELIX_JWKS_FILE: jwksFile,
  FELIX_CATALOG_FILE: catalog,
  FELIX_QUIC_BIND: "127.0.0.1:0",
  FELIX_BROKER_METRICS_BIND: "127.0.0.1:0",
};

function writeCatalog(...streams: string[]): void {
  const list = streams.map((name) => `{ name: ${name} }`).join(", ");
  Deno.writeTextFileSync(
    catalog,
    `tenants: [{ id: t1, namespaces: [{ name: n, streams: [${list}] }] }]\n`,
  );
}

writeCatalog("events");
Deno.test.afterAll(() => Deno.removeSync(directory, { recursive: true }));

function test(name: string, fn: () => Promise<void>): void {
  Deno.test({ name, sanitizeOps: true, sanitizeResources: true, fn });
}

test("texts need no settings", async () => {
  const version = await run(MAIN, ["--version"]);
  assertEquals([version.code, version.stdout], [0, "felix-broker 0.1.0\n"]);
  const help = await run(MAIN, ["--help"]);
  assertEquals(help.code, 0);
  assertStringIncludes(help.stdout, "--print-config");
});

test("settings that are refused end with status 2 and one line", async () => {
  const cases: [string[], Record<string, string>, string][] = [
    [[], {}, "FELIX_CONTROLPLANE_URL must be set for auth"],
    [["--check"], { ...BASE, FELIX_CATALOG_FILE: `${directory}/none` }, "there is no file"],
    [["--print-config"], { ...BASE, FELIX_NODE_ID: "b" }, "single broker"],
    [["--nonsense"], BASE, "--nonsense"],
  ];
  for (const [args, env, part] of cases) {
    const { code, stdout, stderr } = await run(MAIN, args, env);
    assertEquals([code, stdout], [2, ""]);
    assertStringIncludes(stderr, part);
    assertEquals(stderr.split("\n").length, 2, stderr);
    assertEquals(stderr.startsWith("felix-broker: "), true);
  }
});

test("--print-config and --check bind nothing and warn on stderr", async () => {
  const env = { ...BASE, FELIX_QUIC_BINT: "x" };
  const printed = await run(MAIN, ["--print-config"], env);
  assertEquals(printed.code, 0);
  assertStringIncludes(printed.stdout, 'quic_bind: "127.0.0.1:0" # source: env FELIX_QUIC_BIND');
  assertStringIncludes(printed.stderr, "FELIX_QUIC_BINT; did you mean FELIX_QUIC_BIND?");
  const checked = await run(MAIN, ["--check"], env);
  assertEquals([checked.code, checked.stdout, checked.stderr], [0, "", printed.stderr]);
});

test("serves, reloads, drains and leaves nothing behind", async () => {
  const devFile = `${directory}/dev.json`;
  const broker = start(MAIN, [], {
    ...BASE,
    FELIX_DEV_FILE: devFile,
    FELIX_DEV_INFO: '{"tenant":"t1"}',
    FELIX_TLS_CERT_EXPORT: `${directory}/ca.pem`,
    FELIX_CORE_SHARDS: "3",
    FELIX_GROUP_MAX_ATTEMPTS: "3",
  });
  try {
    const info = await eventually("the broker serves", () => readJson(devFile));
    assertEquals(info["pid"], broker.pid);
    assertEquals(info["tenant"], "t1");
    const base = String(info["metrics"]);
    assertEquals(await ask(`${base}/ready`), [200, "ok"]);
    assertEquals(await ask(`${base}/live`), [200, "ok"]);
    const [, metrics] = await ask(`${base}/metrics`);
    assertStringIncludes(metrics, "\nfelix_ready_state 1\n");
    writeCatalog("events", "more");
    broker.kill("SIGHUP");
    await eventually("the catalog is synced again", () => {
      const synced = messages(broker.stdout(), "catalog synced");
      return synced.length === 2 ? synced : null;
    });
    Deno.writeTextFileSync(catalog, "nonsense: 1");
    broker.kill("SIGHUP");
    await eventually("the bad catalog is refused", () => {
      const failed = "catalog reload failed; the catalog stays as it is";
      return messages(broker.stdout(), failed)[0] ?? null;
    });
  } finally {
    broker.kill("SIGTERM");
  }
  const { code, stdout, stderr } = await broker.finished;
  assertEquals([code, stderr], [0, ""]);
  assertEquals(readJson(devFile), null, "the dev file is gone");
  assertEquals(messages(stdout, "catalog synced").map((line) => line["streams"]), [1, 2]);
  assertEquals(messages(stdout, "using a generated self-signed certificate").length, 1);
  assertEquals(messages(stdout, "set but not applied by this build")[0]!["names"], [
    "FELIX_CORE_SHARDS",
  ]);
  assertEquals(messages(stdout, "set for features that this build does not have").length, 1);
  for (const msg of ["quic listener started", "broker started", "shutdown requested"]) {
    assertEquals(messages(stdout, msg).length, 1, msg);
  }
  assertEquals(messages(stdout, "drain complete").length, 1);
  writeCatalog("events");
});

test("an address that is taken ends with status 1 and says which", async () => {
  const taken = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  try {
    const address = `127.0.0.1:${taken.addr.port}`;
    const { code, stdout } = await run(MAIN, [], { ...BASE, FELIX_BROKER_METRICS_BIND: address });
    assertEquals(code, 1);
    const [line] = messages(stdout, "metrics listener cannot be bound");
    assertEquals([line!["addr"], line!["setting"]], [address, "FELIX_BROKER_METRICS_BIND"]);
  } finally {
    taken.close();
  }
});

async function ask(url: string): Promise<[number, string]> {
  const response = await fetch(url);
  return [response.status, await response.text()];
}

/** The log lines with this message; every line must be JSON. */
function messages(stdout: string, msg: string): Record<string, unknown>[] {
  const lines = stdout.split("\n").slice(0, -1).map((line) => JSON.parse(line));
  return lines.filter((line) => line.msg === msg);
}
