// A scripted broker for watches: each `cache_watch` is played by a function of the test, and what
// was asked is noted. A watch that the test does not play is refused as "not ready".

import type { CacheWatchMessage, Message } from "@felix/wire";
import type { FelixClient } from "../client_types.ts";
import type { CacheWatch, WatchItem, WatchOptions } from "../cache/watch_types.ts";
import type { BrokerStream, EventSender } from "./broker_stream.ts";
import { ScriptedBroker } from "./scripted_broker.ts";
import type { Advertised } from "./scripted_broker.ts";

/** How one watch goes. */
export interface WatchTurn {
  /** Offset that live changes begin at; default 0. */
  readonly at?: number;
  /** How many current values are announced; default 0 when they were asked for. */
  readonly retained?: number;
  /** Whether the broker starts from current values although it was asked for changes. */
  readonly resnapshot?: boolean;
  /** What happens after it was accepted. */
  play?(events: EventSender, stream: BrokerStream): void;
}

/** Chooses how a watch goes, knowing how many there were before; none = refuse. */
export type WatchPlayer = (message: CacheWatchMessage, index: number) => WatchTurn | undefined;

/** Turns in the order of the watches. */
export function inTurn(...turns: WatchTurn[]): WatchPlayer {
  return (_message, index) => turns[index];
}

/** A broker that plays watches. */
export async function watchBroker(
  player: WatchPlayer,
  options: Partial<Advertised> = {},
): Promise<{ broker: ScriptedBroker; asked: CacheWatchMessage[]; events: EventSender[] }> {
  const asked: CacheWatchMessage[] = [];
  const sent: EventSender[] = [];
  const broker = await ScriptedBroker.start({
    async message(stream: BrokerStream, message: Message) {
      if (message.type !== "cache_watch") return false;
      const turn = player(message, asked.push(message) - 1);
      if (turn === undefined) {
        stream.refuse("shard_unavailable", "retry", "not ready");
        stream.finish();
        return true;
      }
      const id = BigInt(asked.length);
      const events = await stream.connection.events(id);
      stream.send({
        type: "cache_watch_started",
        subscription_id: id,
        resume_offset: BigInt(turn.at ?? 0),
        resnapshot: turn.resnapshot ?? false,
        ...(message.retained ? { retained_count: BigInt(turn.retained ?? 0) } : {}),
      });
      stream.finish();
      sent.push(events);
      turn.play?.(events, stream);
      return true;
    },
  }, options);
  return { broker, asked, events: sent };
}

/** Watches the cache of the scripted broker; default all keys. */
export async function watch(
  client: FelixClient,
  options: WatchOptions = { prefix: "" },
): Promise<CacheWatch> {
  return await client.cache("sessions").watch(options);
}

const decoder = new TextDecoder();

/** An item in short: `k=v@3`, `k-@4` for a removal, `*` before a current value, else its type. */
export function brief(item: WatchItem | null): string {
  if (item === null) return "end";
  switch (item.type) {
    case "change": {
      const { key, value, offset, retained } = item;
      const text = value === null ? "-" : `=${decoder.decode(value)}`;
      return `${retained ? "*" : ""}${key}${text}@${offset}`;
    }
    case "stateComplete":
      return "complete";
    case "lagged":
      return `lagged ${item.shard}@${item.resumeFrom}`;
    case "shardClosed":
      return `closed ${item.shard} ${item.error.code}`;
    case "resnapshot":
    case "shardMoved":
      return `${item.type} ${item.shard}`;
  }
}

/** The next `count` items in short. */
export async function items(from: CacheWatch, count: number): Promise<string[]> {
  const texts: string[] = [];
  while (texts.length < count) texts.push(brief(await from.next({ timeoutMs: 20_000 })));
  return texts;
}
