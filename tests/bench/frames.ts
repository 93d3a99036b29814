// Just enough of the protocol for loads that must cost next to nothing: JSON frames written once,
// answers told apart by their first bytes. Everything else goes through the client library.

import type { Target } from "./cell.ts";

/** Length of a frame header. */
export const HEADER_BYTES = 12;

/** The `auth` of the published client (spec/interop.md §2.2). */
export function authFrame(target: Target): Uint8Array<ArrayBuffer> {
  return jsonFrame({
    type: "auth",
    tenant_id: target.tenant,
    token: target.token,
    client_flags: 0x1fff,
    client_features: 0xfb77ffff,
    client_features_hi: 0xf,
  });
}

/** A frame with flags 0 around `message`. */
export function jsonFrame(message: unknown): Uint8Array<ArrayBuffer> {
  const body = new TextEncoder().encode(JSON.stringify(message));
  const frame = new Uint8Array(HEADER_BYTES + body.length);
  const view = new DataView(frame.buffer);
  view.setUint32(0, 0x464c5831);
  view.setUint16(4, 1);
  view.setUint32(8, body.length);
  frame.set(body, HEADER_BYTES);
  return frame;
}

/** Length of the whole frame at the front of `bytes`, or 0 when not all of it is there. */
export function wholeFrame(bytes: Uint8Array): number {
  if (bytes.length < HEADER_BYTES) return 0;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const length = HEADER_BYTES + view.getUint32(8);
  return length <= bytes.length ? length : 0;
}

/** The text of a JSON frame's body. */
export function frameText(frame: Uint8Array): string {
  return new TextDecoder().decode(frame.subarray(HEADER_BYTES));
}

/** The next JSON message of a reader that carries little; `null` at the end. */
export async function readMessage(
  reader: ReadableStreamBYOBReader,
): Promise<Record<string, unknown> | null> {
  const header = await reader.read(new Uint8Array(HEADER_BYTES), { min: HEADER_BYTES });
  if (header.done) return null;
  const view = new DataView(header.value.buffer);
  const length = view.getUint32(8);
  const body = await reader.read(new Uint8Array(length), { min: length });
  if (body.done) return null;
  return JSON.parse(new TextDecoder().decode(body.value)) as Record<string, unknown>;
}
