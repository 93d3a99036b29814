// Reads what a listener must know of a datagram before any connection does: which connection it is
// for, and whether it may start one (RFC 9000 §17.2, §17.3; RFC 8999). Rule: hostile
// bytes yield `null`, never an exception, and nothing is decrypted here.

import type { Buffer } from "node:buffer";

/** Length of the connection ids that this side hands out. */
export const LOCAL_ID_BYTES = 16;

/** Smallest datagram that may start a connection (RFC 9000 §14.1). */
export const MIN_INITIAL_BYTES = 1200;

const MAX_ID_BYTES = 20;
const MIN_CLIENT_CHOSEN_ID_BYTES = 8;
const LONG_FORM = 0x80;
const FIXED_BIT = 0x40;
const TYPE_BITS = 0x30;

/** Header of a packet in long form. */
export interface LongHeader {
  readonly version: number;
  /** Whether it is of the type `Initial` (in QUIC version 1). */
  readonly initial: boolean;
  readonly destination: Uint8Array;
  readonly source: Uint8Array;
}

/** The destination connection id as a map key, or `null` where the bytes are not a QUIC packet. */
export function destinationKey(datagram: Buffer): string | null {
  const first = datagram[0];
  if (first === undefined) return null;
  if ((first & LONG_FORM) === 0) {
    if (datagram.length < 1 + LOCAL_ID_BYTES) return null;
    return datagram.toString("latin1", 1, 1 + LOCAL_ID_BYTES);
  }
  const length = datagram[5];
  if (length === undefined || datagram.length < 6 + length) return null;
  return datagram.toString("latin1", 6, 6 + length);
}

/** The map key of a connection id. */
export function idKey(id: Uint8Array): string {
  return String.fromCharCode(...id);
}

/** The header in long form, or `null` where there is none. */
export function longHeader(datagram: Buffer): LongHeader | null {
  const first = datagram[0];
  if (first === undefined || (first & LONG_FORM) === 0 || datagram.length < 7) return null;
  const sourceAt = 6 + datagram[5]!;
  const sourceLength = datagram[sourceAt];
  if (sourceLength === undefined) return null;
  if (datagram.length < sourceAt + 1 + sourceLength) return null;
  return {
    version: datagram.readUInt32BE(1),
    initial: (first & FIXED_BIT) !== 0 && (first & TYPE_BITS) === 0,
    destination: datagram.subarray(6, sourceAt),
    source: datagram.subarray(sourceAt + 1, sourceAt + 1 + sourceLength),
  };
}

/** Whether a datagram with this header may start a connection of QUIC version 1. */
export function mayStart(header: LongHeader, datagramBytes: number): boolean {
  return header.initial && datagramBytes >= MIN_INITIAL_BYTES &&
    header.destination.length >= MIN_CLIENT_CHOSEN_ID_BYTES &&
    header.destination.length <= MAX_ID_BYTES && header.source.length <= MAX_ID_BYTES;
}
