// Lays a publish out as a frame (spec/wire.md §5.1 to §5.3), straight into the stream's buffer. Its
// size is known before it is encoded, so that the budget can be asked first.

import { encodePublishScoped } from "@felix/wire";
import type { ByteWriter } from "@felix/wire";

/** What goes into a frame. */
export interface FrameContent {
  readonly scope: { readonly bytes: Uint8Array };
  readonly payloads: readonly Uint8Array[];
  readonly key: Uint8Array | null;
  readonly ack: 0 | 1 | 2;
}

/** Bytes of the frame's payload. */
export function framePayloadBytes(content: FrameContent): number {
  let bytes = content.scope.bytes.length + 4;
  if (content.ack !== 0) bytes += 9;
  if (content.key !== null) bytes += 2 + content.key.length;
  for (const payload of content.payloads) bytes += 4 + payload.length;
  return bytes;
}

/** Appends one whole frame. `requestId` is for acked ones. */
export function appendPublish(out: ByteWriter, content: FrameContent, requestId: number): void {
  const { scope, payloads, key, ack } = content;
  encodePublishScoped(out, scope.bytes, payloads, { key, requestId, ack });
}
