// A disk that is full, for real: storage on a file system of two megabytes. Publishes are refused
// by name, reads go on, and with room again so do publishes, without a restart (spec/storage.md
// §16).

import { assert, assertEquals } from "@std/assert";
import type { FelixClient } from "@felix/client";
import { connectTo } from "../support/dev_client.ts";
import { poll } from "../support/poll.ts";
import { DevBroker } from "../support/servers.ts";

const RECORD = "x".repeat(20_000);

async function succeeds(command: string, args: string[]): Promise<boolean> {
  try {
    const { success } = await new Deno.Command(command, { args, stderr: "null" }).output();
    return success;
  } catch {
    return false;
  }
}

/** Whether this process may mount a file system, which only some environments allow. */
async function mayMount(): Promise<boolean> {
  const path = await Deno.makeTempDir();
  const mounted = await succeeds("mount", ["-t", "tmpfs", "-o", "size=64k", "tmpfs", path]);
  if (mounted) await succeeds("umount", [path]);
  await Deno.remove(path);
  return mounted;
}

async function readAll(felix: FelixClient, count: number): Promise<void> {
  await using subscription = await felix.stream("events").subscribe({ start: "earliest" });
  for (let seen = 0; seen < count;) {
    for (const event of await subscription.readBatch(count - seen)) {
      assertEquals([Number(event.offset), event.text()], [seen++, RECORD]);
    }
  }
}

async function fillAndFree(broker: DevBroker, data: string): Promise<void> {
  await using felix = await connectTo(broker);
  const stream = felix.stream("events");
  let kept = 0;
  let refusal: unknown = null;
  while (refusal === null && kept < 1000) {
    try {
      assertEquals(Number((await stream.publish(RECORD)).offset), kept);
      kept++;
    } catch (error) {
      refusal = error;
    }
  }
  assert(kept > 10 && kept < 1000, `${kept} kept`);
  assert(String(refusal).includes("full"), String(refusal));
  assert(!String(refusal).includes(data), "a client is told no path");
  await poll(() => Promise.resolve(broker.stdout.includes("ENOSPC") || null), {
    what: "a line for the operator",
  });
  assertEquals((refusal as { code?: string }).code, "storage");
  await readAll(felix, kept);
  await Deno.remove(`${data}/ballast`);
  for (let more = 0; more < 10; more++) {
    assertEquals(Number((await stream.publish(RECORD)).offset), kept++);
  }
  await readAll(felix, kept);
}

Deno.test({
  name: "a full disk refuses publishes by name, reads go on, and room is enough",
  // Mounting needs rights that not every machine gives.
  ignore: !await mayMount(),
  fn: async () => {
    await using broker = await DevBroker.start({ durable: true });
    await broker.stop();
    const data = `${broker.state}/data`;
    const mounted = await succeeds("mount", ["-t", "tmpfs", "-o", "size=2m", "tmpfs", data]);
    assert(mounted);
    try {
      await Deno.writeFile(`${data}/ballast`, new Uint8Array(1 << 20));
      await broker.restart();
      await fillAndFree(broker, data);
      await broker.restart();
      await using felix = await connectTo(broker);
      const { offset } = await felix.stream("events").publish("after");
      assert(Number(offset) > 20);
      await felix.close();
      await broker.stop();
    } finally {
      await broker.kill();
      await succeeds("umount", [data]);
    }
  },
});
