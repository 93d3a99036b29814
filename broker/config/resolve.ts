// Decides the value of every setting and where it came from: command line, environment, file,
// default, in this order (spec/README.md decision 3). Every value that is set is parsed, also those
// that a stronger source overrides, so a bad one is not hidden until the stronger source goes.

import { filterFromRustLog } from "../log/filter.ts";
import { ConfigError } from "./config_error.ts";
import { parseValue } from "./setting.ts";
import type { Setting, SettingValue } from "./setting.ts";
import type { BindAddress } from "./settings.ts";
import { namesOf, SETTINGS, SETTINGS_BY_NAME } from "./table.ts";
import type { FileSettings } from "./yaml_file.ts";

/** Where a value came from. */
export type Source = "flag" | "env" | "file" | "default";

/** The value of one setting. */
export interface ResolvedSetting {
  readonly setting: Setting;
  readonly value: SettingValue;
  readonly source: Source;
  /** The variable or the place in the file that it came from; empty for a default. */
  readonly from: string;
}

/** Inputs of `resolveSettings`. */
export interface SettingSources {
  readonly sets: ReadonlyMap<string, string>;
  readonly env: Readonly<Record<string, string>>;
  readonly file: FileSettings | null;
}

/** Values of all settings. */
export class ResolvedSettings {
  /** Settings by name, in the order of the table. */
  readonly all: ReadonlyMap<string, ResolvedSetting>;

  constructor(all: ReadonlyMap<string, ResolvedSetting>) {
    this.all = all;
  }

  /** The setting called `name`. */
  get(name: string): ResolvedSetting {
    const found = this.all.get(name);
    if (found === undefined) throw new ConfigError("unknown_key", `no setting is called ${name}`);
    return found;
  }

  /** Whether something other than its default decided it. */
  isSet(name: string): boolean {
    return this.get(name).source !== "default";
  }

  /** Its value, a number. */
  number(name: string): number {
    const { value } = this.get(name);
    if (typeof value !== "number") throw wrongKind(name);
    return value;
  }

  /** Its value, a boolean. */
  boolean(name: string): boolean {
    const { value } = this.get(name);
    if (typeof value !== "boolean") throw wrongKind(name);
    return value;
  }

  /** Its value, a text. */
  text(name: string): string {
    const { value } = this.get(name);
    if (typeof value !== "string") throw wrongKind(name);
    return value;
  }

  /** Its value, a text, or `null` when it is unset. */
  textOrNull(name: string): string | null {
    return this.get(name).value === null ? null : this.text(name);
  }

  /** Its value, a number, or `null` when it is unset. */
  numberOrNull(name: string): number | null {
    return this.get(name).value === null ? null : this.number(name);
  }

  /** Its value, an address. */
  address(name: string): BindAddress {
    const { value } = this.get(name);
    if (typeof value !== "object" || value === null) throw wrongKind(name);
    return value;
  }

  /** Its value, an address, or `null` when it is unset. */
  addressOrNull(name: string): BindAddress | null {
    return this.get(name).value === null ? null : this.address(name);
  }
}

/** @throws {ConfigError} `bad_value`, `not_available` */
export function resolveSettings(sources: SettingSources): ResolvedSettings {
  const all = new Map<string, ResolvedSetting>();
  const resolved = new ResolvedSettings(all);
  for (const setting of SETTINGS) all.set(setting.name, resolveOne(setting, sources));
  rustLogFallback(all, sources.env);
  adjust(all, resolved);
  for (const setting of SETTINGS) derive(setting, all, resolved);
  refuseUnavailable(all);
  return resolved;
}

function resolveOne(setting: Setting, sources: SettingSources): ResolvedSetting {
  const found: ResolvedSetting[] = [];
  const flag = sources.sets.get(setting.name);
  if (flag !== undefined && flag !== "") {
    found.push(read(setting, flag, "flag", `--set ${setting.key ?? setting.name}`));
  }
  for (const name of namesOf(setting)) {
    const text = sources.env[name];
    if (text !== undefined && text !== "") found.push(read(setting, text, "env", name));
  }
  const inFile = sources.file?.values.get(setting.name);
  if (inFile !== undefined && inFile.text !== "" && !keepsPrevious(setting, inFile.text)) {
    found.push(read(setting, inFile.text, "file", inFile.where));
  }
  return found.find((candidate) => candidate.value !== null) ?? defaultOf(setting);
}

/** A zero in the file leaves a size or count as it was (spec/operations.md §6.1). */
function keepsPrevious(setting: Setting, text: string): boolean {
  const { kind } = setting;
  return (kind.type === "integer" || kind.type === "bytes") && kind.min > 0 && text === "0";
}

function read(setting: Setting, text: string, source: Source, from: string): ResolvedSetting {
  const parsed = parseValue(setting.kind, text, source === "file");
  if ("problem" in parsed) {
    const problem = setting.secret ? "has a value that cannot be used" : parsed.problem;
    throw new ConfigError("bad_value", `${from}: ${problem}`);
  }
  return { setting, value: parsed.value, source, from };
}

function defaultOf(setting: Setting): ResolvedSetting {
  if (setting.default === null || setting.derive !== undefined) {
    return { setting, value: null, source: "default", from: "" };
  }
  const parsed = parseValue(setting.kind, setting.default, false);
  return {
    setting,
    value: "value" in parsed ? parsed.value : null,
    source: "default",
    from: "",
  };
}

function rustLogFallback(
  all: Map<string, ResolvedSetting>,
  env: Readonly<Record<string, string>>,
): void {
  const setting = SETTINGS_BY_NAME.get("FELIX_LOG")!;
  const rust = env["RUST_LOG"];
  if (all.get(setting.name)!.source !== "default" || rust === undefined || rust === "") return;
  const filter = filterFromRustLog(rust);
  if (filter !== null) {
    all.set(setting.name, { setting, value: filter, source: "env", from: "RUST_LOG" });
  }
}

/** Values that another setting bounds: what is printed is what applies. */
function adjust(all: Map<string, ResolvedSetting>, resolved: ResolvedSettings): void {
  const frame = resolved.number("FELIX_MAX_FRAME_BYTES");
  const preauth = resolved.get("FELIX_PREAUTH_MAX_FRAME_BYTES");
  const bounded = Math.min(resolved.number(preauth.setting.name), frame);
  all.set(preauth.setting.name, { ...preauth, value: bounded });
  const metrics = resolved.get("FELIX_BROKER_METRICS_BIND");
  if (metrics.source === "default" && resolved.isSet("FELIX_DEV_FILE")) {
    const { port } = resolved.address(metrics.setting.name);
    all.set(metrics.setting.name, { ...metrics, value: { hostname: "127.0.0.1", port } });
  }
}

function derive(
  setting: Setting,
  all: Map<string, ResolvedSetting>,
  resolved: ResolvedSettings,
): void {
  if (setting.derive === undefined || all.get(setting.name)!.source !== "default") return;
  const value = setting.derive((name) => resolved.number(name));
  all.set(setting.name, { setting, value, source: "default", from: "" });
}

function refuseUnavailable(all: ReadonlyMap<string, ResolvedSetting>): void {
  for (const { setting, value, source, from } of all.values()) {
    if (setting.effect !== "refused" || source === "default") continue;
    if (setting.harmless?.includes(value)) continue;
    throw new ConfigError("not_available", `${from} is set, and ${setting.refusal}`);
  }
}

function wrongKind(name: string): ConfigError {
  return new ConfigError("bad_value", `${name}: has no value of the kind that is needed`);
}
