// Catalog files: what they list, what is refused with its path, and what applying one changes.

import { assertEquals, assertStrictEquals, assertStringIncludes, assertThrows } from "@std/assert";
import { Pace, ValueMemory } from "@felix/storage";
import { FileCatalog } from "./catalog.ts";
import { CatalogError, parseCatalog } from "./catalog_file.ts";

const YAML = `
tenants:
  - id: t1
    namespaces:
      - name: default
        streams:
          - { name: events }
          - { name: wide, shards: 8, routing: jump_hash, durable: false }
        caches: [{ name: sessions }, { name: events, shards: 4 }]
      - name: empty
  - id: t2
`;

function fresh(): FileCatalog {
  return new FileCatalog({
    streams: {},
    cacheMemoryBytes: 1024 * 1024,
    store: null,
    retention: {},
    cacheEnvironment: {
      values: new ValueMemory(0),
      pace: new Pace(0, () => 0, () => Promise.resolve()),
      nowMs: () => 0,
      onCompactionFailed: () => {},
    },
  });
}

Deno.test("lists tenants, streams and caches with their defaults", () => {
  assertEquals(parseCatalog(YAML), {
    tenants: ["t1", "t2"],
    streams: [
      {
        tenant: "t1",
        namespace: "default",
        stream: "events",
        shards: 1,
        routing: "modulo",
        durable: false,
      },
      {
        tenant: "t1",
        namespace: "default",
        stream: "wide",
        shards: 8,
        routing: "jump_hash",
        durable: false,
      },
    ],
    caches: [
      { tenant: "t1", namespace: "default", cache: "sessions", shards: 1 },
      { tenant: "t1", namespace: "default", cache: "events", shards: 4 },
    ],
  });
  assertEquals(parseCatalog("").tenants, []);
  assertEquals(parseCatalog("tenants:").tenants, []);
});

const NS = "tenants: [{ id: t, namespaces: [{ name: n, ";
const BAD: [string, string][] = [
  ["- 1", "the catalog: must be a map"],
  ["tenant: []", "tenant: unknown key"],
  ["tenants: 1", "tenants: must be a list"],
  ["tenants: [1]", "tenants[0]: must be a map"],
  ["tenants: [{}]", "tenants[0].id: must be a name"],
  ["tenants: [{ id: 7 }]", "tenants[0].id: must be a name, in quotes"],
  ["tenants: [{ id: a }, { id: a }]", 'tenants[1].id: "a" is there twice'],
  ["tenants: [{ id: a, name: b }]", "tenants[0].name: unknown key"],
  ["tenants: [{ id: a, namespaces: {} }]", "tenants[0].namespaces: must be a list"],
  [`${NS} stream: [] }] }]`, "tenants[0].namespaces[0].stream: unknown key"],
  [`${NS} streams: [{ shards: 1 }] }] }]`, "streams[0].name: must be a name"],
  [`${NS} streams: [{ name: s, shards: 0 }] }] }]`, "streams[0].shards: must be a whole number"],
  [`${NS} streams: [{ name: s, shards: 1025 }] }] }]`, "from 1 to 1024"],
  [`${NS} streams: [{ name: s, shards: "2" }] }] }]`, "streams[0].shards"],
  [`${NS} streams: [{ name: s, routing: hash }] }] }]`, "streams[0].routing: must be modulo"],
  [`${NS} streams: [{ name: s, durable: 1 }] }] }]`, "must be true or false"],
  [`${NS} streams: [{ name: s }, { name: s }] }] }]`, 'streams[1].name: "s" is there twice'],
  [`${NS} caches: [{ name: c, routing: modulo }] }] }]`, "caches[0].routing: unknown key"],
  [`tenants: [{ id: "${"x".repeat(65_536)}" }]`, "longer than 65535 bytes"],
  ["tenants: [", "Flow sequence"],
];

for (const [text, part] of BAD) {
  Deno.test(`refused: ${part}`, () => {
    const error = assertThrows(() => parseCatalog(text), CatalogError, part);
    assertEquals(error.message.includes("\n"), false);
  });
}

Deno.test("an alias bomb is refused", () => {
  const levels = Array.from({ length: 9 }, (_, level) => {
    const previous = level === 0 ? '"x"' : `*a${level - 1}`;
    return `a${level}: &a${level} [${Array(9).fill(previous).join(",")}]`;
  });
  assertThrows(() => parseCatalog(levels.join("\n")), CatalogError);
});

Deno.test("applying adds what is new, removes what is gone, keeps what stays", async () => {
  const catalog = fresh();
  const first = await catalog.apply(parseCatalog(YAML));
  assertEquals(first.added, [
    "stream t1/default/events",
    "stream t1/default/wide",
    "cache t1/default/sessions",
    "cache t1/default/events",
  ]);
  assertEquals([...catalog.tenants], ["t1", "t2"]);
  const events = catalog.streams.find("t1", "default", "events")!;
  const wide = catalog.streams.find("t1", "default", "wide")!;
  assertEquals(wide.shards.length, 8);
  const second = await catalog.apply(parseCatalog(`
tenants:
  - id: t1
    namespaces:
      - name: default
        streams: [{ name: events }, { name: more, shards: 2 }]
        caches: [{ name: sessions }]
`));
  assertEquals(second, {
    added: ["stream t1/default/more"],
    removed: ["stream t1/default/wide", "cache t1/default/events"],
    refused: [],
  });
  assertStrictEquals(catalog.streams.find("t1", "default", "events"), events);
  assertEquals([events.active, wide.active], [true, false]);
  assertEquals(catalog.streams.find("t1", "default", "wide"), undefined);
  assertEquals(catalog.caches.find("t1", "default", "events"), undefined);
  assertEquals([...catalog.tenants], ["t1"]);
});

Deno.test("a changed width or routing is refused by name and stays as it was", async () => {
  const catalog = fresh();
  await catalog.apply(parseCatalog(YAML));
  const change = await catalog.apply(
    parseCatalog(YAML.replace("shards: 8", "shards: 4").replace("shards: 4 }]", "shards: 2 }]")),
  );
  assertEquals(change.refused.map((refusal) => refusal.name), [
    "stream t1/default/wide",
    "cache t1/default/events",
  ]);
  assertStringIncludes(change.refused[0]!.error, "exists with another width");
  assertEquals([change.added, change.removed], [[], []]);
  assertEquals(catalog.streams.find("t1", "default", "wide")!.shards.length, 8);
  assertEquals(catalog.caches.find("t1", "default", "events")!.shards.length, 4);
  const routing = await catalog.apply(parseCatalog(YAML.replace("jump_hash", "modulo")));
  assertEquals(routing.refused.length, 1);
});
