// spec/wire.md §10 row by row, against a real broker: what comes back, whether the stream goes on,
// and that the connection always does.

import { assertEquals } from "@std/assert";
import { DevBroker } from "../support/servers.ts";
import { BAD_FRAME_ROWS } from "./bad_frame_rows.ts";
import type { BadInputRow, Expected } from "./bad_input_row.ts";
import { BAD_REQUEST_ROWS } from "./bad_request_rows.ts";
import { type RawFrame, readAck, readJson } from "./frames.ts";
import { RawConnection, type RawStream } from "./raw_client.ts";

function assertAnswer(frame: RawFrame | null, expected: Expected): void {
  if (frame === null) throw new RangeError(`no answer; expected ${JSON.stringify(expected)}`);
  const isJson = "json" in expected;
  const answer: object = isJson ? readJson(frame) : readAck(frame);
  const wanted = isJson ? expected.json : expected.ack;
  const seen = Object.keys(wanted).map((name) => [name, Reflect.get(answer, name)]);
  assertEquals(Object.fromEntries(seen), { ...wanted }, JSON.stringify(answer));
}

/** The stream answers an ordinary request, and nothing else came before. */
async function assertGoesOn(stream: RawStream): Promise<void> {
  const question = {
    type: "stream_shards",
    tenant_id: "t1",
    namespace: "default",
    stream: "events",
    request_id: 4711,
  };
  assertEquals(await stream.ask(question), {
    type: "stream_shards_view",
    shards: 1,
    request_id: 4711,
  });
}

async function runRow(connection: RawConnection, row: BadInputRow): Promise<void> {
  const stream = row.offer === null ? await connection.open() : await connection.stream(row.offer);
  if (row.then === "ends") await stream.offer(row.send);
  else await stream.send(row.send);
  if (row.finish) await stream.finish();
  for (const expected of row.answers) assertAnswer(await stream.next(row.name), expected);
  if (row.then === "goes on") {
    await assertGoesOn(stream);
    await stream.finish();
  }
  assertEquals(await stream.rest(), []);
}

Deno.test({
  name: "bad input on a stream in both directions",
  sanitizeOps: true,
  sanitizeResources: true,
  fn: async (test) => {
    await using broker = await DevBroker.start();
    await using connection = await RawConnection.connect(broker);
    for (const row of [...BAD_FRAME_ROWS, ...BAD_REQUEST_ROWS]) {
      await test.step(`${row.name}: ${row.then}`, async () => {
        await runRow(connection, row);
        await connection.assertServes();
      });
    }
    assertEquals(broker.stderr, "");
  },
});
