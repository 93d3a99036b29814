// The development launcher: its parts, and the whole of it as a process.

import { assertEquals, assertNotEquals, assertStringIncludes, assertThrows } from "@std/assert";
import { AuthMetrics } from "../metrics/counters.ts";
import { createTokenVerifier } from "../auth/token_verifier.ts";
import { silentLog } from "../log/create_log.ts";
import { keyFile } from "../process/files.ts";
import { eventually, path, readJson, run, start } from "../process/testing/broker_process.ts";
import { planChild } from "./child.ts";
import { DevArgumentError, parseDevArguments } from "./dev_arguments.ts";
import type { DevOptions } from "./dev_arguments.ts";
import { prepareState } from "./state.ts";

const DEV = path("../../dev/dev.ts");
const directory = Deno.makeTempDirSync();
Deno.test.afterAll(() => Deno.removeSync(directory, { recursive: true }));

const OPTIONS: DevOptions = {
  state: `${directory}/plan`,
  port: null,
  metricsPort: null,
  memory: false,
  catalog: null,
};
const FREE = ["--port", "0", "--metrics-port=0"];

Deno.test("the command line", () => {
  assertEquals(parseDevArguments([]), { kind: "run", options: { ...OPTIONS, state: ".felix" } });
  assertEquals(parseDevArguments(["--state=x", "--port", "1", "--memory", "--catalog", "c"]), {
    kind: "run",
    options: { state: "x", port: 1, metricsPort: null, memory: true, catalog: "c" },
  });
  assertEquals(parseDevArguments(["token", "--perm", "a:b", "--perm", "c:d", "--ttl", "9"]), {
    kind: "token",
    options: {
      state: ".felix",
      tenant: "t1",
      principal: "p:dev",
      permissions: ["a:b", "c:d"],
      ttlSeconds: 9,
    },
  });
  assertEquals(parseDevArguments(["--port", "1", "-h"]), { kind: "help" });
  for (const args of [["x"], ["--port"], ["--port", "70000"], ["--port=a"], ["--ttl", "1"]]) {
    assertThrows(() => parseDevArguments(args), DevArgumentError);
  }
});

Deno.test("the broker gets its state directory, FELIX_* and no more", async () => {
  const state = await prepareState(OPTIONS.state, null, true);
  const plan = planChild(OPTIONS, state, { FELIX_X: "1", AWS_SECRET: "s", RUST_LOG: "warn" });
  assertEquals(Object.keys(plan.env).includes("AWS_SECRET"), false);
  assertEquals([plan.env["FELIX_X"], plan.env["RUST_LOG"]], ["1", "warn"]);
  assertEquals(plan.env["FELIX_QUIC_BIND"], "127.0.0.1:5000");
  assertEquals(plan.env["FELIX_BROKER_METRICS_BIND"], "127.0.0.1:8080");
  const flags = plan.args.filter((argument) => argument.startsWith("--allow-"));
  assertEquals(flags, [
    "--allow-net",
    `--allow-read=${state.directory},/usr/local/felix`,
    `--allow-write=${state.directory}`,
    "--allow-env=FELIX_*,RUST_LOG,LOG_STREAM,LOG_TOKENS",
  ]);
  const quiche = planChild(OPTIONS, state, { FELIX_QUIC_ENGINE: "quiche" });
  assertEquals(quiche.args.includes("--allow-ffi"), true);
  const env = { FELIX_QUIC_BIND: "127.0.0.1:9", FELIX_BROKER_METRICS_BIND: "127.0.0.1:8" };
  assertEquals(planChild(OPTIONS, state, env).env["FELIX_QUIC_BIND"], "127.0.0.1:9");
  const flagged = planChild({ ...OPTIONS, port: 7 }, state, env);
  assertEquals(flagged.env["FELIX_QUIC_BIND"], "127.0.0.1:7");
});

Deno.test("secrets are for their owner only, and keys stay", async () => {
  const state = await prepareState(OPTIONS.state, null, true);
  for (const name of ["token", "signing_key.json", "ca_key.pem", "server_key.pem"]) {
    assertEquals(Deno.statSync(`${state.directory}/${name}`).mode! & 0o777, 0o600, name);
  }
  const read = (): string[] =>
    [state.caFile, state.certFile, state.jwksFile].map((file) => Deno.readTextFileSync(file));
  const before = read();
  await prepareState(OPTIONS.state, null, true);
  assertEquals(read(), before);
  Deno.writeTextFileSync(`${state.directory}/signing_key.json`, "{");
  await prepareState(OPTIONS.state, null, true);
  assertNotEquals(read()[2], before[2], "a broken key is replaced");
});

Deno.test("a further catalog is added to the built-in one", async () => {
  const extra = `${directory}/extra.yml`;
  Deno.writeTextFileSync(
    extra,
    `tenants:
  - id: t1
    namespaces:
      - { name: default, streams: [{ name: wide, shards: 2 }, { name: more }] }
      - { name: other, caches: [{ name: c }] }
  - id: t2
`,
  );
  const state = await prepareState(`${directory}/extra`, extra, false);
  assertEquals(state.streams, ["events", "wide", "more"]);
  assertEquals(state.caches, ["sessions", "wide"]);
  const text = Deno.readTextFileSync(state.catalogFile);
  assertStringIncludes(text, "id: t2");
  assertStringIncludes(text, "name: other");
});

Deno.test("a token of the key verifies with the key set", async () => {
  const state = `${directory}/plan`;
  const { code, stdout } = await run(DEV, [
    ...["token", "--state", state, "--principal", "p:x", "--perm", "cache.read:cache:t1/n/c"],
  ]);
  assertEquals(code, 0);
  const verifier = createTokenVerifier({
    source: { kind: "file", path: `${state}/jwks.json` },
    clock: { wallMs: () => Date.now(), monotonicMs: () => performance.now() },
    file: keyFile,
    fetch,
    log: silentLog,
    metrics: new AuthMetrics(),
  });
  const grants = await verifier.verify("t1", stdout.trim());
  assertEquals(grants.subject, "p:x");
  assertEquals(grants.allows("cache.read", "cache:t1/n/c"), true);
  assertEquals(grants.allows("cache.write", "cache:t1/n/c"), false);
  const own = await verifier.verify("t1", Deno.readTextFileSync(`${state}/token`).trim());
  assertEquals(own.allows("stream.publish", "stream:t1/default/events"), true);
  assertEquals(own.allows("group.manage", "group:t1/default/events/g"), true);
  assertEquals(own.allows("stream.publish", "stream:t2/default/events"), false);
});

Deno.test({
  name: "one command serves, says where, and stops with its signal",
  sanitizeOps: true,
  sanitizeResources: true,
  fn: async () => {
    const state = `${directory}/run`;
    Deno.mkdirSync(state);
    Deno.writeTextFileSync(`${state}/dev.json`, '{"pid":1,"broker":"stale"}');
    const dev = start(DEV, ["--state", state, ...FREE, "--memory"], {});
    try {
      const info = await eventually("dev.json of this run", () => {
        const found = readJson(`${state}/dev.json`);
        return found?.["broker"] === "stale" ? null : found;
      });
      assertEquals(Object.keys(info), [
        "broker",
        "metrics",
        "caFile",
        "tokenFile",
        "tenant",
        "namespace",
        "streams",
        "caches",
        "pid",
      ]);
      assertEquals(info["streams"], ["events", "wide"]);
      assertStringIncludes(Deno.readTextFileSync(String(info["caFile"])), "CERTIFICATE");
      const ready = await fetch(`${info["metrics"]}/ready`);
      assertEquals(await ready.text(), "ok");
      await eventually("the greeting", () => dev.stdout().includes("Ctrl-C") || null);
      assertStringIncludes(dev.stdout(), String(info["broker"]));
      const second = await run(DEV, ["--state", state, ...FREE]);
      assertEquals(second.code, 2);
      assertStringIncludes(second.stderr, "another broker runs with the state directory");
      assertEquals(readJson(`${state}/dev.json`), info, "and the first one's file is left alone");
    } finally {
      dev.kill("SIGINT");
    }
    const { code, stderr } = await dev.finished;
    assertEquals(code, 0);
    assertEquals(stderr, "");
    assertEquals(readJson(`${state}/dev.json`), null);
  },
});

Deno.test({
  name: "a broker does not outlive its launcher",
  sanitizeOps: true,
  sanitizeResources: true,
  fn: async () => {
    const state = `${directory}/orphan`;
    const dev = start(DEV, ["--state", state, ...FREE], {});
    const info = await eventually("dev.json", () => readJson(`${state}/dev.json`));
    dev.kill("SIGKILL");
    await dev.finished;
    await eventually("the broker has removed its file", () => {
      return readJson(`${state}/dev.json`) === null || null;
    });
    await eventually("its metrics port is closed", () =>
      fetch(`${info["metrics"]}/live`).then(
        (response) => response.body?.cancel().then(() => null) ?? null,
        () => true,
      ));
  },
});

Deno.test("what cannot start says why in one line", async () => {
  const bad = await run(DEV, ["--state", `${directory}/bad`, "--catalog", `${directory}/none`]);
  assertEquals(bad.code, 2);
  assertEquals(bad.stderr, `dev: --catalog ${directory}/none: cannot be read\n`);
  const refused = await run(DEV, ["--state", `${directory}/bad`, ...FREE], { FELIX_NODE_ID: "b" });
  assertEquals(refused.code, 2);
  assertStringIncludes(refused.stderr, "felix-broker: FELIX_NODE_ID is set");
});
