// Answers to publishes against the codec (spec/wire.md §5.5): the short cut must read what the
// codec writes, and nothing else.

import { assertEquals, assertThrows } from "@std/assert";
import fc from "fast-check";
import { ByteWriter, decodeFrame, encodeMessage, encodePublishAck } from "@felix/wire";
import type { Message, PublishAck } from "@felix/wire";
import { FelixError } from "../failure/felix_error.ts";
import { ProtocolError } from "../failure/classes.ts";
import { readAnswer } from "./publish_answer.ts";
import type { PublishAnswer } from "./publish_answer.ts";

function ofAck(ack: PublishAck): PublishAnswer {
  const out = new ByteWriter();
  encodePublishAck(out, ack);
  const { flags, payload } = decodeFrame(out.take());
  return readAnswer(flags, payload, "h:1");
}

function ofMessage(message: Message): PublishAnswer {
  const out = new ByteWriter();
  encodeMessage(message, out);
  const { flags, payload } = decodeFrame(out.take());
  return readAnswer(flags, payload, "h:1");
}

Deno.test("successes with and without an offset", () => {
  const offset = fc.option(fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }));
  const id = fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER });
  fc.assert(fc.property(id, offset, (n, at) => {
    const ack = { requestId: BigInt(n), ...(at === null ? {} : { offset: at }) };
    assertEquals(ofAck(ack), { id: n, offset: at });
  }));
});

Deno.test("a forwarded batch names its owner", () => {
  const owner = { nodeId: "n2", addr: "h:1", generation: 4n };
  assertEquals(ofAck({ requestId: 5n, offset: 7n, owner }), { id: 5, offset: 7n, owner });
});

Deno.test("refusals with and without a code", () => {
  const error = {
    message: "nope",
    code: "shard_unavailable",
    retry: "retry",
    reason: "moving",
    retryAfterMs: 100n,
  } as const;
  const { refusal } = ofAck({ requestId: 5n, error });
  assertEquals(refusal, { ...error, retryAfterMs: 100 });
  assertEquals(ofAck({ requestId: 5n, error: { message: "nope" } }).refusal?.code, undefined);
});

Deno.test("JSON answers are read too", () => {
  assertEquals(ofMessage({ type: "publish_ok", request_id: 3n, offset: 9n }), {
    id: 3,
    offset: 9n,
  });
  const refused = ofMessage({
    type: "publish_error",
    request_id: 3n,
    message: "no",
    code: "overloaded",
    retry: "retry_after",
    detail: { retry_after_ms: 10n },
  });
  assertEquals(refused.refusal?.retryAfterMs, 10);
});

Deno.test("anything else breaks the stream", () => {
  assertThrows(() => ofMessage({ type: "cache_ok", request_id: 1n }), ProtocolError);
  assertThrows(() => ofMessage({ type: "error", message: "no" }), FelixError);
  assertThrows(() => readAnswer(0x0004, new Uint8Array(8), "h:1"), ProtocolError);
});
