// The frame header: magic, version, flags, length (spec/wire.md §2.1). Encoders append one whole
// frame to a writer; a length that is known only at the end is filled in there.

import { KNOWN_FLAGS } from "./flags.ts";
import type { ByteWriter } from "./byte_writer.ts";
import { WireError } from "./wire_error.ts";

/** Bytes of a frame header. */
export const HEADER_BYTES = 12;
/** "FLX1". */
export const MAGIC = 0x464c5831;
/** Protocol version; never bumped, capabilities are negotiated. */
export const VERSION = 1;
/** Default cap on a frame's payload (spec/wire.md §1.7). */
export const DEFAULT_MAX_PAYLOAD_BYTES: number = 16 * 1024 * 1024;

/** One frame. */
export interface Frame {
  /** Flag bits, unknown ones included. */
  readonly flags: number;
  /** A view of the payload. */
  readonly payload: Uint8Array;
}

/** Appends a header whose payload length is known. */
export function writeFrameHeader(out: ByteWriter, flags: number, payloadBytes: number): void {
  out.ensure(HEADER_BYTES + payloadBytes);
  out.u32(MAGIC);
  out.u16(VERSION);
  out.u16(flags);
  out.u32(payloadBytes);
}

/** Appends a header whose length comes later; answers what `endFrame` wants. */
export function beginFrame(out: ByteWriter, flags: number): number {
  writeFrameHeader(out, flags, 0);
  return out.length;
}

/** Takes back the frame whose payload began at `start`: its encoder refused what it was given. */
export function abandonFrame(out: ByteWriter, start: number): void {
  out.length = start - HEADER_BYTES;
}

/** Fills in the length of the frame whose payload began at `start`. */
export function endFrame(out: ByteWriter, start: number): void {
  out.u32At(start - 4, out.length - start);
}

/**
 * Refuses a frame that carries a bit this version does not know (spec/wire.md §2.2, rule 1).
 * @throws {WireError} `unknown_flags`
 */
export function assertKnownFlags(flags: number): void {
  if ((flags & ~KNOWN_FLAGS) !== 0) {
    throw new WireError(
      "unknown_flags",
      `unknown flag bits 0x${(flags & ~KNOWN_FLAGS).toString(16)}`,
    );
  }
}

/**
 * Decodes the one frame that `bytes` begin with.
 * @throws {WireError} `incomplete`, `invalid_magic`, `unsupported_version`, `unknown_flags`
 */
export function decodeFrame(bytes: Uint8Array): Frame {
  if (bytes.length < HEADER_BYTES) throw new WireError("incomplete", "the header is cut short");
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (view.getUint32(0) !== MAGIC) throw new WireError("invalid_magic", "not a Felix frame");
  const version = view.getUint16(4);
  if (version !== VERSION) {
    throw new WireError("unsupported_version", `protocol version ${version}`);
  }
  const flags = view.getUint16(6);
  assertKnownFlags(flags);
  const end = HEADER_BYTES + view.getUint32(8);
  if (bytes.length < end) throw new WireError("incomplete", "the payload is cut short");
  return { flags, payload: bytes.subarray(HEADER_BYTES, end) };
}
