// Options from the environment and from the flat YAML file (spec/client.md §17). What cannot be
// read is an error that names it.

import { assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import { join } from "@std/path";
import { configFromEnv } from "./configuration.ts";
import { InvalidArgumentError } from "./failure/classes.ts";
import { parseFlatYaml } from "./flat_yaml.ts";

function withFile(text: string, run: (path: string) => void): void {
  const directory = Deno.makeTempDirSync();
  try {
    const path = join(directory, "client.yml");
    Deno.writeTextFileSync(path, text);
    run(path);
  } finally {
    Deno.removeSync(directory, { recursive: true });
  }
}

Deno.test("nothing set, nothing configured", () => {
  assertEquals(configFromEnv({}), {});
});

Deno.test("every variable has its place", () => {
  const options = configFromEnv({
    FELIX_BROKERS: "a:1,b:2",
    FELIX_AUTH_TENANT: "t1",
    FELIX_NAMESPACE: "prod",
    FELIX_AUTH_TOKEN: "secret",
    FELIX_CA_FILE: "ca.pem",
    FELIX_SERVER_NAME: "felix",
    FELIX_SUB_CONNS: "2",
    FELIX_CACHE_CONN_POOL: "3",
    FELIX_CACHE_STREAMS_PER_CONN: "5",
    FELIX_PUB_CONN_POOL: "6",
    FELIX_PUB_STREAMS_PER_CONN: "7",
    FELIX_PUBLISH_SHARDING: "rr",
    FELIX_PUB_SHARD_STREAMS: "0",
    FELIX_CLUSTER_CONN_POOL: "9",
    FELIX_CLUSTER_STREAMS_PER_CONN: "10",
    FELIX_PUBLISH_QUEUE_DEPTH: "11",
    FELIX_PUBLISH_INFLIGHT_BYTES: "12",
    FELIX_CLIENT_SUB_QUEUE_CAPACITY: "13",
    FELIX_CLIENT_SUB_QUEUE_POLICY: "drop_old",
    FELIX_EVENT_ROUTER_MAX_PENDING: "14",
    FELIX_MAX_FRAME_BYTES: "1048576",
    FELIX_KEEPALIVE_MS: "15",
    FELIX_MAX_IDLE_TIMEOUT_MS: "16",
    FELIX_EVENT_SEND_WINDOW: "1024",
    FELIX_BENCH_EMBED_TS: "true",
  });
  assertEquals(options, {
    addresses: "a:1,b:2",
    tenant: "t1",
    namespace: "prod",
    token: "secret",
    serverName: "felix",
    tls: { caFile: "ca.pem" },
    pools: {
      event: { connections: 2 },
      cache: { connections: 3, streamsPerConnection: 5 },
      publish: {
        connections: 6,
        streamsPerConnection: 7,
        sharding: "roundRobin",
        shardStreams: 0,
      },
      shared: { maxConnections: 9, streamsPerConnection: 10 },
    },
    limits: { publishQueueDepth: 11, publishInflightBytes: 12, eventRouterMaxPending: 14 },
    subscribe: { buffer: { overflow: "dropOld", maxEvents: 13 } },
    maxFrameBytes: 1048576,
    keepAliveMs: 15,
    idleTimeoutMs: 16,
  });
});

Deno.test("the environment wins over the file", () => {
  withFile("publish_queue_depth: 5\ncache_conn_pool: 2 # two\n", (path) => {
    const options = configFromEnv({
      FELIX_CLIENT_CONFIG: path,
      FELIX_PUBLISH_QUEUE_DEPTH: "9",
    });
    assertEquals(options.limits, { publishQueueDepth: 9 });
    assertEquals(options.pools, { cache: { connections: 2 } });
  });
});

Deno.test("an unknown key is an error that names it", () => {
  withFile("event_conn_pool: 1\nevent_con_pool: 1\n", (path) => {
    const error = assertThrows(
      () => configFromEnv({ FELIX_CLIENT_CONFIG: path }),
      InvalidArgumentError,
    );
    assertStringIncludes(error.message, "event_con_pool");
  });
});

Deno.test("what cannot be read is an error, not a default", () => {
  const wrong: Record<string, string>[] = [
    { FELIX_EVENT_CONN_POOL: "many" },
    { FELIX_EVENT_CONN_POOL: "0" },
    { FELIX_EVENT_CONN_POOL: "1.5" },
    { FELIX_EVENT_SEND_WINDOW: "256MiB" },
    { FELIX_CLIENT_SUB_QUEUE_POLICY: "drop" },
    { FELIX_PUB_SHARDING: "toString" },
    { FELIX_CLIENT_CERT_FILE: "cert.pem" },
    { FELIX_BENCH_EMBED_TS: "maybe" },
  ];
  for (const env of wrong) assertThrows(() => configFromEnv(env), InvalidArgumentError);
});

Deno.test("flat YAML: comments, quotes, empty values", () => {
  const text = "---\n# all of it\na: 1\nb: 'it''s'  # no comment inside: '#'\nc: \"x # y\"\nd:\n";
  assertEquals([...parseFlatYaml(text)], [["a", "1"], ["b", "it's"], ["c", "x # y"], ["d", ""]]);
});

Deno.test("YAML that is not flat is refused", () => {
  for (
    const text of ["a:\n  b: 1", "a: 1\na: 2", "a: [1]", "a: {b: 1}", "- a", "a: |", 'a: "\\n"']
  ) {
    assertThrows(() => parseFlatYaml(text), InvalidArgumentError);
  }
});
