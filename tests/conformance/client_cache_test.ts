// This repository's client on caches that are kept: watches and mirrors that go on over a restart
// and a kill of their broker, and counters (spec/client.md §9, §10).

import { assertEquals } from "@std/assert";
import type { WatchItem } from "@felix/client";
import { connectTo } from "../support/dev_client.ts";
import { poll } from "../support/poll.ts";
import { DevBroker, freeUdpPort } from "../support/servers.ts";

const text = (value: Uint8Array | null | undefined): string | null =>
  value === null || value === undefined ? null : new TextDecoder().decode(value);

function shown(item: WatchItem | null): string {
  if (item?.type !== "change") return item?.type ?? "end";
  return `${item.key}${item.value === null ? " gone" : `=${text(item.value)}`}`;
}

Deno.test({
  name: "watches, mirrors and counters over restarts of their broker",
  sanitizeOps: true,
  sanitizeResources: true,
  fn: async () => {
    const args = ["--port", String(await freeUdpPort())];
    await using broker = await DevBroker.start({ durable: true, args });
    await using felix = await connectTo(broker);
    const cache = felix.cache("wide");
    const counters = felix.counters("wide");
    await cache.put("old", "0");
    await using watch = await cache.watch({ prefix: "", retained: true });
    const next = async (count: number): Promise<string[]> => {
      const seen: string[] = [];
      while (seen.length < count) seen.push(shown(await watch.next()));
      return seen;
    };
    assertEquals((await next(2)).sort(), ["old=0", "stateComplete"]);
    await using mirror = await cache.mirror({ prefix: "k" });
    await mirror.ready;
    assertEquals(mirror.size, 0);
    assertEquals(await counters.add("n", 2n ** 60n), 2n ** 60n);
    for (let round = 0; round < 3; round++) {
      for (let key = 0; key < 5; key++) await cache.put(`k${key}`, `${round}`);
      await cache.delete("k4");
      const seen = await next(6);
      const wanted = [0, 1, 2, 3, 4].map((key) => `k${key}=${round}`);
      assertEquals(seen.sort(), [...wanted, "k4 gone"].sort());
      await poll(() => text(mirror.get("k0")) === `${round}` && !mirror.has("k4"), {
        what: "the mirror",
      });
      assertEquals(await counters.add("n", 1), 2n ** 60n + BigInt(round + 1));
      if (round === 2) break;
      if (round === 1) await broker.kill();
      await broker.restart();
      // A read is asked again when its connection dies; a write would be in doubt.
      assertEquals(await cache.getText("k0"), `${round}`);
    }
    assertEquals(await counters.get("n"), 2n ** 60n + 3n);
    assertEquals(await counters.get("never"), null);
    assertEquals([...mirror.entries()].map(([key]) => key).sort(), ["k0", "k1", "k2", "k3"]);
  },
});
