// The least broker's answers: what the published client needs, byte for byte where the spec shows
// it.

import { assertEquals } from "@std/assert";
import { frameText, jsonFrame, wholeFrame } from "../frames.ts";
import { Answers, LeastBroker } from "./answers.ts";

/** Answers as JSON texts, and how many bytes of `input` were used. */
function answersTo(input: Uint8Array): { used: number; texts: string[] } {
  const out = new Answers();
  const used = new LeastBroker(2).answer(input, out);
  const texts: string[] = [];
  for (let at = 0; at < out.length;) {
    const length = wholeFrame(out.bytes.subarray(at, out.length));
    texts.push(frameText(out.bytes.subarray(at, at + length)));
    at += length;
  }
  return { used, texts };
}

const SCOPE = { tenant_id: "t1", namespace: "default", cache: "sessions", key: "k" };

Deno.test("an acked publish is acknowledged with its request id", () => {
  const publish = Uint8Array.fromHex(
    "464c58310001000900000027000000000000000501000461636d65000470726f6400066f72646572730000000100" +
      "0000026869",
  );
  const out = new Answers();
  assertEquals(new LeastBroker(2).answer(publish, out), publish.length);
  const ack = out.bytes.subarray(0, out.length).toHex();
  assertEquals(ack, "464c5831000100100000000b0000000000000000050000");
});

Deno.test("an unacked publish is not answered", () => {
  const publish = Uint8Array.fromHex("464c58310001000100000003616263");
  assertEquals(answersTo(publish), { used: publish.length, texts: [] });
});

Deno.test("a cache get finds the fixed value under the key that was asked for", () => {
  const { texts } = answersTo(jsonFrame({ type: "cache_get", ...SCOPE, request_id: 17 }));
  assertEquals(
    texts.map((text) => JSON.parse(text)),
    [{ type: "cache_value", ...SCOPE, value: "YWE=", request_id: 17 }],
  );
});

Deno.test("a cache put is confirmed, whatever follows its request id", () => {
  const put = { type: "cache_put", ...SCOPE, value: "dg==", request_id: 903, ttl_ms: null };
  assertEquals(answersTo(jsonFrame(put)).texts, ['{"type":"cache_ok","request_id":903}']);
});

Deno.test("auth, topology and stream_shards get an answer of their own", () => {
  const types = ["auth", "topology", "stream_shards"].map((type) => {
    const { texts } = answersTo(jsonFrame({ type, request_id: 1 }));
    return (JSON.parse(texts[0] ?? "{}") as { type: string }).type;
  });
  assertEquals(types, ["auth_ok", "topology_view", "stream_shards_view"]);
});

Deno.test("a frame that has not arrived whole is left for the next read", () => {
  const first = jsonFrame({ type: "cache_get", ...SCOPE, request_id: 1 });
  const both = new Uint8Array(first.length * 2 - 1);
  both.set(first);
  both.set(first.subarray(0, -1), first.length);
  const { used, texts } = answersTo(both);
  assertEquals([used, texts.length], [first.length, 1]);
  assertEquals(answersTo(first.subarray(0, 5)), { used: 0, texts: [] });
});
