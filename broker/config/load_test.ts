// From command line, environment and file to settings: precedence, and every refusal by its code.

import { assertEquals, assertInstanceOf, assertStringIncludes, assertThrows } from "@std/assert";
import { ConfigError } from "./config_error.ts";
import type { ConfigErrorCode } from "./config_error.ts";
import { loadConfig } from "./load.ts";
import type { LoadedConfig } from "./load.ts";
import { SETTINGS } from "./table.ts";

const BASE = { FELIX_JWKS_FILE: "/keys.json", FELIX_CATALOG_FILE: "/catalog.yml" };

function load(
  options: { args?: string[]; env?: Record<string, string>; yaml?: string; bare?: boolean } = {},
): LoadedConfig {
  const outcome = loadConfig({
    args: options.args ?? [],
    env: { ...(options.bare ? {} : BASE), ...options.env },
    readFile: (path) => {
      if (options.yaml === undefined) return null;
      return path === "/usr/local/felix/config.yml" || path === "/other.yml" ? options.yaml : null;
    },
  });
  if (!("settings" in outcome)) throw new Error(`no settings: ${outcome.mode}`);
  return outcome;
}

function refusal(options: Parameters<typeof load>[0]): ConfigError {
  const error = assertThrowsConfig(() => load(options));
  assertEquals(error.message.includes("\n"), false, "one line");
  return error;
}

function assertThrowsConfig(run: () => unknown): ConfigError {
  try {
    run();
  } catch (error) {
    assertInstanceOf(error, ConfigError);
    return error;
  }
  throw new Error("nothing was refused");
}

Deno.test("defaults are those of the specification", () => {
  const { settings, warnings, unknown, notApplied, absent } = load();
  assertEquals(settings.quicBind, { hostname: "0.0.0.0", port: 5000 });
  assertEquals(settings.metricsBind, { hostname: "0.0.0.0", port: 8080 });
  assertEquals(settings.pubQueueDepth, 512);
  assertEquals(settings.pubWorkersPerConn, 4);
  assertEquals(settings.ackOnCommit, true);
  assertEquals(settings.maxFrameBytes, 16_777_216);
  assertEquals(settings.pubConnRecvWindow, 16_777_216);
  assertEquals(settings.pubStreamRecvWindow, 16_777_216);
  assertEquals(settings.eventBatchMaxDelayUs, 250);
  assertEquals(settings.subQueuePolicy, "drop_new");
  assertEquals(settings.jwksStaleMaxSeconds, 86_400);
  assertEquals(settings.tlsCert, null);
  assertEquals(settings.logFormat, null);
  assertEquals(settings.shutdownDrainTimeoutMs, 25_000);
  assertEquals([warnings, unknown, notApplied, absent], [[], [], [], []]);
});

Deno.test("every default can be parsed and no name or key is there twice", () => {
  const names = SETTINGS.map((setting) => setting.name);
  assertEquals(new Set(names).size, names.length);
  const keys = SETTINGS.flatMap((setting) => setting.key === undefined ? [] : [setting.key]);
  assertEquals(new Set(keys).size, keys.length);
  const { resolved } = load({ bare: true, env: { FELIX_JWKS_URL: "https://keys/{tenant}" } });
  for (const setting of SETTINGS) {
    const unset = setting.default === null || setting.name === "FELIX_JWKS_URL";
    if (!unset) assertEquals(resolved.get(setting.name).value !== null, true, setting.name);
  }
});

Deno.test("flag, then environment, then file, then default", () => {
  const yaml = "pub_queue_depth: 7\npub_workers_per_conn: 2\npublish_window: 9\n";
  const env = { FELIX_BROKER_PUB_QUEUE_DEPTH: "8", FELIX_BROKER_PUB_WORKERS_PER_CONN: "3" };
  const args = ["--set", "pub_queue_depth=9"];
  const { settings, resolved } = load({ yaml, env, args });
  assertEquals(settings.pubQueueDepth, 9);
  assertEquals(settings.pubWorkersPerConn, 3);
  assertEquals(settings.publishWindow, 9);
  const source = (name: string) => resolved.get(name).source;
  assertEquals(source("FELIX_BROKER_PUB_QUEUE_DEPTH"), "flag");
  assertEquals(source("FELIX_BROKER_PUB_WORKERS_PER_CONN"), "env");
  assertEquals(source("FELIX_BROKER_PUBLISH_WINDOW"), "file");
  assertEquals(source("FELIX_MAX_FRAME_BYTES"), "default");
});

Deno.test("the mission's example file is valid as it is", () => {
  const { settings, notApplied } = load({
    yaml: `pub_workers_per_conn: 4
pub_queue_depth: 512
pub_inflight_bytes: 67108864
event_batch_max_events: 64
event_batch_max_bytes: 65536
event_batch_max_delay_us: 250
subscriber_queue_capacity: 512
core_shards: 0
`,
  });
  assertEquals(settings.pubQueueDepth, 512);
  assertEquals(notApplied, ["FELIX_CORE_SHARDS"]);
});

Deno.test("values: booleans, underscores, sizes, empty and zero", () => {
  const { settings } = load({
    yaml: `max_frame_bytes: 32 MiB
pub_conn_inflight_bytes: 1_048_576
ack_on_commit: No
pub_queue_depth: 0
publish_window: 0
tls: { require_alpn: true }
limits:
  max_connections_per_ip: 0
log:
`,
    env: { FELIX_PUB_INGRESS_WAIT: "YES", FELIX_AUTH_TIMEOUT_MS: "", FELIX_KEEPALIVE_MS: "1_000" },
  });
  assertEquals(settings.maxFrameBytes, 32 * 1024 * 1024);
  assertEquals(settings.publishConnInflightBytes, 1_048_576);
  assertEquals(settings.ackOnCommit, false);
  assertEquals(settings.pubQueueDepth, 512, "a zero size in the file leaves the value");
  assertEquals(settings.publishWindow, 0, "zero means something here");
  assertEquals(settings.tlsRequireAlpn, true);
  assertEquals(settings.maxConnectionsPerIp, 0);
  assertEquals(settings.pubIngressWait, true);
  assertEquals(settings.authTimeoutMs, 10_000, "empty is unset");
  assertEquals(settings.keepaliveMs, 1000);
  assertEquals(settings.pubConnRecvWindow, 32 * 1024 * 1024, "derived");
});

Deno.test("aliases in their order; --set takes a variable name as well", () => {
  const alias = load({ env: { FELIX_SUB_QUEUE_CAPACITY: "5", FELIX_CP_URL: "http://cp" } });
  assertEquals(alias.settings.subscriberQueueCapacity, 5);
  assertEquals(alias.settings.controlplaneUrl, "http://cp");
  const both = { FELIX_SUB_QUEUE_BOUND: "3", FELIX_SUB_LANE_QUEUE_DEPTH: "4" };
  const first = load({ env: both }).resolved.get("FELIX_SUB_LANE_QUEUE_DEPTH");
  assertEquals([first.value, first.from], [3, "FELIX_SUB_QUEUE_BOUND"]);
  const args = ["--set=FELIX_KEEPALIVE_MS=1000"];
  assertEquals(load({ args }).settings.keepaliveMs, 1000);
});

Deno.test("the pre-authentication cap never passes the frame cap; dev binds loopback", () => {
  const env = {
    FELIX_MAX_FRAME_BYTES: "65536",
    FELIX_PREAUTH_MAX_FRAME_BYTES: "1000000",
    FELIX_DEV_FILE: "/dev.json",
  };
  const { settings } = load({ env });
  assertEquals(settings.preauthMaxFrameBytes, 65_536);
  assertEquals(settings.metricsBind, { hostname: "127.0.0.1", port: 8080 });
  const told = load({ env: { ...env, FELIX_BROKER_METRICS_BIND: "0.0.0.0:9" } });
  assertEquals(told.settings.metricsBind, { hostname: "0.0.0.0", port: 9 });
});

Deno.test("RUST_LOG counts only while FELIX_LOG is unset, and is mapped", () => {
  const rust = "warn,felix_broker_service=debug,quinn=trace,felix_wire::frame=info";
  assertEquals(load({ env: { RUST_LOG: rust } }).settings.log, "warn,broker=debug,wire=info");
  assertEquals(load({ env: { RUST_LOG: rust, FELIX_LOG: "error" } }).settings.log, "error");
  assertEquals(load({ env: { RUST_LOG: "quinn=trace" } }).settings.log, "info");
});

Deno.test("unknown variables warn with what was meant", () => {
  const { unknown } = load({
    env: {
      FELIX_QUEUE_DEPTH: "1",
      FELIX_QUIC_BIMD: "1",
      FELIX_ZZZ: "1",
      FELIX_RAFT_PEERS: "1=a:1",
      FELIX_EMPTY: "",
      OTHER: "1",
    },
  });
  assertEquals(unknown.map((entry) => entry.name), [
    "FELIX_QUEUE_DEPTH",
    "FELIX_QUIC_BIMD",
    "FELIX_ZZZ",
  ]);
  assertEquals(unknown[0]!.didYouMean, [
    "FELIX_PUBLISH_QUEUE_DEPTH",
    "FELIX_SUB_LANE_QUEUE_DEPTH",
    "FELIX_BROKER_PUB_QUEUE_DEPTH",
  ]);
  assertEquals(unknown[1]!.didYouMean, ["FELIX_QUIC_BIND"]);
  assertEquals(unknown[2]!.didYouMean, []);
});

Deno.test("what is set without effect is named", () => {
  const { notApplied, absent, warnings } = load({
    env: { FELIX_CORE_SHARDS: "2", FELIX_GROUP_MAX_ATTEMPTS: "3", FELIX_CLOCK_FAULT_FILE: "/x" },
    yaml: "cache_conn_recv_window: 1048576\n",
  });
  assertEquals(notApplied, ["FELIX_CORE_SHARDS", "FELIX_CACHE_CONN_RECV_WINDOW"]);
  assertEquals(absent, ["FELIX_GROUP_MAX_ATTEMPTS"]);
  assertEquals(warnings.length, 2);
  assertStringIncludes(warnings[0]!, "cache_conn_recv_window is an old key");
  assertStringIncludes(warnings[1]!, "FELIX_CLOCK_FAULT_FILE is set");
});

Deno.test("keep-alive and a missing catalog warn", () => {
  const { warnings } = load({
    bare: true,
    env: { FELIX_JWKS_FILE: "/k", FELIX_KEEPALIVE_MS: "3000" },
  });
  assertEquals(warnings.length, 2);
  assertStringIncludes(warnings[0]!, "not under half");
  assertStringIncludes(warnings[1]!, "FELIX_CATALOG_FILE is not set");
});

const REFUSED: [string, Parameters<typeof load>[0], ConfigErrorCode, string][] = [
  ["no key source", { bare: true }, "missing", "FELIX_CONTROLPLANE_URL must be set for auth"],
  ["bad number", { env: { FELIX_BROKER_PUB_QUEUE_DEPTH: "many" } }, "bad_value", "whole number"],
  ["out of range", { env: { FELIX_BROKER_PUB_QUEUE_DEPTH: "0" } }, "bad_value", "between 1"],
  ["bad boolean", { env: { FELIX_ACK_ON_COMMIT: "on" } }, "bad_value", "true or false"],
  ["bad choice", { env: { FELIX_SUB_QUEUE_POLICY: "drop" } }, "bad_value", "drop_new"],
  ["bad address", { env: { FELIX_QUIC_BIND: "localhost:5000" } }, "bad_value", "IP literal"],
  ["bad IPv4", { env: { FELIX_QUIC_BIND: "1.2.3.400:5000" } }, "bad_value", "IP literal"],
  ["bad port", { env: { FELIX_QUIC_BIND: "0.0.0.0:70000" } }, "bad_value", "IP literal"],
  ["bad URL", { env: { FELIX_JWKS_URL: "ftp://x" } }, "bad_value", "http or https"],
  ["bad filter", { env: { FELIX_LOG: "loud" } }, "bad_value", "level"],
  ["size unit outside the file", { env: { FELIX_MAX_FRAME_BYTES: "1 MiB" } }, "bad_value", "whole"],
  [
    "a bad value that a stronger source hides",
    { env: { FELIX_PUBLISH_QUEUE_WAIT_MS: "5" }, yaml: "publish_queue_wait_timeout_ms: x" },
    "bad_value",
    "line 1",
  ],
  ["unknown key", { yaml: "a: 1" }, "unknown_key", 'line 1: unknown key "a"'],
  [
    "unknown nested key",
    { yaml: "tls:\n  certt: x" },
    "unknown_key",
    'line 2: unknown key "tls.certt"',
  ],
  ["close key", { yaml: "pub_queue_dept: 1" }, "unknown_key", "did you mean pub_queue_depth"],
  ["not a map", { yaml: "- 1" }, "bad_file", "map of settings"],
  ["list as value", { yaml: "quic_bind: [1]" }, "bad_file", "one value"],
  ["value as section", { yaml: "tls: yes" }, "bad_file", "section"],
  ["key twice", { yaml: "publish_window: 1\npublish_window: 2" }, "bad_file", "line 2"],
  ["broken YAML", { yaml: "a: [" }, "bad_file", "config.yml line"],
  ["no file", { args: ["--config", "/none.yml"] }, "bad_file", "--config: there is no file"],
  [
    "no file by variable",
    { env: { FELIX_BROKER_CONFIG: "/n" } },
    "bad_file",
    "FELIX_BROKER_CONFIG",
  ],
  ["unknown argument", { args: ["--verbose"] }, "bad_argument", "--verbose"],
  ["argument without value", { args: ["--config"] }, "bad_argument", "needs a value"],
  ["set without =", { args: ["--set", "x"] }, "bad_argument", "KEY=VALUE"],
  ["set of an unknown key", { args: ["--set", "x=1"] }, "unknown_key", "unknown key"],
  ["secret as argument", { args: ["--set", "FELIX_NODE_TOKEN=1"] }, "bad_argument", "secret"],
  ["cluster member", { env: { FELIX_NODE_ID: "b1" } }, "not_available", "single broker"],
  ["Kafka", { env: { FELIX_KAFKA_LISTEN: "0.0.0.0:9092" } }, "not_available", "Kafka"],
  ["client CA", { env: { FELIX_TLS_CLIENT_CA: "/ca" } }, "not_available", "certificates"],
  [
    "certificate binding",
    { env: { FELIX_TLS_CLIENT_CERT_BIND_SUBJECT: "true" } },
    "not_available",
    "FELIX_TLS_CLIENT_CA",
  ],
  ["refresh token", { env: { FELIX_NODE_REFRESH_TOKEN: "t" } }, "not_available", "by value"],
  ["two key sources", { env: { FELIX_JWKS_URL: "http://x" } }, "conflict", "one of them"],
  ["half a TLS pair", { env: { FELIX_TLS_CERT: "/c" } }, "conflict", "without FELIX_TLS_KEY"],
  ["required certificate", { env: { FELIX_TLS_REQUIRE_CERT: "1" } }, "missing", "FELIX_TLS_CERT"],
  [
    "export with a certificate",
    { yaml: "tls: { cert: /c, key: /k, cert_export: /e }" },
    "conflict",
    "FELIX_TLS_CERT_EXPORT",
  ],
  [
    "CA for http",
    { bare: true, env: { FELIX_CP_URL: "http://cp", FELIX_CONTROLPLANE_CA: "/ca" } },
    "conflict",
    "https",
  ],
  [
    "batch over frame",
    { env: { FELIX_MAX_FRAME_BYTES: "32768" } },
    "conflict",
    "FELIX_EVENT_BATCH_MAX_BYTES 65536 is more than FELIX_MAX_FRAME_BYTES 32768",
  ],
  [
    "connection over process",
    { yaml: "pub_inflight_bytes: 1048576" },
    "conflict",
    "FELIX_BROKER_PUBLISH_CONN_INFLIGHT_BYTES",
  ],
  [
    "connection total under connection",
    { yaml: "pub_conn_total_inflight_bytes: 1024" },
    "conflict",
    "TOTAL",
  ],
  [
    "subscriptions",
    { yaml: "max_subscriptions_per_conn_total: 10" },
    "conflict",
    "FELIX_MAX_SUBSCRIPTIONS_PER_CONN 4096",
  ],
  ["window under frame", { yaml: "pub_conn_recv_window: 1 MiB" }, "conflict", "whole frame"],
  [
    "stream over connection window",
    { yaml: "pub_stream_recv_window: 32 MiB" },
    "conflict",
    "part of its connection",
  ],
  [
    "listeners past the last port",
    { env: { FELIX_QUIC_BIND: "0.0.0.0:65535", FELIX_QUIC_LISTENERS: "2" } },
    "conflict",
    "65535",
  ],
  [
    "peer port in the range",
    { env: { FELIX_QUIC_LISTENERS: "2", FELIX_INTERNAL_BIND: "0.0.0.0:5001" } },
    "conflict",
    "FELIX_INTERNAL_BIND",
  ],
  [
    "partial peer TLS",
    { yaml: "internal: { tls: { cert: /c, key: /k } }" },
    "conflict",
    "without FELIX_INTERNAL_TLS_CA",
  ],
  [
    "inbound per source",
    { env: { FELIX_INTERNAL_MAX_INBOUND_PER_SOURCE: "513" } },
    "conflict",
    "INBOUND",
  ],
  [
    "visibility",
    { yaml: "groups: { max_visibility_ms: 1000 }" },
    "conflict",
    "FELIX_GROUP_MAX_VISIBILITY_MS",
  ],
  [
    "same port twice",
    { env: { FELIX_QUIC_ALPN_BIND: "0.0.0.0:5000" } },
    "conflict",
    "FELIX_QUIC_ALPN_BIND",
  ],
  [
    "ALPN twice",
    { env: { FELIX_QUIC_ALPN_BIND: "0.0.0.0:5001", FELIX_TLS_REQUIRE_ALPN: "1" } },
    "conflict",
    "FELIX_TLS_REQUIRE_ALPN",
  ],
];

for (const [name, options, code, part] of REFUSED) {
  Deno.test(`refused: ${name}`, () => {
    const error = refusal(options);
    assertEquals(error.code, code, error.message);
    assertStringIncludes(error.message, part);
  });
}

Deno.test("equality is allowed everywhere", () => {
  load({
    env: {
      FELIX_EVENT_BATCH_MAX_BYTES: "16777216",
      FELIX_BROKER_PUBLISH_INFLIGHT_BYTES: "16777216",
      FELIX_BROKER_PUBLISH_CONN_TOTAL_INFLIGHT_BYTES: "16777216",
      FELIX_MAX_SUBSCRIPTIONS_PER_CONN_TOTAL: "4096",
      FELIX_INTERNAL_MAX_INBOUND_PER_SOURCE: "512",
      FELIX_TLS_CLIENT_CERT_BIND_SUBJECT: "false",
    },
  });
});

Deno.test("a secret is not in the message that refuses it", () => {
  const error = refusal({ env: { FELIX_NODE_REFRESH_TOKEN: "very-secret" } });
  assertEquals(error.message.includes("very-secret"), false);
});

Deno.test("help and version need no settings", () => {
  const input = { env: {}, readFile: () => null };
  assertEquals(loadConfig({ ...input, args: ["--help"] }).mode, "help");
  assertEquals(loadConfig({ ...input, args: ["--version"] }).mode, "version");
  assertThrows(() => loadConfig({ ...input, args: [] }), ConfigError);
});
