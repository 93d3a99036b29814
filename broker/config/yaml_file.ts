// Reads the broker's YAML file into settings by their path. The file says what it means or the
// start is refused: an unknown key, a list where a value belongs or a duplicate key is an error
// that names its path and line.

import { isMap, isScalar, LineCounter, parseDocument } from "yaml";
import type { YAMLMap } from "yaml";
import { ConfigError } from "./config_error.ts";
import type { Setting } from "./setting.ts";
import { suggest } from "./suggestions.ts";
import { SETTINGS_BY_KEY } from "./table.ts";

/** Keys of older files; accepted, with a line that says so. */
const DEPRECATED_KEYS = new Set(["cache_conn_recv_window", "cache_stream_recv_window"]);

/** One value of the file. */
export interface FileValue {
  readonly setting: Setting;
  /** The value as it is written. */
  readonly text: string;
  /** `tls.cert (config.yml line 3)`. */
  readonly where: string;
}

/** What the file says. */
export interface FileSettings {
  /** Values by setting name; keys without a value are not in it. */
  readonly values: ReadonlyMap<string, FileValue>;
  /** Keys of older files that it uses. */
  readonly deprecated: readonly string[];
}

/**
 * Parses the file's text. `path` is for messages.
 * @throws {ConfigError} `bad_file`, `unknown_key`
 */
export function parseSettingsFile(path: string, text: string): FileSettings {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, uniqueKeys: true });
  const problem = document.errors[0];
  if (problem !== undefined) {
    const line = lines.linePos(problem.pos[0]).line;
    throw new ConfigError("bad_file", `${path} line ${line}: ${firstLine(problem.message)}`);
  }
  const values = new Map<string, FileValue>();
  const root = document.contents;
  if (root !== null && !(isScalar(root) && root.value === null)) {
    if (!isMap(root)) throw new ConfigError("bad_file", `${path}: must be a map of settings`);
    readMap(root, "", { path, lines, values });
  }
  const deprecated = [...values.values()].map((value) => value.setting.key!)
    .filter((key) => DEPRECATED_KEYS.has(key));
  return { values, deprecated };
}

interface Reading {
  readonly path: string;
  readonly lines: LineCounter;
  readonly values: Map<string, FileValue>;
}

function readMap(map: YAMLMap, prefix: string, reading: Reading): void {
  for (const { key, value } of map.items) {
    const position = isScalar(key) || isMap(key) ? key.range?.[0] ?? 0 : 0;
    const at = `${reading.path} line ${reading.lines.linePos(position).line}`;
    if (!isScalar(key)) throw new ConfigError("bad_file", `${at}: a key must be plain text`);
    const name = prefix + String(key.value);
    const setting = SETTINGS_BY_KEY.get(name);
    if (setting === undefined) {
      const section = [...SETTINGS_BY_KEY.keys()].some((known) => known.startsWith(`${name}.`));
      if (!section) throw new ConfigError("unknown_key", `${at}: ${unknownKey(name)}`);
      if (isMap(value)) readMap(value, `${name}.`, reading);
      else if (!isScalar(value) || value.value !== null) {
        throw new ConfigError("bad_file", `${at}: ${name} must be a section`);
      }
      continue;
    }
    if (value === null || (isScalar(value) && value.value === null)) continue;
    if (!isScalar(value)) throw new ConfigError("bad_file", `${at}: ${name} must be one value`);
    const text = typeof value.value === "string" ? value.value : value.source ?? `${value.value}`;
    reading.values.set(setting.name, { setting, text, where: `${name} (${at})` });
  }
}

function unknownKey(name: string): string {
  const close = suggest(name, SETTINGS_BY_KEY.keys());
  const hint = close.length === 0 ? "" : `; did you mean ${close.join(" or ")}?`;
  return `unknown key ${JSON.stringify(name)}${hint}`;
}

function firstLine(text: string): string {
  return text.split("\n", 1)[0]!.replace(/ at line \d+, column \d+:?$/, "");
}
