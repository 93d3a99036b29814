// The shape of one row of the settings tables, and the parser of each kind of value.
// A value is validated where it is parsed; the parser says what is wrong, its caller says where.

import type { BindAddress } from "./settings.ts";
import { parseLogFilter } from "../log/filter.ts";

/** A parsed value; `null`: unset. */
export type SettingValue = boolean | number | string | BindAddress | null;

/** What a setting holds. */
export type SettingKind =
  | { readonly type: "boolean" | "address" | "host_port" | "path" | "url" | "text" | "log_filter" }
  | {
    /** `bytes` also takes `KiB`, `MiB` and `GiB` in the YAML file. */
    readonly type: "integer" | "bytes";
    readonly min: number;
    readonly max: number;
    /** Zero stands for the default. */
    readonly zeroIsDefault?: boolean;
  }
  | { readonly type: "choice"; readonly values: readonly string[] };

/**
 * What this build does with a setting: `applied`; `accepted` (validated, and named at start as not
 * applied, because this runtime has no such lever); `absent` (a name of a feature that this build
 * does not have, named at start); `refused` (start is refused when it is set).
 */
export type SettingEffect = "applied" | "accepted" | "absent" | "refused";

/** One setting. */
export interface Setting {
  /** Environment variable. */
  readonly name: string;
  /** Further names, looked up before it. */
  readonly preferredAliases?: readonly string[];
  /** Further names, looked up after it. */
  readonly aliases?: readonly string[];
  /** Path in the YAML file, as `tls.cert`; settings without one are environment-only. */
  readonly key?: string;
  readonly kind: SettingKind;
  /** Default as an operator would write it; `null`: unset. */
  readonly default: string | null;
  /** Default computed from other settings; `default` then only documents it. */
  readonly derive?: (number: (name: string) => number) => number;
  readonly effect: SettingEffect;
  /** With `refused`: the line that says why and what to do. */
  readonly refusal?: string;
  /** With `refused`: values that are as good as unset. */
  readonly harmless?: readonly SettingValue[];
  /** Its value is never printed. */
  readonly secret?: boolean;
  /** One sentence for the documentation. */
  readonly summary: string;
}

/** A value or, as `problem`, why the text is none: a phrase that follows the setting's name. */
export type Parsed = { readonly value: SettingValue } | { readonly problem: string };

const UNITS: Readonly<Record<string, number>> = { KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3 };

/** Parses `text`; `sizeUnits` says whether `KiB`, `MiB`, `GiB` are understood (YAML only). */
export function parseValue(kind: SettingKind, text: string, sizeUnits: boolean): Parsed {
  switch (kind.type) {
    case "boolean":
      return parseBoolean(text);
    case "integer":
      return parseInteger(kind, text, 1);
    case "bytes": {
      const sized = sizeUnits ? /^(.*?) *(KiB|MiB|GiB)$/.exec(text) : null;
      if (sized === null) return parseInteger(kind, text, 1);
      return parseInteger(kind, sized[1]!, UNITS[sized[2]!]!);
    }
    case "choice":
      if (kind.values.includes(text)) return { value: text };
      return { problem: `must be one of ${kind.values.join(", ")}, not ${quote(text)}` };
    case "address":
      return parseAddress(text);
    case "host_port":
      return parseHostPort(text);
    case "url":
      return parseUrl(text);
    case "log_filter": {
      const filter = parseLogFilter(text);
      return "problem" in filter ? filter : { value: text };
    }
    case "path":
    case "text":
      return text.includes("\0") ? { problem: "contains a zero byte" } : { value: text };
  }
}

function parseBoolean(text: string): Parsed {
  const lower = text.toLowerCase();
  if (lower === "1" || lower === "true" || lower === "yes") return { value: true };
  if (lower === "0" || lower === "false" || lower === "no") return { value: false };
  return { problem: `must be true or false (1, yes, 0, no), not ${quote(text)}` };
}

function parseInteger(
  range: { readonly min: number; readonly max: number; readonly zeroIsDefault?: boolean },
  text: string,
  unit: number,
): Parsed {
  if (!/^-?[0-9](?:_?[0-9])*$/.test(text)) {
    return { problem: `must be a whole number, not ${quote(text)}` };
  }
  const value = Number(text.replaceAll("_", "")) * unit;
  if (value === 0 && range.zeroIsDefault) return { value: null };
  if (value < range.min || value > range.max || !Number.isSafeInteger(value)) {
    return { problem: `must be between ${range.min} and ${range.max}, not ${quote(text)}` };
  }
  return { value };
}

function parseAddress(text: string): Parsed {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([0-9.]+)):([0-9]{1,5})$/.exec(text);
  const hostname = match?.[1] ?? match?.[2] ?? "";
  const port = Number(match?.[3]);
  const literal = match?.[1] === undefined ? isIpv4(hostname) : isIpv6(hostname);
  if (match === null || !literal || port > 65535) {
    return { problem: `must be an IP literal and a port as 0.0.0.0:5000, not ${quote(text)}` };
  }
  return { value: { hostname, port } };
}

function parseHostPort(text: string): Parsed {
  const match = /^(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+):([0-9]{1,5})$/.exec(text);
  const port = Number(match?.[2]);
  if (match === null || port < 1 || port > 65535) {
    return { problem: `must be a host and a port as broker-1.example:5000, not ${quote(text)}` };
  }
  return { value: text };
}

function parseUrl(text: string): Parsed {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || (url.protocol !== "http:" && url.protocol !== "https:")) {
    return { problem: "must be an http or https URL" };
  }
  return { value: text };
}

function isIpv4(text: string): boolean {
  const parts = text.split(".");
  return parts.length === 4 && parts.every((part) => /^[0-9]{1,3}$/.test(part) && +part <= 255);
}

function isIpv6(text: string): boolean {
  return URL.canParse(`http://[${text}]/`);
}

/** `text` between quotes, cut to a length that keeps a message on one line. */
export function quote(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 77)}...` : text);
}

/** An address as it is written: `0.0.0.0:5000`, `[::]:5000`. */
export function formatAddress(address: BindAddress): string {
  const host = address.hostname.includes(":") ? `[${address.hostname}]` : address.hostname;
  return `${host}:${address.port}`;
}
