// The arrows between rooms: the check refuses each kind of bad arrow, and this repository has none.

import { assertEquals } from "@std/assert";
import { checkArchitecture, declaredDoors, judgeReference } from "./architecture.ts";
import { type RepositoryFile, repositoryFiles } from "./repository.ts";

const manifests: RepositoryFile[] = [
  { path: "wire/deno.json", text: '{"name":"@felix/wire","exports":"./mod.ts"}' },
  { path: "transport/deno.json", text: '{"name":"@felix/transport","exports":"./mod.ts"}' },
  { path: "storage/deno.json", text: '{"name":"@felix/storage","exports":"./mod.ts"}' },
  {
    path: "broker/deno.json",
    text: '{"name":"@felix/broker","exports":{".":"./mod.ts","./config":"./config/mod.ts"}}',
  },
  { path: "client/deno.json", text: '{"name":"@felix/client","exports":"./mod.ts"}' },
];
const doors = declaredDoors(manifests);

const allowed: [string, string][] = [
  ["wire/a.ts", "./b.ts"],
  ["wire/a_test.ts", "@std/assert"],
  ["wire/a_test.ts", "fast-check"],
  ["transport/test_support/a.ts", "@std/assert"],
  ["wire/a_test.ts", "../tests/support/vectors.ts"],
  ["transport/a.ts", "@peculiar/x509"],
  ["transport/quiche/a.ts", "node:dgram"],
  ["transport/quiche/a.ts", "@matrixai/quic/native"],
  ["broker/server/a.ts", "@felix/wire"],
  ["broker/server/a.ts", "../core/mod.ts"],
  ["broker/config/a.ts", "yaml"],
  ["broker/core/a.ts", "@felix/storage"],
  ["broker/core/a.ts", "./b.ts"],
  ["client/a.ts", "@felix/transport"],
  ["tests/conformance/a_test.ts", "@felix/broker"],
  ["tests/conformance/a_test.ts", "@felix/broker/config"],
  ["tests/bench/a.ts", "ioredis"],
  ["tests/bench/a.ts", "../support/servers.ts"],
  ["examples/a.ts", "@felix/client"],
];

for (const [from, specifier] of allowed) {
  Deno.test(`${from} may import ${specifier}`, () => {
    assertEquals(judgeReference(from, specifier, doors), null);
  });
}

const refused: [string, string, string][] = [
  ["wire/a.ts", "@felix/transport", "wire must not know transport"],
  ["wire/a.ts", "yaml", "wire must not use the package yaml"],
  ["wire/a.ts", "npm:yaml@2.9.1", "wire must not use the package npm:yaml@2.9.1"],
  ["wire/a.ts", "node:fs", "wire must not use the package node:fs"],
  ["transport/a.ts", "@felix/wire", "transport must not know wire"],
  ["transport/a.ts", "../wire/frame.ts", "deep import of wire/frame.ts; use the room's door"],
  ["storage/a.ts", "yaml", "storage must not use the package yaml"],
  ["raft/a.ts", "@felix/wire", "raft must not know wire"],
  ["broker/server/a.ts", "@felix/client", "broker must not know client"],
  ["broker/server/a.ts", "ioredis", "broker must not use the package ioredis"],
  ["broker/core/a.ts", "@felix/wire", "broker/core must not know wire"],
  ["broker/core/a.ts", "@felix/transport", "broker/core must not know transport"],
  ["broker/core/a.ts", "@hono/hono", "broker/core must not use the package @hono/hono"],
  ["broker/core/a.ts", "../config/settings.ts", "broker/core imports broker/config/settings.ts"],
  ["controlplane/a.ts", "@felix/broker", "controlplane must not know broker"],
  ["client/a.ts", "jose", "client must not use the package jose"],
  ["client/a.ts", "@felix/broker", "client must not know broker"],
  [
    "client/a.ts",
    "../tests/support/servers.ts",
    "a room imports tests/support/servers.ts, which is outside the rooms",
  ],
  [
    "tests/a.ts",
    "../broker/server/session.ts",
    "deep import of broker/server/session.ts; use the room's door",
  ],
  ["tests/a.ts", "@felix/wire/frame.ts", "@felix/wire/frame.ts is no declared door of wire"],
  [
    "examples/a.ts",
    "https://example.org/x.ts",
    "https://example.org/x.ts: a dependency is named in deno.json",
  ],
];

for (const [from, specifier, fault] of refused) {
  Deno.test(`${from} must not import ${specifier}`, () => {
    assertEquals(judgeReference(from, specifier, doors), fault);
  });
}

Deno.test("a whole file is judged line by line, workers and dynamic imports included", () => {
  const text = [
    "// A wire file.",
    'import { a } from "./a.ts";',
    'const b = await import("@felix/transport");',
    'new Worker(new URL("../broker/server/worker.ts", import.meta.url));',
    "const now = Date.now(); // Date.now() in a comment is nobody's business",
  ].join("\n");
  assertEquals(checkArchitecture([...manifests, { path: "wire/x.ts", text }]), [
    "wire/x.ts:3: wire must not know transport",
    "wire/x.ts:4: deep import of broker/server/worker.ts; use the room's door",
    "wire/x.ts:5: wire uses Date.now: time, chance and I/O come in as arguments",
  ]);
});

Deno.test("every arrow of this repository is in the plan", async () => {
  assertEquals(checkArchitecture(await repositoryFiles()), []);
});
