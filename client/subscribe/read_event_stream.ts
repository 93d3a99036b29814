// Reads any event stream to its end, frame by frame. The last frame, or its absence, says why it
// ended (spec/wire.md §1.5, §4.5); what the frames before it mean is the caller's business.

import { assertKnownFlags } from "@felix/wire";
import type { Message, ShardMovedMessage } from "@felix/wire";
import { errorFromRefusal } from "../failure/broker_failure.ts";
import { ProtocolError } from "../failure/classes.ts";
import type { FelixError } from "../failure/felix_error.ts";
import type { EventStream } from "../link/event_router.ts";
import { refusalOf } from "../link/refusal.ts";

/** Why an event stream ended. */
export type StreamEnd =
  | { readonly kind: "finished" }
  | { readonly kind: "deleted" }
  | { readonly kind: "moved"; readonly message: ShardMovedMessage }
  | { readonly kind: "lagged"; readonly resumeFrom: bigint }
  /** The broker gave a reason that is final. */
  | { readonly kind: "refused"; readonly error: FelixError }
  /** Reset, lost, or unreadable. */
  | { readonly kind: "lost"; readonly cause: unknown }
  /** The receiver had enough. */
  | { readonly kind: "stopped" };

/** What errors say about a stream. */
export interface StreamContext {
  readonly operation: string;
  readonly broker: string;
}

/** Who takes frames. */
export interface FrameReceiver {
  /** Takes a frame; `payload` lives until it returns. Not `null` = read no further. May throw. */
  frame(flags: number, payload: Uint8Array): StreamEnd | null;
  /** A promise to wait for before more is read; `null` = go on. */
  room(): Promise<void> | null;
}

/** Reads to the end. Never rejects; the stream is given up unless it ended by itself. */
export async function readEventStream(
  source: EventStream,
  context: StreamContext,
  receiver: FrameReceiver,
): Promise<StreamEnd> {
  const { stream, reader } = source;
  const stop = (end: StreamEnd): StreamEnd => {
    stream.cancel();
    return end;
  };
  try {
    for (;;) {
      for (let frame = reader.next(); frame !== null; frame = reader.next()) {
        assertKnownFlags(frame.flags);
        const end = receiver.frame(frame.flags, frame.payload);
        if (end !== null) return stop(end);
        const room = receiver.room();
        if (room !== null) await room;
      }
      const view = await stream.read(reader.space());
      if (view === null) {
        return reader.inHeader
          ? { kind: "finished" }
          : { kind: "lost", cause: breach(context, "the stream ended inside a frame") };
      }
      reader.filled(view);
    }
  } catch (error) {
    const known = error instanceof Error && error.name === "TransportError";
    const cause = known || error instanceof ProtocolError
      ? error
      : breach(context, `unreadable event stream: ${String(error)}`, error);
    return stop({ kind: "lost", cause });
  }
}

/**
 * The end that a message announces which may be the last one of any event stream.
 * @throws {ProtocolError} it has no business there
 */
export function endOf(message: Message, context: StreamContext): StreamEnd {
  switch (message.type) {
    case "shard_moved":
      return { kind: "moved", message };
    case "subscription_lagged":
    case "cache_watch_lagged":
      return { kind: "lagged", resumeFrom: message.resume_from };
    case "stream_deleted":
      return { kind: "deleted" };
    case "error":
      return { kind: "refused", error: errorFromRefusal(refusalOf(message), context) };
    default:
      throw breach(context, `${message.type} on an event stream`);
  }
}

/** What came is not the protocol. */
export function breach(context: StreamContext, message: string, cause?: unknown): ProtocolError {
  return new ProtocolError({ message, ...context, cause });
}
