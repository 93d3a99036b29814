// The effective settings as YAML, each with where it came from (`--print-config`).
// The output is a valid settings file; what a file cannot hold stands in it as a comment. A secret
// is `<redacted>` or `<unset>`, and the user part of a URL is never shown.

import type { LoadedConfig } from "./load.ts";
import type { ResolvedSetting } from "./resolve.ts";
import { formatAddress } from "./setting.ts";
import type { SettingValue } from "./setting.ts";
import { SECTIONS } from "./table.ts";

/** The YAML text; ends with a line break. */
export function printConfig(config: LoadedConfig, version: string): string {
  const file = config.configPath === null ? "" : `, file ${config.configPath}`;
  const lines = [`# felix-broker ${version}: effective settings${file}`];
  const sections = new Map<string, string[]>();
  const environmentOnly: string[] = [];
  for (const { settings } of SECTIONS) {
    for (const { name } of settings) {
      const resolved = config.resolved.get(name);
      if (resolved.setting.effect !== "applied" && resolved.source === "default") continue;
      const { key, secret } = resolved.setting;
      const comment = `# source: ${sourceOf(resolved)}${effectOf(resolved)}`;
      if (key === undefined || secret) {
        environmentOnly.push(`# ${name}=${plain(resolved)} ${comment}`);
        continue;
      }
      const path = key.split(".");
      const leaf = path.pop()!;
      const text = yamlScalar(resolved.value);
      const line = `${leaf}:${text === "" ? "" : ` ${text}`} ${comment}`;
      if (path.length === 0) lines.push(line);
      else pushLine(sections, path.join("."), line);
    }
  }
  return [...lines, ...sectionLines(sections), ...environmentOnly, ""].join("\n");
}

function pushLine(sections: Map<string, string[]>, name: string, line: string): void {
  const lines = sections.get(name) ?? [];
  lines.push(line);
  sections.set(name, lines);
}

/** Sections with their lines; a section inside another follows the lines of its parent. */
function sectionLines(sections: ReadonlyMap<string, readonly string[]>): string[] {
  const lines: string[] = [];
  const opened = new Set<string>();
  for (const name of [...sections.keys()].sort()) {
    const path = name.split(".");
    path.forEach((part, depth) => {
      const prefix = path.slice(0, depth + 1).join(".");
      if (!opened.has(prefix)) lines.push(`${"  ".repeat(depth)}${part}:`);
      opened.add(prefix);
    });
    for (const line of sections.get(name)!) lines.push("  ".repeat(path.length) + line);
  }
  return lines;
}

function sourceOf(resolved: ResolvedSetting): string {
  if (resolved.source === "default") return "default";
  return `${resolved.source} ${resolved.from}`;
}

function effectOf({ setting }: ResolvedSetting): string {
  if (setting.effect === "accepted") return ", not applied by this build";
  if (setting.effect === "absent") return ", its feature is not in this build";
  return "";
}

function plain({ setting, value }: ResolvedSetting): string {
  if (value === null) return "<unset>";
  return setting.secret ? "<redacted>" : valueText(value);
}

/** Empty: the key stands without a value, which reads as unset. */
function yamlScalar(value: SettingValue): string {
  if (value === null) return "";
  return typeof value === "number" || typeof value === "boolean"
    ? String(value)
    : JSON.stringify(valueText(value));
}

function valueText(value: Exclude<SettingValue, null>): string {
  if (typeof value === "object") return formatAddress(value);
  return typeof value === "string" ? redactUrl(value) : String(value);
}

/** Replaces user and password of a URL. */
export function redactUrl(text: string): string {
  if (!/^https?:/i.test(text) || !URL.canParse(text)) return text;
  const url = new URL(text);
  if (url.username === "" && url.password === "") return text;
  return text.replace(/\/\/[^/]*@/, "//<redacted>@");
}
