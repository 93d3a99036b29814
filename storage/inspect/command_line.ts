// The arguments of `felix log`. Rule: what is not understood is refused as a whole, before anything
// is looked at.

import { resolve } from "node:path";
import { parseArgs } from "node:util";
import type { DumpRange } from "./dump_log.ts";

/** How the command is called. */
export const USAGE = `usage: felix log dump DIR [--from N] [--until N] [--limit N] [--json]
       felix log verify DIR [--json]
       felix log repair DIR --dry-run | --yes [--json]

dump    prints the records of the log in DIR with offsets in [from, until)
verify  reads the log in DIR in full, or every log below the storage root DIR
repair  does to the log in DIR what a broker that opens it does; needs --dry-run or --yes

Only repair --yes changes files, and only while no broker runs on the root.
Exit code: 0 sound, 1 damaged or refused, 2 not understood.
`;

/** A command that was understood; `directory` is an absolute path. */
export type Command =
  | { readonly verb: "help" }
  | {
    readonly verb: "dump";
    readonly directory: string;
    readonly json: boolean;
    readonly range: DumpRange;
  }
  | { readonly verb: "verify"; readonly directory: string; readonly json: boolean }
  | {
    readonly verb: "repair";
    readonly directory: string;
    readonly json: boolean;
    readonly apply: boolean;
  };

/** Understands `log VERB DIR ...`, DIR taken from `here` on, or says what is wrong. */
export function parseCommand(
  args: readonly string[],
  here: string,
): Command | { readonly problem: string } {
  let parsed;
  try {
    parsed = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        from: { type: "string" },
        until: { type: "string" },
        limit: { type: "string" },
        json: { type: "boolean", default: false },
        yes: { type: "boolean", default: false },
        "dry-run": { type: "boolean", default: false },
        help: { type: "boolean", default: false },
      },
    });
  } catch (error) {
    return { problem: error instanceof Error ? error.message : String(error) };
  }
  const { values, positionals: [command, verb, path, ...others] } = parsed;
  if (values.help) return { verb: "help" };
  if (command !== "log") return { problem: "the first argument is `log`" };
  if (verb !== "dump" && verb !== "verify" && verb !== "repair") {
    return { problem: `no such command: log ${verb ?? ""}`.trimEnd() };
  }
  if (path === undefined || path === "" || others.length > 0) {
    return { problem: `${verb} takes one directory` };
  }
  const { json, yes, from, until, limit } = values;
  const dryRun = values["dry-run"];
  if (verb !== "dump" && (from ?? until ?? limit) !== undefined) {
    return { problem: `${verb} takes no --from, --until or --limit` };
  }
  if (verb !== "repair" && (yes || dryRun)) {
    return { problem: `${verb} takes no --yes or --dry-run` };
  }
  const directory = resolve(here, path);
  if (verb === "verify") return { verb, directory, json };
  if (verb === "repair") {
    if (yes === dryRun) return { problem: "repair takes one of --dry-run and --yes" };
    return { verb, directory, json, apply: yes };
  }
  const range = rangeOf({ from, until, limit });
  return "problem" in range ? range : { verb, directory, json, range };
}

function rangeOf(
  texts: Readonly<Record<keyof DumpRange, string | undefined>>,
): DumpRange | { readonly problem: string } {
  const range: { -readonly [Name in keyof DumpRange]: number } = {};
  for (const name of ["from", "until", "limit"] as const) {
    const text = texts[name];
    if (text === undefined) continue;
    const number = Number(text);
    if (!/^\d+$/.test(text) || !Number.isSafeInteger(number)) {
      return { problem: `--${name} takes a whole number, not ${JSON.stringify(text)}` };
    }
    range[name] = number;
  }
  return range;
}
