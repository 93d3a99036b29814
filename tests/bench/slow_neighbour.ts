// What a subscriber that reads nothing costs the one beside it: the reader's rate alone and beside
// it, the broker's memory, and whether every record is accounted for. Judges nothing. Run with
// `deno run -A tests/bench/slow_neighbour.ts [seconds a phase, default 60]`.

import type { FelixClient, Subscription } from "@felix/client";
import { DevBroker } from "../support/servers.ts";
import { connectFelix } from "./load/felix_load.ts";

const MEBIBYTE = 1024 * 1024;
const PAYLOADS = Array.from({ length: 64 }, () => new Uint8Array(256));
/** Batches that are unanswered at once. */
const IN_FLIGHT = 8;

/** What one phase showed. */
interface Phase {
  readonly published: number;
  readonly received: number;
  readonly perSecond: number;
  readonly peakBytes: number;
}

/** Publishes for `seconds` and counts what `reader` gets meanwhile. */
async function phase(
  broker: DevBroker,
  publisher: FelixClient,
  reader: Subscription,
  seconds: number,
): Promise<Phase> {
  const stream = publisher.stream("events");
  const until = performance.now() + seconds * 1000;
  let published = 0;
  let received = 0;
  let peakBytes = 0;
  let reading = true;
  const read = async (): Promise<void> => {
    while (reading) {
      const events = await reader.readBatch(1024, { timeoutMs: 500 }).catch(() => []);
      received += events.length;
    }
  };
  const publish = async (): Promise<void> => {
    while (performance.now() < until) {
      await stream.publishBatch(PAYLOADS);
      published += PAYLOADS.length;
    }
  };
  const watch = async (): Promise<void> => {
    while (performance.now() < until) {
      peakBytes = Math.max(peakBytes, await broker.residentBytes());
      await new Promise((resolve) => setTimeout(resolve, 500));
    }
  };
  const readers = read();
  await Promise.all([watch(), ...Array.from({ length: IN_FLIGHT }, publish)]);
  const perSecond = Math.round(received / seconds);
  await new Promise((resolve) => setTimeout(resolve, 1000));
  reading = false;
  await readers;
  return { published, received, perSecond, peakBytes };
}

async function main(seconds: number): Promise<void> {
  await using broker = await DevBroker.start();
  const [hostname = "", port = ""] = broker.broker.split(":");
  const target = { hostname, port: Number(port), token: broker.token, caFile: broker.caFile };
  await using publisher = await connectFelix(target);
  await using subscriber = await connectFelix(target);
  await using neighbour = await connectFelix(target);
  const reader = await subscriber.stream("events").subscribe({
    buffer: { maxEvents: 8192, maxBytes: 8 * MEBIBYTE, overflow: "block" },
  });
  await phase(broker, publisher, reader, Math.min(5, seconds));
  const alone = await phase(broker, publisher, reader, seconds);
  const dropsAlone = await broker.metric("felix_subscribe_dropped_total");
  const stuck = await neighbour.stream("events").subscribe();
  const beside = await phase(broker, publisher, reader, seconds);
  const drops = await broker.metric("felix_subscribe_dropped_total") - dropsAlone;
  const rate = ({ perSecond, peakBytes }: Phase): string =>
    `${perSecond} records/s, broker at most ${Math.round(peakBytes / MEBIBYTE)} MiB`;
  await stuck.close();
  // Once more alone: what drifts in the course of the run is not the neighbour's doing.
  const after = await phase(broker, publisher, reader, seconds);
  const ratio = beside.perSecond * 2 / (alone.perSecond + after.perSecond);
  const lines = [
    `reader alone              ${rate(alone)}`,
    `reader beside a stuck one ${rate(beside)}`,
    `reader alone again        ${rate(after)}`,
    `ratio                     ${ratio.toFixed(3)}`,
    `published ${beside.published}, read ${beside.received}, dropped and counted ${drops}`,
  ];
  await Deno.stdout.write(new TextEncoder().encode(lines.join("\n") + "\n"));
  await reader.close();
}

if (import.meta.main) await main(Number(Deno.args[0] ?? 60));
