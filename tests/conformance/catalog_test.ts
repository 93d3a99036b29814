// A stream that is removed while clients use it: its subscribers get what was queued and the
// reason, publishes are refused with `not_found`, and everything else goes on.

import { assertEquals } from "@std/assert";
import { poll } from "../support/poll.ts";
import { DevBroker } from "../support/servers.ts";
import { temporaryFolder } from "../support/temporary_folder.ts";
import { publish, readAck, readEvents, readJson, textOf } from "./frames.ts";
import { NO_OFFER, RawConnection } from "./raw_client.ts";

const CATALOG = "tenants:\n  - id: t1\n    namespaces:\n      - name: default\n        streams:\n";

Deno.test({
  name: "a removed stream ends its subscriptions with the reason, the others go on",
  sanitizeOps: true,
  sanitizeResources: true,
  fn: async () => {
    await using folder = await temporaryFolder();
    const file = `${folder.path}/catalog.yaml`;
    const extra = "          - { name: extra, shards: 1 }\n";
    const kept = "          - { name: kept, shards: 1 }\n";
    await Deno.writeTextFile(file, CATALOG + extra + kept);
    await using broker = await DevBroker.start({ args: ["--catalog", file] });
    await using connection = await RawConnection.connect(broker);
    const told = await connection.subscribe({ stream: "extra" });
    const older = await connection.subscribe({ stream: "extra" }, NO_OFFER);
    const other = await connection.subscribe({ stream: "kept" });
    const publisher = await connection.stream();
    await publisher.send(publish({ stream: "extra", payloads: ["last"], requestId: 1 }));
    assertEquals(readAck(await publisher.frame()).ok, true);

    await Deno.writeTextFile(file, CATALOG + kept);
    broker.signal("SIGHUP");

    const frames = await told.events.rest();
    assertEquals(readEvents(frames[0]!).payloads.map(textOf), ["last"]);
    assertEquals(frames.slice(1).map(readJson), [{
      type: "stream_deleted",
      subscription_id: told.subscribed["subscription_id"],
    }]);
    const plain = await older.events.rest();
    assertEquals(plain.map((frame) => readEvents(frame).payloads.map(textOf)), [["last"]]);

    let requestId = 1;
    await poll(async () => {
      requestId++;
      await publisher.send(publish({ stream: "extra", payloads: ["late"], requestId }));
      return readAck(await publisher.frame()).code === 3;
    }, { what: "not_found" });
    await publisher.send(publish({ stream: "kept", payloads: ["on"], requestId: 99 }));
    assertEquals(readAck(await publisher.frame()).ok, true);
    assertEquals((await other.events.events(1)).map(textOf), ["on"]);
    other.events.cancel();
    await publisher.finish();
  },
});
