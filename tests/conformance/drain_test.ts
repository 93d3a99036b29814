// Shutdown (spec/wire.md §1.6, spec/operations.md §13): readiness goes off first, what was accepted
// is answered and delivered, then every connection is closed with code 0 and the process ends well.

import { assert, assertEquals } from "@std/assert";
import { poll, sleep } from "../support/poll.ts";
import { DevBroker } from "../support/servers.ts";
import { json, publish, readAck, readEvents, textOf } from "./frames.ts";
import { FULL_OFFER, NO_OFFER, RawConnection, type RawStream } from "./raw_client.ts";

const CLOSED = { by: "peer", applicationCode: 0, reason: "broker shutting down" } as const;

Deno.test({
  name: "an idle broker stops at once and closes connections with code 0",
  sanitizeOps: true,
  sanitizeResources: true,
  fn: async () => {
    await using broker = await DevBroker.start();
    assertEquals((await broker.page("/ready")).status, 200);
    await using connection = await RawConnection.connect(broker);
    const { events } = await connection.subscribe();
    const reading = events.next().then(() => "ended", () => "closed with the connection");
    const exitCode = broker.stop(30_000);
    assertEquals(await connection.closed(30_000), CLOSED);
    assertEquals(await reading, "closed with the connection");
    assertEquals(await exitCode, 0);
    assertEquals(broker.stderr, "");
  },
});

/** What a publisher under load saw. */
interface Load {
  sent: number;
  readonly acked: number[];
  readonly refused: number[];
}

/** Publishes with up to 64 unanswered until the stream ends; never rejects. */
function publishUntilTheEnd(stream: RawStream): { load: Load; done: Promise<unknown> } {
  const load: Load = { sent: 0, acked: [], refused: [] };
  const answered = (): number => load.acked.length + load.refused.length;
  let ended = false;
  const sending = (async () => {
    while (!ended) {
      if (load.sent - answered() >= 64) {
        await sleep(1);
        continue;
      }
      const requestId = load.sent + 1;
      await stream.send(publish({ payloads: [`e${requestId}`], requestId }));
      load.sent = requestId;
    }
  })();
  const reading = (async () => {
    for (;;) {
      const frame = await stream.next("an ack", 60_000);
      if (frame === null) return;
      const ack = readAck(frame);
      (ack.ok ? load.acked : load.refused).push(ack.requestId);
    }
  })().finally(() => ended = true);
  return { load, done: Promise.allSettled([sending, reading]) };
}

async function readUntilTheEnd(
  connection: RawConnection,
): Promise<{ seen: string[]; done: Promise<unknown> }> {
  const { events } = await connection.subscribe();
  const seen: string[] = [];
  const reading = (async () => {
    for (;;) {
      const frame = await events.next("events", 60_000);
      if (frame === null) throw new RangeError("the event stream was ended by itself");
      seen.push(...readEvents(frame).payloads.map(textOf));
    }
  })();
  return { seen, done: reading.catch((error: unknown) => error) };
}

/** A stream opened while the broker drains is told so, if it can read codes. */
async function assertToldToGo(connection: RawConnection): Promise<void> {
  const stream = await connection.open();
  await stream.send(json(connection.auth(FULL_OFFER)));
  const { type, code, retry, message } = await stream.message();
  assertEquals({ type, code, retry, message }, {
    type: "error",
    code: "draining",
    retry: "retry",
    message: "broker is shutting down; connect to another broker",
  });
  assertEquals(await stream.rest(), []);
  const silent = await connection.open();
  await silent.send(json(connection.auth(NO_OFFER)));
  const answer = silent.next("nothing", 60_000).then(() => "answered", () => "closed");
  await connection.closed(60_000);
  assertEquals(await answer, "closed");
}

Deno.test({
  name: "SIGTERM under load: what was accepted is answered and delivered, exit code 0",
  sanitizeOps: true,
  sanitizeResources: true,
  fn: async () => {
    const budgetMs = 6000;
    await using broker = await DevBroker.start({
      env: { FELIX_SHUTDOWN_DRAIN_TIMEOUT_MS: String(budgetMs) },
    });
    await using publishing = await RawConnection.connect(broker);
    await using reading = await RawConnection.connect(broker);
    const subscriber = await readUntilTheEnd(reading);
    const { load, done } = publishUntilTheEnd(await publishing.stream());
    await poll(() => load.acked.length > 500, { what: "load" });
    const sentBefore = load.sent;
    const started = performance.now();
    broker.signal("SIGTERM");
    await poll(async () => (await broker.page("/ready")).status === 503, { what: "not ready" });
    await assertToldToGo(reading);
    assertEquals(await publishing.closed(60_000), CLOSED);
    await Promise.all([done, subscriber.done]);
    assertEquals((await broker.ended()).code, 0);
    // The budget, and time for a loaded machine to start and end a process.
    assert(performance.now() - started < budgetMs + 20_000, "the drain overran its budget");
    assertEquals(load.refused, []);
    assertEquals(load.acked, load.acked.map((_, index) => index + 1));
    assert(load.acked.length >= sentBefore, `${load.acked.length} of ${sentBefore} answered`);
    const seen = new Set(subscriber.seen);
    assertEquals(load.acked.filter((id) => !seen.has(`e${id}`)), []);
    assertEquals(broker.stderr, "");
  },
});

Deno.test({
  name: "a second start on the same state keeps certificates and tokens",
  sanitizeOps: true,
  sanitizeResources: true,
  fn: async () => {
    await using broker = await DevBroker.start();
    const { ca, token } = broker;
    await broker.restart();
    assertEquals(broker.ca, ca);
    await using connection = await RawConnection.connect(broker);
    const stream = await connection.stream(FULL_OFFER, token);
    await stream.finish();
  },
});
