// One log event as one line, in JSON or as text (spec/operations.md §10). Whatever reaches a line
// passes through `cleanFields`: secrets are cut out, errors and large integers become text.

import type { LogFields, LogLevel } from "./broker_log.ts";

/** One event. */
export interface LogEvent {
  /** Milliseconds since the epoch. */
  readonly wallMs: number;
  readonly level: LogLevel;
  readonly component: string;
  readonly msg: string;
  readonly fields: LogFields;
}

const REDACTED = "<redacted>";
const SECRET_NAME = /token|secret|password|authorization|credential|private/i;
/** Names that look secret and are paths, counts or reasons. */
const PLAIN_NAME = /(_file|_path|_count|_id|_reason)$|File$|Path$/;
/** Three base64url parts, the first a JSON object: a JWT anywhere in a text. */
const TOKEN_TEXT = /eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*/g;
const URL_USER = /(https?:\/\/)[^/\s@]*@/gi;
const MAX_TEXT = 4096;

/** The event as a JSON line, with its line break. */
export function jsonLine(event: LogEvent): string {
  const { level, component, msg } = event;
  const fields = cleanFields(event.fields);
  return `${JSON.stringify({ ts: timestamp(event), level, component, msg, ...fields })}\n`;
}

/** The event as a line for people, with its line break. */
export function textLine(event: LogEvent): string {
  const parts = [timestamp(event), event.level.padEnd(5), event.component.padEnd(8), event.msg];
  for (const [name, value] of Object.entries(cleanFields(event.fields))) {
    const text = typeof value === "string" ? value : JSON.stringify(value);
    parts.push(`${name}=${/^[^\s"=]+$/.test(text) ? text : JSON.stringify(text)}`);
  }
  return `${parts.join(" ")}\n`;
}

/** Fields as a line may hold them. */
export function cleanFields(fields: LogFields): Record<string, unknown> {
  const clean: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(fields)) {
    if (value === undefined) continue;
    const secret = SECRET_NAME.test(name) && !PLAIN_NAME.test(name);
    clean[name] = secret && typeof value === "string" ? REDACTED : cleanValue(value, 0);
  }
  return clean;
}

function cleanValue(value: unknown, depth: number): unknown {
  switch (typeof value) {
    case "string":
      return cleanText(value);
    case "bigint":
      return String(value);
    case "number":
    case "boolean":
      return value;
    case "object":
      break;
    default:
      return String(value);
  }
  if (value === null) return null;
  if (value instanceof Error) return cleanText(errorText(value));
  // Bytes may be a payload.
  if (ArrayBuffer.isView(value)) return `<${value.byteLength} bytes>`;
  if (depth >= 3) return "<nested>";
  if (Array.isArray(value)) return value.map((entry) => cleanValue(entry, depth + 1));
  const entries = Object.entries(value).map(([name, entry]) => {
    const secret = SECRET_NAME.test(name) && !PLAIN_NAME.test(name);
    return [name, secret ? REDACTED : cleanValue(entry, depth + 1)];
  });
  return Object.fromEntries(entries);
}

/** `text` without tokens and URL users, cut to a length that a line bears. */
export function cleanText(text: string): string {
  const clean = text.replace(TOKEN_TEXT, REDACTED).replace(URL_USER, `$1${REDACTED}@`);
  return clean.length > MAX_TEXT ? `${clean.slice(0, MAX_TEXT)}...` : clean;
}

function errorText(error: Error): string {
  const cause = error.cause instanceof Error ? error.cause.message : "";
  return error.message.includes(cause) ? error.message : `${error.message}: ${cause}`;
}

function timestamp({ wallMs }: LogEvent): string {
  return new Date(wallMs).toISOString();
}
