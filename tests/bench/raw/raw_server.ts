// The raw-QUIC server: moves the bytes of a cell with no broker behind them. What it reaches is the
// ceiling of the machine and the engine; whatever a broker adds shows as the difference to it.
//
// Run by the harness: raw_server.ts CERT_FILE KEY_FILE

import { sendLine, untilStdinEnds } from "../worker.ts";
import { decodePreamble, type Preamble, PREAMBLE_BYTES, RawMode } from "./preamble.ts";
import { eachBidirectional, listen, readAll } from "./quic.ts";

type Writer = WritableStreamDefaultWriter<Uint8Array<ArrayBuffer>>;

/** Read size where many requests come at once; one request uses what it needs of it. */
const READ_BYTES = 16 * 1024;
/** Read size of a bulk publisher, and how many such reads may be on their way out at once. */
const RELAY_READ_BYTES = 64 * 1024;
const RELAY_BUFFERS = 4;

/** Size of a one-way write, and how many may be unfinished at once. */
const SEND_BYTES = 64 * 1024;
const SENDS_IN_FLIGHT = 4;

/** Zeroes to answer with; content does not matter, only its length. */
const answers = new Uint8Array(1 << 20);

/** Subscribers of the one topic, by the connection that owns them. */
type Topic = Map<Deno.QuicConn, Writer[]>;

function serveConnection(connection: Deno.QuicConn, topic: Topic): void {
  connection.closed.catch(() => {}).finally(() => topic.delete(connection));
  void eachBidirectional(connection, async (stream) => {
    const reader = stream.readable.getReader({ mode: "byob" });
    const first = await reader.read(new Uint8Array(PREAMBLE_BYTES), { min: PREAMBLE_BYTES });
    if (first.value === undefined || first.done) return;
    reader.releaseLock();
    const preamble = decodePreamble(first.value);
    const writer = stream.writable.getWriter();
    if (preamble.mode === RawMode.echo) await echo(stream.readable, writer, preamble);
    if (preamble.mode === RawMode.publish) await relay(stream.readable, writer, preamble, topic);
    if (preamble.mode === RawMode.send) await send(writer, preamble);
    if (preamble.mode === RawMode.subscribe) {
      topic.set(connection, await openSubscribers(connection, preamble.count));
      await writer.write(answers.subarray(0, 1));
    }
  }).catch(() => {});
}

/** Opens `count` one-way streams; a first byte makes each visible to the other side. */
async function openSubscribers(connection: Deno.QuicConn, count: number): Promise<Writer[]> {
  const writers: Writer[] = [];
  for (let index = 0; index < count; index++) {
    const stream = await connection.createUnidirectionalStream();
    const writer = stream.getWriter() as Writer;
    await writer.write(answers.subarray(0, 1));
    writers.push(writer);
  }
  return writers;
}

/** Answers all whole requests of a read in one write. */
async function echo(
  readable: ReadableStream<Uint8Array<ArrayBuffer>>,
  writer: Writer,
  preamble: Preamble,
): Promise<void> {
  let pending = 0;
  await readAll(readable, READ_BYTES, (bytes) => {
    pending += bytes.byteLength;
    const whole = Math.floor(pending / preamble.requestBytes);
    if (whole === 0) return bytes.byteLength;
    pending -= whole * preamble.requestBytes;
    return writer.write(answers.subarray(0, whole * preamble.answerBytes)).then(() =>
      bytes.byteLength
    );
  });
}

/** Sends what is asked for, a few writes at a time. */
async function send(writer: Writer, { requestBytes, count }: Preamble): Promise<void> {
  const writes: Promise<void>[] = [];
  let left = requestBytes * count;
  while (left > 0) {
    if (writes.length === SENDS_IN_FLIGHT) await writes.shift();
    const bytes = Math.min(left, SEND_BYTES);
    writes.push(writer.write(answers.subarray(0, bytes)));
    left -= bytes;
  }
  await Promise.all(writes);
  await writer.close();
}

/** Relays reads to every subscriber, a few reads at a time, and answers what is whole. */
async function relay(
  readable: ReadableStream<Uint8Array<ArrayBuffer>>,
  writer: Writer,
  preamble: Preamble,
  topic: Topic,
): Promise<void> {
  const reader = readable.getReader({ mode: "byob" });
  const subscribers = [...topic.values()].flat();
  const outgoing: Promise<ArrayBuffer>[] = [];
  const free = Array.from({ length: RELAY_BUFFERS }, () => new ArrayBuffer(RELAY_READ_BYTES));
  let pending = 0;
  for (;;) {
    const buffer = free.pop() ?? await outgoing.shift() ?? new ArrayBuffer(RELAY_READ_BYTES);
    const { value, done } = await reader.read(new Uint8Array(buffer));
    if (done || value === undefined) return;
    const writes: Promise<void>[] = subscribers.map((subscriber) => subscriber.write(value));
    pending += value.byteLength;
    const whole = Math.floor(pending / preamble.requestBytes);
    pending -= whole * preamble.requestBytes;
    if (whole > 0 && preamble.answerBytes > 0) {
      writes.push(writer.write(answers.subarray(0, whole * preamble.answerBytes)));
    }
    outgoing.push(Promise.all(writes).then(() => value.buffer));
  }
}

if (import.meta.main) {
  const [certFile, keyFile] = Deno.args;
  if (certFile === undefined || keyFile === undefined) Deno.exit(2);
  const topic: Topic = new Map();
  const tls = { cert: Deno.readTextFileSync(certFile), key: Deno.readTextFileSync(keyFile) };
  const { port } = listen(tls, (connection) => serveConnection(connection, topic));
  sendLine({ ready: true, port });
  await untilStdinEnds();
}
