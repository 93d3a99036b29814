// A record as a line for people or for programs. Rule: nothing that a payload holds reaches a
// terminal as a control character, and no line for people is cut without saying so.

import { RecordKind } from "../format/record.ts";
import type { LogRecord } from "../format/record.ts";

/** Most characters of a payload in a line for people. */
const MAX_PAYLOAD_CHARACTERS = 80;
/** Most bytes that this many characters can take, and one character more. */
const MAX_PREVIEW_BYTES = 4 * (MAX_PAYLOAD_CHARACTERS + 1);

const KIND_NAMES: Readonly<Record<RecordKind, string>> = {
  [RecordKind.plain]: "plain",
  [RecordKind.batchStart]: "batch-start",
  [RecordKind.batchContinuation]: "batch-continuation",
  [RecordKind.generationStart]: "generation-start",
  [RecordKind.commit]: "commit",
};

/** Offset, time, kind, size and payload, which is text where it is printable, else hex. */
export function recordLine(record: LogRecord): string {
  const { offset, timestampMicros, kind, tag, payload } = record;
  const batch = tag === null
    ? ""
    : ` producer=${tag.producerId} sequence=${tag.sequence} length=${tag.length}`;
  const size = `${payload.length} B`;
  const head = `${offset}  ${isoTime(timestampMicros)}  ${KIND_NAMES[kind]}${batch}  ${size}`;
  return payload.length === 0 ? head : `${head}  ${preview(payload)}`;
}

/** The whole record as a JSON object; producer and sequence are strings, as they have 64 bits. */
export function recordJson({ offset, timestampMicros, kind, tag, payload }: LogRecord): string {
  const text = decode(payload);
  const readable = text !== null && !/\p{C}/u.test(text.replace(/[\t\r\n]/g, ""));
  return JSON.stringify({
    offset,
    time: isoTime(timestampMicros),
    timestampMicros,
    kind: KIND_NAMES[kind],
    ...(tag === null ? {} : {
      producerId: String(tag.producerId),
      sequence: String(tag.sequence),
      batchLength: tag.length,
    }),
    bytes: payload.length,
    ...(readable ? { text } : { hex: payload.toHex() }),
  });
}

/** A time in microseconds as ISO 8601; the number itself where there is no such date. */
function isoTime(micros: number): string {
  const date = new Date(Math.floor(micros / 1000));
  if (Number.isNaN(date.getTime())) return `${micros}us`;
  const rest = String(micros % 1000).padStart(3, "0");
  return date.toISOString().replace("Z", `${rest}Z`);
}

function preview(payload: Uint8Array): string {
  return cut(printable(payload) ?? payload.subarray(0, MAX_PAYLOAD_CHARACTERS).toHex());
}

/** The beginning of a payload as text; `null` when what is looked at is not printable. */
function printable(payload: Uint8Array): string | null {
  const whole = payload.length <= MAX_PREVIEW_BYTES;
  const text = decode(payload.subarray(0, MAX_PREVIEW_BYTES), !whole);
  return text === null || /[\p{C}\p{Zl}\p{Zp}]/u.test(text) ? null : text;
}

const DECODING = { fatal: true, ignoreBOM: true };
const decoder = new TextDecoder("utf-8", DECODING);

/** `partial`: the last character may be incomplete and is then left out. */
function decode(bytes: Uint8Array, partial = false): string | null {
  try {
    // A decoder keeps what it left out, so that one is for one payload.
    return partial
      ? new TextDecoder("utf-8", DECODING).decode(bytes, { stream: true })
      : decoder.decode(bytes);
  } catch {
    return null;
  }
}

function cut(text: string): string {
  if (text.length <= MAX_PAYLOAD_CHARACTERS) return text;
  // A character takes two units at most.
  const characters = [...text.slice(0, 2 * (MAX_PAYLOAD_CHARACTERS + 1))];
  if (characters.length <= MAX_PAYLOAD_CHARACTERS) return text;
  return `${characters.slice(0, MAX_PAYLOAD_CHARACTERS - 1).join("")}\u2026`;
}
