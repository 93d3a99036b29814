// The public test vectors: every frame reads as its message and is written back byte for byte,
// every malformed input gets its verdict, keys fall into their shards, and what the published
// client was recorded to exchange is read and, where its form is canonical, reproduced.

import { assert, assertEquals, assertInstanceOf } from "@std/assert";
import {
  ByteWriter,
  codeName,
  codeNumber,
  decodeEventBatch,
  decodeFrame,
  decodeMessage,
  decodePublish,
  decodePublishAck,
  encodeEventBatch,
  encodeMessage,
  encodePublish,
  encodePublishAck,
  finalize,
  FLAG_BINARY_EVENT_BATCH,
  FLAG_BINARY_EVENT_BATCH_SHARED,
  FLAG_BINARY_PUBLISH_ACK,
  FLAG_BINARY_PUBLISH_BATCH,
  fnv1a64,
  FrameReader,
  recordViews,
  shardForKey,
  WireError,
} from "@felix/wire";
import type { EventBatch, Frame, PublishAck, PublishFrame } from "@felix/wire";

interface FrameVector {
  readonly name: string;
  readonly frame_hex: string;
  readonly flags: number;
  readonly message: Readonly<Record<string, unknown>>;
  readonly payload_text?: string;
  readonly decode_only?: string;
}

interface MalformedVector {
  readonly name: string;
  readonly bytes_hex: string;
  readonly decoder: string;
  readonly expect: string;
}

interface RoutingVector {
  readonly key_hex: string | null;
  readonly fnv1a_64: string | null;
  readonly finalized: string | null;
  readonly modulo: Readonly<Record<string, number>>;
  readonly jump_hash: Readonly<Record<string, number>>;
}

interface Exchange {
  readonly name: string;
  readonly stream: "bi" | "uni";
  readonly frames: readonly { readonly hex: string; readonly dir: "c2b" | "b2c" }[];
}

function vectors<T>(file: string): readonly T[] {
  return JSON.parse(Deno.readTextFileSync(new URL(`../vectors/${file}`, import.meta.url)));
}

function written(append: (out: ByteWriter) => void): Uint8Array {
  const out = new ByteWriter(16);
  append(out);
  return out.written();
}

/** The one frame in `bytes`, out of a reader that gets it in two parts. */
function readFrame(bytes: Uint8Array): Frame {
  const reader = new FrameReader({ initialBufferBytes: 16 });
  reader.push(bytes.subarray(0, bytes.length >> 1));
  reader.push(bytes.subarray(bytes.length >> 1));
  const frame = reader.next();
  assert(frame !== null, "the frame is whole");
  assertEquals(reader.pendingBytes, 0);
  return frame;
}

/** A decoded value as the vectors spell it: base64 for bytes, text for large integers. */
function plain(value: unknown): unknown {
  if (typeof value === "bigint") {
    return BigInt.asIntN(54, value) === value ? Number(value) : String(value);
  }
  if (value instanceof Uint8Array) return value.toBase64();
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, plain(member)]));
}

const isDefault = (value: unknown): boolean =>
  value === null || value === 0 || value === false || JSON.stringify(value) === "[]" ||
  JSON.stringify(value) === '{"dropping":false}';

/** `decoded` says what `expected` says; members it has on top are at their defaults. */
function assertSays(decoded: unknown, expected: unknown, path: string): void {
  if (Array.isArray(expected)) {
    assert(Array.isArray(decoded) && decoded.length === expected.length, path);
    expected.forEach((value, index) => assertSays(decoded[index], value, `${path}[${index}]`));
  } else if (typeof expected === "object" && expected !== null) {
    assert(typeof decoded === "object" && decoded !== null, path);
    const fields = decoded as Record<string, unknown>;
    for (const [name, value] of Object.entries(expected)) {
      assert(Object.hasOwn(fields, name), `${path}.${name} is missing`);
      assertSays(fields[name], value, `${path}.${name}`);
    }
    for (const name of Object.keys(fields).filter((name) => !Object.hasOwn(expected, name))) {
      assert(isDefault(fields[name]), `${path}.${name} is there and at no default`);
    }
  } else assertEquals(decoded, expected, path);
}

/** What these decode-only frames read as; the vectors show the text that is not kept. */
const READS_AS: Readonly<Record<string, Record<string, unknown>>> = {
  error_unknown_code_and_detail_member: {
    type: "error",
    message: "m",
    code: "zzz",
    retry: "yyy",
    detail: { reason: "r" },
  },
  start_latest_as_object: {
    type: "subscribe",
    tenant_id: "t1",
    namespace: "ns",
    stream: "orders",
    start: "latest",
  },
  optional_members_null: {
    type: "publish",
    tenant_id: "t1",
    namespace: "ns",
    stream: "orders",
    payload: "",
  },
  members_reordered_and_unknown: { type: "producer_init", request_id: 5 },
};

function checkJson(vector: FrameVector, { payload }: Frame): Uint8Array | null {
  assertEquals(new TextDecoder().decode(payload), vector.payload_text);
  if (vector.decode_only?.startsWith("decodes as an unknown request")) {
    const error = verdict(() => decodeMessage(payload));
    assertInstanceOf(error, WireError);
    const { type, request_id: id } = vector.message;
    assertEquals(error.unknownType, {
      requestType: type as string,
      ...(typeof id === "number" ? { requestId: BigInt(id) } : {}),
    });
    return null;
  }
  const message = decodeMessage(payload);
  assertSays(plain(message), READS_AS[vector.name] ?? vector.message, vector.name);
  return written((out) => encodeMessage(message, out));
}

const hexOf = (bytes: Uint8Array | null): string | null => bytes === null ? null : bytes.toHex();

function describePublish(frame: PublishFrame): Record<string, unknown> {
  const idempotent = frame.producerId !== undefined;
  return {
    kind: idempotent
      ? "idempotent_publish_batch"
      : frame.ack === 0
      ? "publish_batch"
      : "acked_publish_batch",
    ...(frame.ack === 0 ? {} : {
      request_id: plain(frame.requestId),
      ack_mode: frame.ack === 1 ? "per_message" : "per_batch",
    }),
    ...(idempotent
      ? { producer_id: plain(frame.producerId), sequence: plain(frame.sequence) }
      : {}),
    key_hex: hexOf(frame.key),
    tenant_id: frame.tenant,
    namespace: frame.namespace,
    stream: frame.stream,
    payloads_hex: recordViews(frame.records, frame.count).map(hexOf),
  };
}

function encodeAgain(out: ByteWriter, frame: PublishFrame): void {
  const { tenant, namespace, stream, key, requestId, ack, producerId, sequence } = frame;
  const payloads = recordViews(frame.records, frame.count);
  const producer = producerId === undefined ? {} : { producerId, sequence: sequence! };
  encodePublish(out, { tenant, namespace, stream, key, requestId, ack, payloads, ...producer });
}

function describeAck({ requestId, error, owner, offset }: PublishAck): Record<string, unknown> {
  return {
    kind: "publish_ack",
    status: error === undefined ? "ok" : "error",
    request_id: plain(requestId),
    error: error?.message ?? null,
    ...(error?.code === undefined ? {} : { code: error.code, retry: error.retry }),
    ...(error?.reason === undefined ? {} : {
      detail: {
        ...(error.reason === "" ? {} : { reason: error.reason }),
        ...(error.retryAfterMs === 0n ? {} : { retry_after_ms: plain(error.retryAfterMs) }),
      },
    }),
    ...(owner === undefined ? {} : {
      owner: { node_id: owner.nodeId, addr: owner.addr, generation: plain(owner.generation) },
    }),
    ...(offset === undefined ? {} : { offset: plain(offset) }),
  };
}

function describeEvents(batch: EventBatch): Record<string, unknown> {
  const legacy = batch.subscriptionId !== undefined;
  return {
    kind: legacy ? "event_batch" : "shared_event_batch",
    ...(legacy ? { subscription_id: plain(batch.subscriptionId) } : {}),
    base_offset: plain(batch.baseOffset ?? null),
    skipped_before: plain(batch.skippedBefore),
    publisher: batch.publisher ?? null,
    payloads_hex: batch.payloads.map(hexOf),
    ...(batch.timestamps === undefined ? {} : { timestamps_micros: plain(batch.timestamps) }),
  };
}

/** Reads a frame of any kind; answers its description and what writes it again. */
function readBinary({ flags, payload }: Frame): [unknown, (out: ByteWriter) => void] {
  if ((flags & FLAG_BINARY_PUBLISH_BATCH) !== 0) {
    const frame = decodePublish(flags, payload);
    return [describePublish(frame), (out) => encodeAgain(out, frame)];
  }
  if ((flags & FLAG_BINARY_PUBLISH_ACK) !== 0) {
    const ack = decodePublishAck(flags, payload);
    return [describeAck(ack), (out) => encodePublishAck(out, ack)];
  }
  assert((flags & (FLAG_BINARY_EVENT_BATCH | FLAG_BINARY_EVENT_BATCH_SHARED)) !== 0);
  const batch = decodeEventBatch(flags, payload);
  return [describeEvents(batch), (out) => encodeEventBatch(out, batch)];
}

/** What writes a frame again after it was read. */
function againOf(frame: Frame): (out: ByteWriter) => void {
  if (frame.flags !== 0) return readBinary(frame)[1];
  const message = decodeMessage(frame.payload);
  return (out) => encodeMessage(message, out);
}

Deno.test("the vectors are all there", () => {
  assertEquals(vectors("wire_v1.json").length, 268);
  assertEquals(vectors("wire_v1_malformed.json").length, 102);
});

for (const vector of vectors<FrameVector>("wire_v1.json")) {
  Deno.test(`wire vector ${vector.name}`, () => {
    const bytes = Uint8Array.fromHex(vector.frame_hex);
    const frame = readFrame(bytes);
    assertEquals(frame.flags, vector.flags);
    assertEquals(decodeFrame(bytes), frame);
    let again: Uint8Array | null;
    if (frame.flags === 0) again = checkJson(vector, frame);
    else {
      const { code_number: number, ...expected } = vector.message;
      const [description, encode] = readBinary(frame);
      assertSays(description, expected, vector.name);
      if (typeof number === "number") {
        assertEquals(codeName(number), vector.message["code"]);
        assertEquals(codeNumber(codeName(number)), number);
      }
      again = written(encode);
    }
    if (vector.decode_only === undefined) assertEquals(again!.toHex(), vector.frame_hex);
  });
}

function verdict(read: () => unknown): unknown {
  try {
    read();
  } catch (error) {
    return error;
  }
  return null;
}

/** The reader whose verdict a malformed vector states. */
function decodeWith({ decoder, expect }: MalformedVector, bytes: Uint8Array): void {
  if (decoder === "frame") {
    if (expect !== "too_large") decodeFrame(bytes);
    else {
      // A cap is the reader's; a bare decoder knows none.
      const reader = new FrameReader();
      reader.push(bytes);
      reader.next();
    }
    return;
  }
  const { flags, payload } = decodeFrame(bytes);
  switch (decoder) {
    case "publish":
      // The vectors' decoder of the plain form reads nothing else; ours reads all forms, and who
      // wants the plain one only looks at `ack`.
      if (decodePublish(flags, payload).ack !== 0) throw new WireError("malformed", "acked");
      return;
    case "acked_publish":
      decodePublish(flags, payload);
      return;
    case "publish_ack":
      decodePublishAck(flags, payload);
      return;
    case "event_batch":
    case "shared_event_batch":
      decodeEventBatch(flags, payload);
      return;
    default:
      assertEquals(decoder, "json");
      decodeMessage(payload);
  }
}

for (const vector of vectors<MalformedVector>("wire_v1_malformed.json")) {
  Deno.test(`malformed vector ${vector.name}`, () => {
    const bytes = Uint8Array.fromHex(vector.bytes_hex);
    const error = verdict(() => decodeWith(vector, bytes));
    assertInstanceOf(error, WireError, `${vector.name} was read`);
    assertEquals(error.code, vector.expect);
    if (vector.expect === "malformed_body") {
      const { payload } = decodeFrame(bytes);
      assertEquals(error.requestId, new DataView(payload.slice().buffer).getBigUint64(0));
      assertEquals(error.ackMode, payload[8] as 1 | 2);
    }
  });
}

Deno.test("routing vectors", () => {
  const all = vectors<RoutingVector>("routing_v1.json");
  assertEquals(all.length, 16);
  const hex = (value: bigint): string => value.toString(16).padStart(16, "0");
  for (const vector of all) {
    const key = vector.key_hex === null ? null : Uint8Array.fromHex(vector.key_hex);
    if (key !== null) {
      assertEquals(hex(fnv1a64(key)), vector.fnv1a_64!);
      assertEquals(hex(finalize(fnv1a64(key))), vector.finalized!);
    }
    for (const mapping of ["modulo", "jump_hash"] as const) {
      for (const [shards, shard] of Object.entries(vector[mapping])) {
        assertEquals(shardForKey(key, Number(shards), mapping), shard, vector.key_hex ?? "none");
      }
    }
  }
});

/** Every byte that one side of an exchange sent, its end left out. */
function sent({ frames }: Exchange, direction: "c2b" | "b2c"): Uint8Array {
  return Uint8Array.fromHex(
    frames.filter(({ dir }) => dir === direction).map(({ hex }) => hex).join(""),
  );
}

/** Bytes of a JSON payload whatever the order of its members. */
const sorted = (payload: Uint8Array): string =>
  new TextDecoder().decode(payload).split(/[{},]/).sort().join("\n");

Deno.test("recorded exchanges of the published client", async (context) => {
  const exchanges = vectors<Exchange>("captured_client_0_6_2.json");
  assertEquals(exchanges.length, 227);
  const frames = { c2b: 0, b2c: 0 };
  const canonical = { c2b: 0, b2c: 0 };
  for (const exchange of exchanges) {
    for (const direction of ["c2b", "b2c"] as const) {
      const reader = new FrameReader();
      reader.push(sent(exchange, direction));
      for (let frame = reader.next(); frame !== null; frame = reader.next()) {
        frames[direction]++;
        const again = readFrame(written(againOf(frame)));
        assertEquals(again.flags, frame.flags, exchange.name);
        if (again.payload.toHex() === frame.payload.toHex()) canonical[direction]++;
        else {
          assertEquals(frame.flags, 0, exchange.name);
          assertEquals(sorted(again.payload), sorted(frame.payload), exchange.name);
        }
      }
      assertEquals(reader.pendingBytes, 0, exchange.name);
    }
  }
  const said =
    `canonical ${canonical.c2b} of ${frames.c2b} sent, ${canonical.b2c} of ${frames.b2c} received`;
  await context.step(said, () => {
    assertEquals(frames.c2b + frames.b2c, 587);
    assertEquals(canonical.c2b, frames.c2b, "what the client sends is always canonical");
    assert(canonical.b2c >= frames.b2c - 11, "only the stub broker's member order may differ");
  });
});
