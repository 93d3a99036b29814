// Directory names against the reference table (spec/storage.md §2.1).

import { assertEquals } from "@std/assert";
import { shardDirectoryName, shardLabel } from "./shard_directory.ts";

const rows: [string, string, string, number, string][] = [
  ["acme", "default", "orders", 0, "acme_default_orders_0-0d3aed4b998d2798"],
  ["acme", "default", "orders", 1, "acme_default_orders_1-0d3aee4b998d294b"],
  ["t1", "default", "jobs", 0, "t1_default_jobs_0-e021f5291ded5dba"],
  ["../../etc", "..", "/passwd", 0, "______etc_____passwd_0-2df6a66000fd3dfc"],
  ["", "", "", 0, "______0-17d9c15239d081d5"],
  ["t", "n", "Größe", 0, "t_n_Gr__e_0-d3f2b28c8eef5865"],
];

for (const [tenant, namespace, name, shard, expected] of rows) {
  Deno.test(`the directory of ${JSON.stringify([tenant, namespace, name, shard])}`, () => {
    assertEquals(shardDirectoryName({ tenant, namespace, name, shard }), expected);
  });
}

Deno.test("a label is the path of a shard", () => {
  const key = { tenant: "t", namespace: "n", name: "s", shard: 3 };
  assertEquals(shardLabel(key), "t/n/s/3");
});
