// The JetStream load: acknowledged publishes to a stream in files and an ordered read of all of it
// through its own JavaScript client with TLS. JetStream has no batches: a batch is that many
// publishes; all of a run's bytes in flight are bounded as our client bounds them.

import { jetstream, type JetStreamClient, jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import type { Cell, LoadResult, ReplayCell, Target } from "../cell.ts";
import { type PreparedLoad, serveLoad } from "../worker.ts";
import { recordsInFlight, runInFlight } from "./in_flight.ts";

const STREAM = "bench";
const SUBJECT = "bench.records";
const PULL_RECORDS = 4096;

async function replay(client: JetStreamClient, cell: ReplayCell): Promise<LoadResult> {
  const started = performance.now();
  const consumer = await client.consumers.get(STREAM);
  const messages = await consumer.consume({ max_messages: PULL_RECORDS });
  let completed = 0;
  for await (const _message of messages) if (++completed === cell.records) break;
  const elapsedMs = performance.now() - started;
  return { completed, expected: cell.records, elapsedMs, p50Ms: null, p99Ms: null };
}

async function prepare(cell: Cell, target: Target): Promise<PreparedLoad> {
  if (cell.kind !== "ingest" && cell.kind !== "acked" && cell.kind !== "replay") {
    throw new TypeError(`no JetStream load for ${cell.kind}`);
  }
  const connection = await connect({
    servers: `${target.hostname}:${target.port}`,
    tls: { caFile: target.caFile ?? "" },
  });
  const manager = await jetstreamManager(connection);
  await manager.streams.add({ name: STREAM, subjects: [SUBJECT] });
  const client = jetstream(connection);
  const payload = new Uint8Array(cell.payloadBytes);
  const publish = (): Promise<unknown> => client.publish(SUBJECT, payload, { timeout: 60_000 });
  const finish = (): Promise<void> => connection.close();
  if (cell.kind === "replay") {
    const { payloadBytes, batch, records } = cell;
    const fill = { kind: "ingest", payloadBytes, batch, records } as const;
    await runInFlight(fill, recordsInFlight(fill), publish);
    return { run: () => replay(client, cell), finish };
  }
  await Promise.all(Array.from({ length: 100 }, publish));
  return { run: () => runInFlight(cell, recordsInFlight(cell), publish), finish };
}

if (import.meta.main) await serveLoad(prepare);
