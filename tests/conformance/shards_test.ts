// Questions about topology and shards (spec/wire.md §4.3), as a broker that stands alone answers
// them: it owns everything it knows, and knows nothing of the rest.

import { assertEquals } from "@std/assert";
import { DevBroker } from "../support/servers.ts";
import { RawConnection, type RawStream } from "./raw_client.ts";

const scope = { tenant_id: "t1", namespace: "default" };

async function topology(stream: RawStream): Promise<void> {
  const { type, brokers } = await stream.ask({ type: "topology" }) as {
    type: unknown;
    brokers: { node_id: string; addr: string }[];
  };
  assertEquals(type, "topology_view");
  assertEquals(brokers.length <= 1, true);
  for (const { node_id, addr } of brokers) {
    assertEquals([typeof node_id, /:\d+$/.test(addr)], ["string", true]);
  }
}

async function shards(stream: RawStream): Promise<void> {
  const questions: [string, string, string][] = [
    ["stream_shards", "stream", "events"],
    ["cache_shards", "cache", "sessions"],
  ];
  for (const [type, member, name] of questions) {
    const question = { type, ...scope, request_id: 12 };
    assertEquals(await stream.ask({ ...question, [member]: name }), {
      type: `${type}_view`,
      shards: 1,
      request_id: 12,
    });
    assertEquals(await stream.ask({ ...question, [member]: "nowhere" }), {
      type: `${type}_view`,
      shards: 0,
      request_id: 12,
    });
  }
}

async function owners(stream: RawStream): Promise<void> {
  for (const [kind, name] of [["stream", "events"], ["cache", "sessions"]]) {
    const question = { type: "shard_owners", ...scope, kind, request_id: 13 };
    assertEquals(await stream.ask({ ...question, name }), {
      type: "shard_owners_view",
      owners: [{ shard: 0, generation: 0 }],
      request_id: 13,
    });
    assertEquals(await stream.ask({ ...question, name: "nowhere" }), {
      type: "shard_owners_view",
      owners: [],
      request_id: 13,
    });
  }
}

Deno.test({
  name: "topology and shards of a broker that stands alone",
  sanitizeOps: true,
  sanitizeResources: true,
  fn: async (test) => {
    await using broker = await DevBroker.start();
    await using connection = await RawConnection.connect(broker);
    const stream = await connection.stream();
    await test.step("topology", () => topology(stream));
    await test.step("shards", () => shards(stream));
    await test.step("owners", () => owners(stream));
    await stream.finish();
  },
});
