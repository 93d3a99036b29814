// A client that asks for much on many streams and reads none of the answers: it costs a bounded
// amount of memory, and other clients are served meanwhile.

import { assert } from "@std/assert";
import { DevBroker } from "../support/servers.ts";
import { concat, json } from "./frames.ts";
import { RawConnection } from "./raw_client.ts";

const MEBIBYTE = 1024 * 1024;
const STREAMS = 64;
const REQUESTS = 20;
/** 32 MiB of answers, 10 MiB in the engine, the value itself, and room to collect. */
const ALLOWANCE = 200 * MEBIBYTE;

Deno.test({
  name: "answers that nobody reads stay within the connection's bound",
  sanitizeOps: true,
  sanitizeResources: true,
  fn: async () => {
    await using broker = await DevBroker.start();
    const names = { tenant_id: "t1", namespace: "default", cache: "sessions", key: "large" };
    await using writing = await RawConnection.connect(broker);
    const value = new Uint8Array(4 * MEBIBYTE).fill(1).toBase64();
    const writer = await writing.stream();
    await writer.ask({ type: "cache_put", ...names, value, request_id: 1, ttl_ms: null });
    const before = await broker.residentBytes();
    await using greedy = await RawConnection.connect(broker);
    const requests = concat(
      ...Array.from(
        { length: REQUESTS },
        (_, index) => json({ type: "cache_get", ...names, request_id: index + 1 }),
      ),
    );
    const streams = [];
    for (let index = 0; index < STREAMS; index++) streams.push(await greedy.stream());
    for (const stream of streams) await stream.send(requests);
    // 64 times 20 answers of 5.6 MB would be 7 GiB.
    let peak = 0;
    for (let look = 0; look < 20; look++) {
      peak = Math.max(peak, await broker.residentBytes());
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    assert(
      peak - before < ALLOWANCE,
      `${Math.round((peak - before) / MEBIBYTE)} MiB more for answers that nobody reads`,
    );
    await writing.assertServes();
  },
});
