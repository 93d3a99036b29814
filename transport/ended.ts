// The failures that both engines report in the same words: calls on a connection that has ended,
// and calls on a half of a stream that this side has ended.

import { type CloseInfo, TransportError } from "./transport.ts";

/** Prose of anything thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The failure of a call on a connection that has ended as `info` says. */
export function endedError(info: CloseInfo): TransportError {
  if (info.by === "lost") {
    return new TransportError("connection_lost", `connection lost: ${info.reason || "no answer"}`);
  }
  const who = info.by === "local" ? "closed here" : "closed by the peer";
  const reason = info.reason === "" ? "" : `: ${info.reason}`;
  return new TransportError(
    "connection_closed",
    `connection ${who} (code ${info.applicationCode})${reason}`,
    info.applicationCode,
  );
}

/** The failure of a half of a stream that this side has already ended. */
export function finishedError(): TransportError {
  return new TransportError("stream_closed", "stream already ended by this side");
}
