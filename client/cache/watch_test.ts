// Watches of a cache against a scripted broker (spec/client.md §9; conformance ids of §22 in
// brackets, scenarios of spec/semantics.md §12 by number): what is asked, what is handed out.

import { assert, assertEquals, assertRejects } from "@std/assert";
import { shardForKey } from "@felix/wire";
import {
  AuthError,
  ClosedError,
  CursorError,
  InvalidArgumentError,
  TimeoutError,
  UnsupportedError,
} from "../failure/classes.ts";
import { connectTo, networkTest, until } from "../testing/fixture.ts";
import { ScriptedBroker } from "../testing/scripted_broker.ts";
import { brief, inTurn, items, watch, watchBroker } from "../testing/watches.ts";
import type { WatchOptions } from "./watch_types.ts";

networkTest("a key is watched [watch.delivers_changes_for_the_filter, CA16]", async () => {
  const { broker, asked } = await watchBroker(inTurn({
    at: 7,
    play: (events) => {
      events.change("k", "a", 7);
      events.change("k", "", 9, 1_700_000_000_000);
    },
  }));
  await using _broker = broker;
  await using client = await connectTo(broker);
  await using watched = await watch(client, { key: "k" });
  assertEquals([watched.retainedCount, watched.resumeOffset], [null, 7n]);
  const scope = { tenant_id: "t1", namespace: "default", cache: "sessions" };
  assertEquals(asked, [{ type: "cache_watch", ...scope, key: "k", retained: false }]);
  assertEquals(await watched.next(), {
    type: "change",
    key: "k",
    value: new TextEncoder().encode("a"),
    offset: 7n,
    shard: 0,
    expiresAt: null,
    retained: false,
  });
  assertEquals(watched.resumeOffset, 8n);
  const second = await watched.next();
  assert(second?.type === "change");
  assertEquals([second.value, second.expiresAt], [
    new Uint8Array(0),
    new Date(1_700_000_000_000),
  ]);
  assertEquals(watched.resumeOffsets(), new Map([[0, 10n]]));
});

networkTest("a prefix, removals [watch.deletes_arrive_as_changes, CA17]", async () => {
  const { broker, asked } = await watchBroker(inTurn({
    play: (events) => {
      events.change("u:1", "a", 0);
      events.change("u:1", null, 2);
    },
  }));
  await using _broker = broker;
  await using client = await connectTo(broker);
  await using watched = await watch(client, { prefix: "u:" });
  assertEquals(asked.map(({ prefix, shard }) => [prefix, shard]), [["u:", 0]]);
  assertEquals(await items(watched, 2), ["u:1=a@0", "u:1-@2"]);
});

networkTest("current values first [watch.retained_delivers_state_before_changes]", async () => {
  const { broker, asked } = await watchBroker(inTurn({
    at: 10,
    retained: 2,
    play: (events) => {
      events.change("b", "2", 8);
      events.change("a", "1", 3);
      events.change("a", "x", 11);
    },
  }));
  await using _broker = broker;
  await using client = await connectTo(broker);
  await using watched = await watch(client, { prefix: "", retained: true });
  assertEquals([asked[0]!.retained, watched.retainedCount], [true, 2n]);
  assertEquals(await items(watched, 1), ["*b=2@8"]);
  assertEquals(watched.resumeOffsets(), new Map(), "half of it cannot be resumed");
  assertEquals(await items(watched, 3), ["*a=1@3", "complete", "a=x@11"]);
  assertEquals(watched.resumeOffset, 12n);
});

networkTest("no current value is a definite answer [CA20]", async () => {
  const { broker } = await watchBroker(inTurn({
    at: 4,
    play: (events) => events.change("a", "1", 4),
  }));
  await using _broker = broker;
  await using client = await connectTo(broker);
  await using watched = await watch(client, { prefix: "", retained: true });
  assertEquals(watched.retainedCount, 0n);
  assertEquals(await items(watched, 2), ["complete", "a=1@4"]);
});

networkTest("changes from an offset on [watch.resumes_from_an_offset, CA18]", async () => {
  const { broker, asked } = await watchBroker(inTurn({
    at: 9,
    play: (events) => {
      events.change("a", "1", 3);
      events.change("a", "2", 6);
    },
  }));
  await using _broker = broker;
  await using client = await connectTo(broker);
  await using watched = await watch(client, { prefix: "", from: 3n });
  assertEquals([asked[0]!.from_offset, asked[0]!.retained], [3n, false]);
  assertEquals([watched.resumeOffset, watched.retainedCount], [3n, null]);
  assertEquals(await items(watched, 2), ["a=1@3", "a=2@6"]);
  assertEquals(watched.resumeOffset, 7n);
});

networkTest("history that was compacted away: current values, said first [CA19]", async () => {
  const { broker } = await watchBroker(inTurn({
    at: 9,
    resnapshot: true,
    play: (events) => {
      events.change("b", "1", 8);
      events.change("a", "1", 5);
      events.change("a", "2", 9);
    },
  }));
  await using _broker = broker;
  await using client = await connectTo(broker);
  await using watched = await watch(client, { prefix: "", from: { 0: 3n } });
  assertEquals(await items(watched, 3), ["resnapshot 0", "*b=1@8", "*a=1@5"]);
  assertEquals(watched.resumeOffset, 3n, "nobody said that these were all");
  assertEquals(await items(watched, 1), ["a=2@9"]);
  assertEquals(watched.resumeOffset, 10n);
});

networkTest("all shards, one state [CA24 is never asked]", async () => {
  const { broker, asked } = await watchBroker(({ shard }) => ({
    at: 10 * shard!,
    retained: shard === 1 ? 1 : 0,
    play: (events) => {
      if (shard === 1) events.change("k1", "v", 3);
      if (shard === 2) events.change("k2", "v", 20);
    },
  }));
  await using _broker = broker;
  broker.memory.cacheWidth = 3;
  await using client = await connectTo(broker);
  await using watched = await watch(client, { prefix: "k", retained: true });
  assertEquals(asked.map(({ shard }) => shard).sort(), [0, 1, 2]);
  assertEquals([watched.retainedCount, watched.resumeOffset], [1n, null]);
  const seen = await items(watched, 3);
  assertEquals(seen.toSorted(), ["*k1=v@3", "complete", "k2=v@20"]);
  assert(seen.indexOf("*k1=v@3") < seen.indexOf("complete"));
  assertEquals(watched.resumeOffsets(), new Map([[0, 0n], [1, 10n], [2, 21n]]));
});

networkTest("one shard of several, and a key's own shard", async () => {
  const { broker, asked } = await watchBroker((_message, index) => ({
    play: (events) => index === 1 && events.change("customer-1", "v", 0),
  }));
  await using _broker = broker;
  broker.memory.cacheWidth = 8;
  await using client = await connectTo(broker);
  await using one = await watch(client, { prefix: "", shard: 5 });
  assertEquals(asked.map(({ shard }) => shard), [5]);
  assertEquals(one.resumeOffsets(), new Map([[5, 0n]]));
  await using key = await watch(client, { key: "customer-1" });
  const item = await key.next();
  const shard = shardForKey(new TextEncoder().encode("customer-1"), 8, "modulo");
  assertEquals(item?.type === "change" && item.shard, shard);
  assertEquals("shard" in asked[1]!, false, "the broker finds a key's shard itself");
});

networkTest("options are checked before anything is asked [CA21, CA22]", async () => {
  const { broker } = await watchBroker(inTurn());
  await using _broker = broker;
  await using client = await connectTo(broker);
  const wrong: WatchOptions[] = [
    {},
    { key: "k", prefix: "k" },
    { key: "" },
    { prefix: "", retained: true, from: 3n },
    { key: "k", shard: 1 },
    { prefix: "", shard: -1 },
    { prefix: "", shard: 0.5 },
    { prefix: "", onLag: "panic" as "end" },
    { prefix: "", shard: 1, from: { 0: 3n } },
    { prefix: "", shard: 1, from: new Map([[1, -1n]]) },
    { prefix: "", shard: 1, from: 3 as unknown as bigint },
    { prefix: "", timeoutMs: 0 },
  ];
  for (const options of wrong) {
    await assertRejects(() => watch(client, options), InvalidArgumentError);
  }
  assertEquals(broker.of("cache_watch").length, 0);
});

networkTest("a broker without watches is not asked [CA26]", async () => {
  for (const [features, missing] of [[0xc00, "cacheWatch"], [0xc40, "cacheWatchRetained"]]) {
    const { broker } = await watchBroker(inTurn(), { features: features as number });
    await using _broker = broker;
    await using client = await connectTo(broker);
    const error = await assertRejects(
      () => watch(client, { prefix: "", retained: true }),
      UnsupportedError,
    );
    assertEquals([error.feature, error.resource], [missing, "default/sessions/0"]);
    await assertRejects(() => client.cache("sessions").mirror({ prefix: "" }), UnsupportedError);
    assertEquals(broker.of("cache_watch").length, 0);
  }
  const { broker } = await watchBroker(inTurn(), { features: 0x840 });
  await using _broker = broker;
  await using client = await connectTo(broker);
  assertEquals((await assertRejects(() => watch(client), UnsupportedError)).feature, "cacheShards");
});

networkTest("a start that cannot be read and refusals are typed", async () => {
  await using broker = await ScriptedBroker.start({
    message(stream, message) {
      if (message.type !== "cache_watch") return false;
      if (message.prefix === "secret") stream.refuse("forbidden", "fatal");
      else {
        const offsets = { requested: 9n, available: 4n };
        stream.send({ type: "subscribe_cursor_error", reason: "in_future", ...offsets });
      }
      stream.finish();
      return true;
    },
  });
  await using client = await connectTo(broker);
  const cursor = await assertRejects(() => watch(client, { prefix: "", from: 9n }), CursorError);
  assertEquals([cursor.code, cursor.available, cursor.operation], [
    "cursor_in_future",
    4n,
    "cache.watch",
  ]);
  const refused = await assertRejects(() => watch(client, { prefix: "secret" }), AuthError);
  assertEquals([refused.operation, refused.resource], ["cache.watch", "default/sessions/0"]);
});

networkTest("a shard that cannot be opened fails all, and leaves nothing open", async () => {
  const { broker, asked } = await watchBroker(({ shard }) => shard === 1 ? undefined : {});
  await using _broker = broker;
  broker.memory.cacheWidth = 2;
  await using client = await connectTo(broker, { reconnect: { attempts: 2, backoffMs: 1 } });
  const error = await assertRejects(() => watch(client));
  assertEquals((error as { code?: string }).code, "shard_unavailable");
  assertEquals(asked.filter(({ shard }) => shard === 1).length, 2, "retried as the policy says");
  await until(() =>
    client.connections().every(({ role, streams }) => role !== "event" || streams === 0)
  );
});

networkTest("giving up a read loses nothing, reads are served in order", async () => {
  const { broker, events } = await watchBroker(inTurn({}));
  await using _broker = broker;
  await using client = await connectTo(broker);
  await using watched = await watch(client);
  await assertRejects(() => watched.next({ timeoutMs: 10 }), TimeoutError);
  const abort = new AbortController();
  const given = watched.next({ signal: abort.signal });
  const [first, second] = [watched.next(), watched.next()];
  abort.abort(new Error("enough"));
  assertEquals(await assertRejects(() => given), abort.signal.reason);
  await assertRejects(() => watched.next({ signal: abort.signal }));
  events[0]!.change("a", "1", 0);
  events[0]!.change("a", "2", 1);
  assertEquals([brief(await first), brief(await second)], ["a=1@0", "a=2@1"]);
});

networkTest("opening can be given up, closing ends reads", async () => {
  // It never answers, nor does it end the stream.
  const silent = await ScriptedBroker.start({
    message: (_stream, { type }) => type === "cache_watch" && new Promise<boolean>(() => undefined),
  });
  await using _silent = silent;
  const abort = new AbortController();
  await using waiting = await connectTo(silent);
  const opening = watch(waiting, { prefix: "", signal: abort.signal });
  await until(() => silent.of("cache_watch").length === 1);
  abort.abort(new Error("enough"));
  assertEquals(await assertRejects(() => opening), abort.signal.reason);

  const { broker } = await watchBroker(() => ({}));
  await using _broker = broker;
  const client = await connectTo(broker);
  const [closed, broken, orphan] = [await watch(client), await watch(client), await watch(client)];
  const reading = [closed.next(), closed.next({ timeoutMs: 20_000 })];
  await closed.close();
  await closed.close();
  assertEquals(await Promise.all(reading), [null, null]);
  assertEquals(await closed.next(), null);
  const iterator = broken[Symbol.asyncIterator]();
  const pending = iterator.next();
  await iterator.return!();
  assertEquals((await pending).done, true);
  const last = orphan.next();
  await client.close();
  assertEquals(await last, null);
  await assertRejects(() => watch(client), ClosedError);
});

networkTest("a full buffer stops reading, then it goes on [bounded in bytes]", async () => {
  const count = 400;
  const value = "x".repeat(16 * 1024);
  let sent = 0;
  const { broker } = await watchBroker(inTurn({
    play: (events) => {
      void (async () => {
        for (let n = 0; n < count; n++) {
          await events.changed("k", value, n);
          sent++;
        }
      })();
    },
  }));
  await using _broker = broker;
  await using client = await connectTo(broker, { subscribe: { buffer: { maxBytes: 64 * 1024 } } });
  await using watched = await watch(client);
  assertEquals((await items(watched, 1))[0]!.endsWith("@0"), true);
  // The transport holds what it may and then stops taking more.
  let [before, still] = [0, 0];
  await until(() => {
    still = sent === before && sent > 0 ? still + 1 : 0;
    before = sent;
    return still === 20;
  });
  assert(sent < count, "everything went out although nobody reads");
  for (let n = 1; n < count; n++) {
    const item = await watched.next({ timeoutMs: 20_000 });
    assert(item?.type === "change" && item.offset === BigInt(n));
  }
  assertEquals(sent, count);
});
