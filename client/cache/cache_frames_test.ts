// The short cuts for cache frames against the codec they stand in for. The codec is the reference:
// whatever it writes or reads, the short cuts must too.

import { ValueSlab } from "./value_slab.ts";
import { assertEquals } from "@std/assert";
import fc from "fast-check";
import { ByteWriter, decodeFrame, decodeMessage, encodeMessage } from "@felix/wire";
import type { Message } from "@felix/wire";
import { appendKeyRequest, appendPut, CachePieces, glance, quickValue } from "./cache_frames.ts";
import type { QuickAnswer } from "./cache_frames.ts";

const text = fc.oneof(
  fc.string({ minLength: 1 }),
  fc.string({ minLength: 1, unit: "grapheme" }),
  fc.constantFrom('"', "\\", "\n", "\u0001", "ключ", "/", "\u007f", 'a,"value":"b'),
);
const names = fc.tuple(text, text, text);
const id = fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER });

function frame(message: Message): Uint8Array {
  const out = new ByteWriter();
  encodeMessage(message, out);
  return out.take();
}

Deno.test("requests are the codec's, byte by byte", () => {
  const value = fc.uint8Array({ maxLength: 64 });
  const ttl = fc.option(fc.nat());
  fc.assert(
    fc.property(names, text, id, value, ttl, ([tenant_id, namespace, cache], key, n, bytes, ms) => {
      const pieces = new CachePieces(tenant_id, namespace, cache);
      const scope = { tenant_id, namespace, cache, key };
      const request_id = BigInt(n);
      const out = new ByteWriter();
      appendKeyRequest(out, pieces.get, key, n);
      assertEquals(out.take(), frame({ type: "cache_get", ...scope, request_id }));
      appendKeyRequest(out, pieces.delete, key, n);
      assertEquals(out.take(), frame({ type: "cache_delete", ...scope, request_id }));
      appendPut(out, pieces.put, { key, value: bytes, ttlMs: ms, requestId: n });
      const ttl_ms = ms === null ? null : BigInt(ms);
      const put = { type: "cache_put", ...scope, value: bytes, request_id, ttl_ms } as const;
      assertEquals(out.take(), frame(put));
    }),
  );
});

Deno.test("answers are read as the codec reads them", () => {
  const value = fc.option(fc.uint8Array({ maxLength: 200 }));
  fc.assert(
    fc.property(names, text, id, value, ([tenant_id, namespace, cache], key, n, bytes) => {
      const pieces = new CachePieces(tenant_id, namespace, cache);
      const request = new ByteWriter();
      const keyBytes = appendKeyRequest(request, pieces.get, key, n);
      const message: Message = {
        type: "cache_value",
        tenant_id,
        namespace,
        cache,
        key,
        value: bytes,
        request_id: BigInt(n),
      };
      const { payload } = decodeFrame(frame(message));
      const answer = glance(payload, { kind: "other", id: 0, position: 0 });
      assertEquals([answer.kind, answer.id], ["value", n]);
      const read = quickValue(
        payload,
        pieces.valuePrefixBytes + keyBytes,
        answer.position,
        new ValueSlab(),
      );
      assertEquals(read, bytes);
    }),
  );
});

Deno.test("cache_ok is recognised, everything else is left to the codec", () => {
  const look = (json: string): QuickAnswer =>
    glance(new TextEncoder().encode(json), { kind: "other", id: 0, position: 0 });
  assertEquals(look('{"type":"cache_ok","request_id":77}').kind, "ok");
  assertEquals(look('{"type":"cache_ok","request_id":77}').id, 77);
  const others = [
    '{"type":"ok"}',
    '{"type":"error","message":"no"}',
    '{"type":"publish_ok","request_id":77}',
    '{"request_id":77,"type":"cache_ok"}',
    '{"type":"cache_ok", "request_id":77}',
    '{"type":"cache_ok","request_id":}',
    "",
    "}",
  ];
  for (const json of others) assertEquals(look(json).kind, "other", json);
});

Deno.test("an answer that is laid out otherwise is not misread", () => {
  const json =
    '{"type":"cache_value","key":"k","tenant_id":"t","namespace":"n","cache":"c","x":1,' +
    '"value":"dg==","request_id":5}';
  const payload = new TextEncoder().encode(json);
  const answer = glance(payload, { kind: "other", id: 0, position: 0 });
  assertEquals(answer.kind, "value");
  const pieces = new CachePieces("t", "n", "c");
  assertEquals(
    quickValue(payload, pieces.valuePrefixBytes + 3, answer.position, new ValueSlab()),
    undefined,
  );
  const message = decodeMessage(payload);
  assertEquals(message.type === "cache_value" && message.value, new TextEncoder().encode("v"));
  const bad = new TextEncoder().encode(
    '{"type":"cache_value","tenant_id":"t","namespace":"n","cache":"c","key":"k",' +
      '"value":"d===","request_id":5}',
  );
  const seen = glance(bad, { kind: "other", id: 0, position: 0 });
  assertEquals(
    quickValue(bad, pieces.valuePrefixBytes + 3, seen.position, new ValueSlab()),
    undefined,
  );
});
