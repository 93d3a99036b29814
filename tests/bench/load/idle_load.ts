// Connections and subscriptions that do nothing, opened the way the published client opens them:
// 40 authenticated streams and a topology question on one connection (spec/interop.md §2.1), or a
// subscription each on a stream of its own (§3.3). The harness reads the server's memory.

import type { Cell, IdleCell, LoadResult, Target } from "../cell.ts";
import { authFrame, jsonFrame, readMessage } from "../frames.ts";
import { connect } from "../raw/quic.ts";
import { encodePreamble, RawMode } from "../raw/preamble.ts";
import { type PreparedLoad, serveLoad } from "../worker.ts";

const POOL_STREAMS = 40;
/** Connections that are being opened at once. */
const OPENERS = 4;
/** Subscriptions of one connection; below the 1024 one-way streams that it may carry. */
const SUBSCRIPTIONS_PER_CONNECTION = 250;
const FEATURE_TOPOLOGY = 1;

/** Keeps what was opened from being collected. */
type Held = (Deno.QuicConn | Deno.QuicBidirectionalStream | ReadableStream<Uint8Array>)[];

async function request(
  connection: Deno.QuicConn,
  target: Target,
  message: unknown,
): Promise<{ stream: Deno.QuicBidirectionalStream; hello: Record<string, unknown> | null }> {
  const stream = await connection.createBidirectionalStream();
  const writer = stream.writable.getWriter();
  const reader = stream.readable.getReader({ mode: "byob" });
  await writer.write(authFrame(target));
  const hello = await readMessage(reader);
  if (hello?.type !== "auth_ok") throw new TypeError(`auth answered ${JSON.stringify(hello)}`);
  if (message !== null) {
    await writer.write(jsonFrame(message));
    await writer.close();
    const answer = await readMessage(reader);
    if (answer === null || answer.type === "error") {
      throw new TypeError(`request answered ${JSON.stringify(answer)}`);
    }
  }
  reader.releaseLock();
  writer.releaseLock();
  return { stream, hello };
}

async function openConnection(target: Target, ca: string, held: Held): Promise<void> {
  const connection = await connect(target, ca);
  held.push(connection);
  let features = 0;
  for (let index = 0; index < POOL_STREAMS; index++) {
    const { stream, hello } = await request(connection, target, null);
    features = Number(hello?.server_features ?? 0);
    held.push(stream);
  }
  if ((features & FEATURE_TOPOLOGY) !== 0) await request(connection, target, { type: "topology" });
}

async function openSubscriptions(
  target: Target,
  ca: string,
  count: number,
  held: Held,
): Promise<void> {
  const connection = await connect(target, ca);
  held.push(connection);
  const streams = connection.incomingUnidirectionalStreams.getReader();
  const { tenant: tenant_id, namespace, stream } = target;
  if (tenant_id === undefined) {
    const { writable } = await connection.createBidirectionalStream();
    const sizes = { requestBytes: 1, answerBytes: 0, count };
    await writable.getWriter().write(encodePreamble({ mode: RawMode.subscribe, ...sizes }));
  }
  for (let index = 0; index < count; index++) {
    if (tenant_id !== undefined) {
      await request(connection, target, { type: "subscribe", tenant_id, namespace, stream });
    }
    const { value } = await streams.read();
    if (value === undefined) throw new TypeError("no event stream");
    const reader = value.getReader();
    await reader.read();
    reader.releaseLock();
    held.push(value);
  }
}

/** Opens `count` of what the cell asks for. */
async function open(cell: IdleCell, target: Target, count: number, held: Held): Promise<void> {
  const ca = Deno.readTextFileSync(target.caFile ?? "");
  if (cell.what === "subscription") {
    for (let left = count; left > 0; left -= SUBSCRIPTIONS_PER_CONNECTION) {
      await openSubscriptions(target, ca, Math.min(left, SUBSCRIPTIONS_PER_CONNECTION), held);
    }
    return;
  }
  let left = count;
  const opener = async () => {
    while (left-- > 0) await openConnection(target, ca, held);
  };
  await Promise.all(Array.from({ length: OPENERS }, opener));
}

async function prepare(cell: Cell, target: Target): Promise<PreparedLoad> {
  if (cell.kind !== "idle") throw new TypeError(`no idle load for ${cell.kind}`);
  const held: Held = [];
  // A first few make the server compile and allocate what it needs once.
  await open(cell, target, Math.min(8, cell.count), held);
  return {
    run: async (): Promise<LoadResult> => {
      const started = performance.now();
      await open(cell, target, cell.count, held);
      const elapsedMs = performance.now() - started;
      return { completed: cell.count, expected: cell.count, elapsedMs, p50Ms: null, p99Ms: null };
    },
    finish: () => {
      for (const item of held) {
        if ("close" in item) item.close({ closeCode: 0, reason: "" });
      }
      held.length = 0;
      return Promise.resolve();
    },
  };
}

if (import.meta.main) await serveLoad(prepare);
