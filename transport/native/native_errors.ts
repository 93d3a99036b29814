// What the built-in engine's rejections mean. It names most of them only in prose, so the prose is
// matched here and nowhere else. Rule: a caller of this room sees `TransportError`, always.

import { messageOf } from "../ended.ts";
import { TransportError } from "../transport.ts";

const STOPPED = /stopped by peer: error (\d+)/;
const RESET = /reset by peer: error (\d+)/;

/** A rejection that concerns one stream only, or `null` where the connection is the cause. */
export function streamError(error: unknown): TransportError | null {
  if (error instanceof TransportError) return error;
  const message = messageOf(error);
  const stopped = STOPPED.exec(message);
  if (stopped !== null) {
    return new TransportError("stream_stopped", "peer stopped reading", Number(stopped[1]));
  }
  const reset = RESET.exec(message);
  if (reset !== null) {
    return new TransportError("stream_reset", "peer reset the stream", Number(reset[1]));
  }
  return null;
}
