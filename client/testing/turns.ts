// A scripted broker for interrupted subscriptions: each `subscribe` gets the next turn, and the
// starts that were asked for are noted. After the last turn the memory broker serves.

import type { Message, SubscribeMessage } from "@felix/wire";
import type { FelixClient } from "../client_types.ts";
import type { SubscribeOptions } from "../subscribe/subscribe_options.ts";
import type { Subscription } from "../subscribe/subscription.ts";
import type { BrokerStream, EventSender } from "./broker_stream.ts";
import { MemoryBroker } from "./memory_broker.ts";
import { ScriptedBroker } from "./scripted_broker.ts";

/** What happens after one `subscribe`. */
export type Turn = (events: EventSender, stream: BrokerStream, message: SubscribeMessage) => void;

/** A broker that plays one turn per subscribe, then refuses. */
export async function scripted(
  ...turns: Turn[]
): Promise<{ broker: ScriptedBroker; starts: unknown[] }> {
  const starts: unknown[] = [];
  const broker = await ScriptedBroker.start({
    async message(stream: BrokerStream, message: Message) {
      if (message.type !== "subscribe") return false;
      starts.push(message.start);
      const turn = turns[starts.length - 1];
      if (turn === undefined) return false;
      const { start } = message;
      const from = typeof start === "object" ? start.offset : 0n;
      const id = BigInt(starts.length);
      const events = await stream.connection.events(id);
      const offsets = { start_offset: from, live_offset: from };
      stream.send({ type: "subscribed", subscription_id: id, ...offsets });
      stream.finish();
      turn(events, stream, message);
      return true;
    },
  }, { memory: new MemoryBroker({ orders: 1 }) });
  return { broker, starts };
}

/** Subscribes to the stream of the scripted broker. */
export async function open(
  client: FelixClient,
  options: SubscribeOptions = { start: "earliest" },
): Promise<Subscription> {
  return await client.stream("orders").subscribe(options);
}

/** Texts of the next `count` events, fewer at the end. */
export async function read(subscription: Subscription, count: number): Promise<string[]> {
  const texts: string[] = [];
  while (texts.length < count) {
    const event = await subscription.next();
    if (event === null) break;
    texts.push(event.text());
  }
  return texts;
}
