// The command line of the broker (spec/operations.md §7), parsed without touching anything.

import { ConfigError } from "./config_error.ts";
import type { Setting } from "./setting.ts";
import { suggest } from "./suggestions.ts";
import { SETTINGS, SETTINGS_BY_KEY, SETTINGS_BY_NAME } from "./table.ts";

/** What the process was asked to do. */
export type Mode = "run" | "print" | "check" | "help" | "version";

/** A parsed command line. */
export interface Arguments {
  readonly mode: Mode;
  /** `--config`; `null`: not given. */
  readonly configPath: string | null;
  /** `--set` values by setting name; the last one of a setting wins. */
  readonly sets: ReadonlyMap<string, string>;
}

/** What `--help` prints. */
export const USAGE = `felix-broker: serves Felix streams and caches over QUIC

Usage: felix-broker [options]

  --config PATH     YAML settings (default: $FELIX_BROKER_CONFIG, then
                    /usr/local/felix/config.yml if present)
  --set KEY=VALUE   one setting, by YAML key or variable name; may be repeated
  --print-config    print the effective settings with their sources, and exit
  --check           check the settings and the files they name, and exit
  --version         print the version, and exit
  --help            print this, and exit

A setting is looked up on the command line, in the environment, in the file; then its default
counts. docs/configuration.md lists them all.
`;

/** @throws {ConfigError} `bad_argument` */
export function parseArguments(args: readonly string[]): Arguments {
  let mode: Mode = "run";
  let configPath: string | null = null;
  const sets = new Map<string, string>();
  for (let index = 0; index < args.length; index++) {
    const [flag, inline] = splitFlag(args[index]!);
    const value = (): string => {
      const text = inline ?? args[++index];
      if (text === undefined) throw new ConfigError("bad_argument", `${flag} needs a value`);
      return text;
    };
    switch (flag) {
      case "--config":
        configPath = value();
        break;
      case "--set": {
        const [setting, text] = parseSet(value());
        sets.set(setting.name, text);
        break;
      }
      case "--print-config":
        mode = "print";
        break;
      case "--check":
        mode = "check";
        break;
      case "--version":
        mode = "version";
        break;
      case "--help":
      case "-h":
        mode = "help";
        break;
      default:
        throw new ConfigError(
          "bad_argument",
          `unknown argument ${JSON.stringify(flag)}; --help lists them`,
        );
    }
  }
  return { mode, configPath, sets };
}

function splitFlag(argument: string): [string, string | undefined] {
  const equals = argument.startsWith("--") ? argument.indexOf("=") : -1;
  if (equals < 0) return [argument, undefined];
  return [argument.slice(0, equals), argument.slice(equals + 1)];
}

function parseSet(text: string): [Setting, string] {
  const equals = text.indexOf("=");
  if (equals <= 0) throw new ConfigError("bad_argument", "--set needs KEY=VALUE");
  const key = text.slice(0, equals);
  const setting = SETTINGS_BY_KEY.get(key) ?? SETTINGS_BY_NAME.get(key);
  if (setting === undefined) {
    const names = [...SETTINGS_BY_KEY.keys(), ...SETTINGS.map((known) => known.name)];
    const close = suggest(key, names);
    const hint = close.length === 0 ? "" : `; did you mean ${close.join(" or ")}?`;
    throw new ConfigError("unknown_key", `--set: unknown key ${JSON.stringify(key)}${hint}`);
  }
  if (setting.secret) {
    throw new ConfigError("bad_argument", `--set ${key}: a secret is not taken from arguments`);
  }
  return [setting, text.slice(equals + 1)];
}
