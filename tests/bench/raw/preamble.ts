// The 16 bytes that open every raw stream and tell the raw server what to do with it. Sizes are
// those of the Felix frames that the stream stands for, so the ceiling moves the same bytes.

/** What a raw stream is for. */
export const RawMode = {
  /** Answer every `requestBytes` with `answerBytes`. */
  echo: 1,
  /** Open `count` one-way streams back and relay publishes on them. */
  subscribe: 2,
  /** Relay everything to the subscribers; answer every `requestBytes` with `answerBytes`. */
  publish: 3,
  /** Send `count` times `requestBytes` on the stream and end it. */
  send: 4,
} as const;

/** First bytes of a raw stream. */
export interface Preamble {
  readonly mode: number;
  readonly requestBytes: number;
  /** 0: no answers. */
  readonly answerBytes: number;
  /** Streams of `subscribe`, frames of `send`. */
  readonly count: number;
}

/** Length of an encoded preamble. */
export const PREAMBLE_BYTES = 16;

/** The preamble as four big-endian u32. */
export function encodePreamble(preamble: Preamble): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(PREAMBLE_BYTES);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, preamble.mode);
  view.setUint32(4, preamble.requestBytes);
  view.setUint32(8, preamble.answerBytes);
  view.setUint32(12, preamble.count);
  return bytes;
}

/** Reads what `encodePreamble` wrote. */
export function decodePreamble(bytes: Uint8Array): Preamble {
  const view = new DataView(bytes.buffer, bytes.byteOffset, PREAMBLE_BYTES);
  return {
    mode: view.getUint32(0),
    requestBytes: view.getUint32(4),
    answerBytes: view.getUint32(8),
    count: view.getUint32(12),
  };
}
