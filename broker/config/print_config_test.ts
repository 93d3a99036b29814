// What `--print-config` prints, and that docs/configuration.md says what the tables say.

import { assertEquals, assertStringIncludes } from "@std/assert";
import { configurationPage } from "./documentation.ts";
import { loadConfig } from "./load.ts";
import type { LoadedConfig } from "./load.ts";
import { printConfig, redactUrl } from "./print_config.ts";

function load(env: Record<string, string>, yaml: string | null): LoadedConfig {
  const outcome = loadConfig({ args: ["--print-config"], env, readFile: () => yaml });
  if (!("settings" in outcome)) throw new Error(outcome.mode);
  return outcome;
}

const GOLDEN = `# felix-broker 9.9.9: effective settings, file /usr/local/felix/config.yml
quic_bind: "127.0.0.1:5000" # source: env FELIX_QUIC_BIND
quic_alpn_bind: # source: default
quic_engine: "native" # source: default
metrics_bind: "0.0.0.0:8080" # source: default
controlplane_url: "https://<redacted>@cp/" # source: env FELIX_CP_URL
`;

Deno.test("prints values with their sources and no secret", () => {
  const env = {
    FELIX_QUIC_BIND: "127.0.0.1:5000",
    FELIX_CP_URL: "https://user:pass@cp/",
    FELIX_NODE_TOKEN: "very-secret",
    FELIX_CORE_SHARDS: "2",
  };
  const yaml = "pub_queue_depth: 7\ninternal: { tls: { cert: c, key: k, ca: a } }\n";
  const text = printConfig(load(env, yaml), "9.9.9");
  assertEquals(text.slice(0, GOLDEN.length), GOLDEN);
  assertStringIncludes(
    text,
    "\npub_queue_depth: 7 # source: file pub_queue_depth (/usr/local/felix/config.yml line 1)\n",
  );
  assertStringIncludes(text, '\ninternal:\n  tls:\n    cert: "c" # source: file ');
  assertStringIncludes(text, "\ncore_shards: 2 # source: env FELIX_CORE_SHARDS, not applied");
  assertStringIncludes(text, "\n# FELIX_NODE_TOKEN=<redacted> # source: env FELIX_NODE_TOKEN");
  assertStringIncludes(text, "\n# FELIX_DEV_FILE=<unset> # source: default");
  assertEquals(text.includes("very-secret") || text.includes("pass"), false);
});

Deno.test("what is printed is a file that gives the same settings", () => {
  const env = { FELIX_JWKS_FILE: '/keys: "odd" #1.json', FELIX_ACK_ON_COMMIT: "false" };
  const first = load(env, "log: { level: debug }\npub_conn_inflight_bytes: 2 MiB\n");
  const second = load({}, printConfig(first, "1"));
  assertEquals(second.settings, first.settings);
});

Deno.test("only the user of a URL is cut out", () => {
  assertEquals(redactUrl("http://a:b@c/d@e"), "http://<redacted>@c/d@e");
  assertEquals(redactUrl("http://c/d@e"), "http://c/d@e");
  assertEquals(redactUrl("/path"), "/path");
});

Deno.test({
  name: "docs/configuration.md says what the tables say",
  sanitizeOps: true,
  sanitizeResources: true,
  fn: () => {
    const path = new URL("../../docs/configuration.md", import.meta.url);
    if (Deno.env.get("FELIX_REGENERATE_DOCS") === "1") {
      Deno.writeTextFileSync(path, configurationPage());
    }
    assertEquals(
      Deno.readTextFileSync(path),
      configurationPage(),
      "stale: run this test with FELIX_REGENERATE_DOCS=1",
    );
  },
});
