// Reading cache requests in place must mean what the codec means: whatever is accepted here is
// decoded the same there, and every answer has the codec's bytes.

import { assert, assertEquals } from "@std/assert";
import fc from "fast-check";
import { ByteWriter, decodeMessage, encodeMessage } from "@felix/wire";
import type { CacheDeleteMessage, CacheGetMessage, CachePutMessage, Message } from "@felix/wire";
import { QuickCache, QuickRequest } from "./quick_cache.ts";

const TENANT = "t1";
const NAMESPACE = "default";
const CACHE = "sessions";
const scope = { tenant_id: TENANT, namespace: NAMESPACE, cache: CACHE };

function payloadOf(message: Message): Uint8Array {
  const out = new ByteWriter();
  encodeMessage(message, out);
  return out.written().subarray(12);
}

const key = fc.oneof(
  fc.string({ unit: "grapheme-ascii", maxLength: 40 }),
  fc.string({ unit: "grapheme", maxLength: 10 }),
);
const value = fc.uint8Array({ maxLength: 300 });
const requestId = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n });

const request: fc.Arbitrary<CacheGetMessage | CachePutMessage | CacheDeleteMessage> = fc.oneof(
  fc.record({ key, request_id: requestId }).map((rest) => ({
    type: "cache_get" as const,
    ...scope,
    ...rest,
  })),
  fc.record({ key, request_id: requestId }).map((rest) => ({
    type: "cache_delete" as const,
    ...scope,
    ...rest,
  })),
  fc.record({ key, value, request_id: requestId, ttl_ms: fc.option(fc.constant(5n)) }).map(
    (rest) => ({ type: "cache_put" as const, ...scope, ...rest }),
  ),
);

Deno.test("what is read in place is what the codec reads, and is answered in its bytes", () => {
  const quick = new QuickCache(TENANT, NAMESPACE, CACHE);
  const into = new QuickRequest();
  let read = 0;
  fc.assert(
    fc.property(request, fc.option(value), (message, found) => {
      const payload = payloadOf(message);
      if (!quick.read(payload, into)) return;
      read++;
      assertEquals(`cache_${into.operation}`, message.type);
      assertEquals(into.key, message.key);
      const out = new ByteWriter();
      const expected = new ByteWriter();
      const request_id = message.request_id!;
      if (message.type === "cache_put") {
        assertEquals([...into.value!], [...message.value]);
        assertEquals(message.ttl_ms, null, "a time to live goes through the codec");
        quick.answerOk(out, payload, into);
        encodeMessage({ type: "cache_ok", request_id }, expected);
      } else {
        quick.answerValue(out, payload, into, found);
        const answer = { type: "cache_value", ...scope, key: message.key, request_id } as const;
        encodeMessage({ ...answer, value: found }, expected);
      }
      assertEquals(out.written(), expected.written());
    }),
    { numRuns: 2000 },
  );
  assert(read > 200, `the usual requests are read in place, not ${read} of 2000`);
});

Deno.test("a damaged request is either left to the codec or means the same there", () => {
  const quick = new QuickCache(TENANT, NAMESPACE, CACHE);
  const into = new QuickRequest();
  fc.assert(
    fc.property(request, fc.nat(), fc.nat({ max: 255 }), fc.nat(), (message, at, byte, cut) => {
      const whole = payloadOf(message);
      const damaged = whole.slice(0, cut % 3 === 0 ? cut % (whole.length + 1) : whole.length);
      if (damaged.length > 0) damaged[at % damaged.length] = byte;
      if (!quick.read(damaged, into)) return;
      const decoded = decodeMessage(damaged);
      assertEquals(decoded.type, `cache_${into.operation}`);
      assert("key" in decoded && "request_id" in decoded && "cache" in decoded);
      assertEquals(decoded.key as unknown, into.key);
      assertEquals([decoded.cache, decoded.namespace, decoded.tenant_id] as unknown[], [
        CACHE,
        NAMESPACE,
        TENANT,
      ]);
      const digits = new TextDecoder().decode(damaged.subarray(into.idStart, into.idEnd));
      assertEquals(decoded.request_id, BigInt(digits));
    }),
    { numRuns: 5000 },
  );
});

Deno.test("requests to another cache and unusual ones are left to the codec", () => {
  const quick = new QuickCache(TENANT, NAMESPACE, CACHE);
  const into = new QuickRequest();
  const get = { type: "cache_get", ...scope, key: "k", request_id: 1n } as const;
  assert(quick.read(payloadOf(get), into));
  const others: Message[] = [
    { ...get, cache: "session" },
    { ...get, tenant_id: "t2" },
    { ...get, key: 'a"b' },
    { ...get, key: "\u00e9" },
    { type: "cache_get", ...scope, key: "k" },
    { ...get, request_id: 2n ** 64n - 1n },
    { type: "cache_put", ...scope, key: "k", value: new Uint8Array(1), request_id: 1n, ttl_ms: 1n },
  ];
  for (const other of others) assertEquals(quick.read(payloadOf(other), into), false);
});
