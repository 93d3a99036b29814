// spec/wire.md §4.6: cache requests of one stream are answered in order, with the id they came
// with; values and ids come back exactly.

import { assert, assertEquals } from "@std/assert";
import { poll } from "../support/poll.ts";
import { DevBroker } from "../support/servers.ts";
import { concat, json, readJson } from "./frames.ts";
import { FULL_OFFER, RawConnection } from "./raw_client.ts";

/** A client that is not told versions, which only caches on logs have. */
const OFFER = {
  ...FULL_OFFER,
  client_features: (FULL_OFFER.client_features! & ~0x0200_0000) >>> 0,
};
const scope = { tenant_id: "t1", namespace: "default", cache: "sessions" };

function put(key: string, value: string, more: Record<string, unknown> = {}): Uint8Array {
  return json({ type: "cache_put", ...scope, key, value: btoa(value), ...more });
}

async function putGetDelete(connection: RawConnection): Promise<void> {
  const stream = await connection.stream(OFFER);
  const get = { type: "cache_get", ...scope, key: "k" };
  const hit = { type: "cache_value", ...scope, key: "k", value: btoa("v") };
  const miss = { ...hit, value: null };
  await stream.send(put("k", "v", { request_id: 1, ttl_ms: null }));
  assertEquals(await stream.message(), { type: "cache_ok", request_id: 1 });
  assertEquals(await stream.ask({ ...get, request_id: 2 }), { ...hit, request_id: 2 });
  const remove = { type: "cache_delete", ...scope, key: "k" };
  assertEquals(await stream.ask({ ...remove, request_id: 3 }), { ...hit, request_id: 3 });
  assertEquals(await stream.ask({ ...get, request_id: 4 }), { ...miss, request_id: 4 });
  assertEquals(await stream.ask({ ...remove, request_id: 5 }), { ...miss, request_id: 5 });
  await stream.finish();
}

async function pipelined(connection: RawConnection): Promise<void> {
  const stream = await connection.stream(OFFER);
  const count = 500;
  const requests = Array.from({ length: count }, (_, index) => [
    put(`p${index % 50}`, `v${index}`, { request_id: 2 * index }),
    json({ type: "cache_get", ...scope, key: `p${index % 50}`, request_id: 2 * index + 1 }),
  ]).flat();
  const reading = (async () => {
    for (let index = 0; index < count; index++) {
      assertEquals(await stream.message(), { type: "cache_ok", request_id: 2 * index });
      assertEquals(await stream.message(), {
        type: "cache_value",
        ...scope,
        key: `p${index % 50}`,
        value: btoa(`v${index}`),
        request_id: 2 * index + 1,
      });
    }
  })();
  for (let from = 0; from < requests.length; from += 64) {
    await stream.send(concat(...requests.slice(from, from + 64)));
  }
  await reading;
  await stream.finish();
}

async function unusualKeysAndValues(connection: RawConnection): Promise<void> {
  const stream = await connection.stream(OFFER);
  const all = String.fromCharCode(...Array.from({ length: 256 }, (_, byte) => byte));
  const keys = ["", "ключ / 鍵 / 🔑", 'quote " slash \\ line\n', "k".repeat(4000)];
  for (const [index, key] of keys.entries()) {
    await stream.send(put(key, all, { request_id: index }));
    assertEquals((await stream.message())["type"], "cache_ok");
    const answer = await stream.ask({ type: "cache_get", ...scope, key, request_id: index });
    assertEquals([answer["key"], answer["value"]], [key, btoa(all)]);
  }
  await stream.send(put("empty", "", { request_id: 9 }));
  assertEquals((await stream.message())["type"], "cache_ok");
  const empty = await stream.ask({ type: "cache_get", ...scope, key: "empty", request_id: 9 });
  assertEquals(empty["value"], "");
  await stream.finish();
}

async function requestIdsPast53Bits(connection: RawConnection): Promise<void> {
  const stream = await connection.stream(OFFER);
  const id = "18446744073709551615";
  const names = '"tenant_id":"t1","namespace":"default","cache":"sessions","key":"big"';
  await stream.send(json(`{"type":"cache_put",${names},"value":"dg==","request_id":${id}}`));
  assertEquals(await stream.text(), `{"type":"cache_ok","request_id":${id}}`);
  await stream.send(json(`{"request_id":${id},${names},"type":"cache_get"}`));
  const value = `{"type":"cache_value",${names},"value":"dg==","request_id":${id}}`;
  assertEquals(await stream.text(), value);
  await stream.finish();
}

async function expiry(connection: RawConnection): Promise<void> {
  const stream = await connection.stream(OFFER);
  const value = async (key: string): Promise<unknown> =>
    (await stream.ask({ type: "cache_get", ...scope, key, request_id: 1 }))["value"];
  await stream.send(put("now", "v", { request_id: 1, ttl_ms: 0 }));
  await stream.message();
  assertEquals(await value("now"), null);
  await stream.send(put("soon", "v", { request_id: 1, ttl_ms: 300 }));
  await stream.message();
  await poll(async () => await value("soon") === null, { what: "expiry" });
  await stream.send(put("kept", "v", { request_id: 1, ttl_ms: 1 }));
  await stream.message();
  await stream.send(put("kept", "w", { request_id: 1 }));
  await stream.message();
  await poll(async () => await value("now") === null);
  assertEquals(await value("kept"), btoa("w"), "a put without a ttl removes the expiry");
  await stream.finish();
}

async function tooLarge(connection: RawConnection): Promise<void> {
  const stream = await connection.stream(OFFER);
  await stream.send(put("large", "x".repeat(8 * 1024 * 1024 + 1), { request_id: 1 }));
  const refused = await stream.message();
  assertEquals([refused["type"], refused["code"]], ["error", "limit_exceeded"]);
  assert(String(refused["message"]).startsWith("cache put not served: "));
  const answer = await stream.ask({ type: "cache_get", ...scope, key: "large", request_id: 2 });
  assertEquals(answer["value"], null);
  await stream.finish();
}

const KINDS = [{ name: "in memory", durable: false }, { name: "on logs", durable: true }];

KINDS.forEach(({ name, durable }) =>
  Deno.test({
    name: `cache requests, ${name}`,
    sanitizeOps: true,
    sanitizeResources: true,
    fn: async (test) => {
      await using broker = await DevBroker.start({ durable });
      await using connection = await RawConnection.connect(broker);
      await test.step("put, get, delete", () => putGetDelete(connection));
      await test.step("pipelined, answered in order", () => pipelined(connection));
      await test.step("unusual keys and values", () => unusualKeysAndValues(connection));
      await test.step("request ids past 2^53", () => requestIdsPast53Bits(connection));
      await test.step("expiry", () => expiry(connection));
      await test.step("values up to 8 MiB", () => tooLarge(connection));
      await test.step("the connection still serves", () => connection.assertServes());
    },
  })
);

KINDS.forEach(({ name, durable }) =>
  Deno.test({
    name: `a cache wider than one shard answers as one, ${name}`,
    sanitizeOps: true,
    sanitizeResources: true,
    fn: async () => {
      await using broker = await DevBroker.start({ durable });
      await using connection = await RawConnection.connect(broker);
      const stream = await connection.stream(OFFER);
      const wide = { ...scope, cache: "wide" };
      const shards = await stream.ask({ type: "cache_shards", ...wide, request_id: 1 });
      assert(Number(shards["shards"]) > 1);
      for (let index = 0; index < 100; index++) {
        const value = btoa(`v${index}`);
        await stream.send(
          json({ type: "cache_put", ...wide, key: `k${index}`, value, request_id: index }),
        );
        assertEquals(readJson(await stream.frame())["type"], "cache_ok");
      }
      for (let index = 0; index < 100; index++) {
        const request = { type: "cache_get", ...wide, key: `k${index}`, request_id: index };
        assertEquals((await stream.ask(request))["value"], btoa(`v${index}`));
      }
      await stream.finish();
    },
  })
);
