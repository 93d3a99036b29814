// The command line of the benchmark. Rule: a word that is neither an option nor a row (or the start
// of rows' names) is refused with the list of rows, before anything is started.

import { FULL, isPeer, type Row, rows, SMOKE } from "./rows.ts";

/** What to run and how to print it. */
export interface Options {
  readonly rows: readonly Row[];
  readonly smoke: boolean;
  readonly json: boolean;
  readonly trials: number;
  /** Markdown file to write the results to. */
  readonly write: string | null;
  /** Leave out peers and the published client even where they are installed. */
  readonly alone: boolean;
}

/** The command line cannot be understood; `message` says why and what would. */
export class UsageError extends Error {
  override readonly name = "UsageError";
  readonly code = "usage";
}

/** Shown with every usage error. */
export const USAGE = `deno task bench [row ...] [--smoke] [--json] [--trials N] [--alone]
                [--write docs/performance.md]

  row           a row's name, or the start of several: fanout-10, cache-get
  --smoke       every row for a moment, to see that it works; figures mean nothing
  --json        one JSON object a row
  --trials N    median of N runs of each row with fresh processes (3; smoke 1)
  --alone       without NATS, Redis and the published Python client
  --write FILE  the results with machine and versions as a Markdown page`;

const FULL_TRIALS = 3;

/** Reads the command line. @throws {UsageError} */
export function parseOptions(args: readonly string[]): Options {
  const names: string[] = [];
  let smoke = false;
  let json = false;
  let alone = false;
  let trials: number | null = null;
  let write: string | null = null;
  for (let index = 0; index < args.length; index++) {
    const arg = args[index] ?? "";
    if (arg === "--smoke") smoke = true;
    else if (arg === "--json") json = true;
    else if (arg === "--alone") alone = true;
    else if (arg === "--trials") trials = positiveInteger(args[++index]);
    else if (arg === "--write") write = required(args[++index]);
    else if (arg.startsWith("-")) throw new UsageError(`unknown option ${arg}\n\n${USAGE}`);
    else names.push(arg);
  }
  const selected = selectRows(rows(smoke ? SMOKE : FULL), names);
  return {
    rows: alone ? selected.filter(needsNothing).map(withoutPeers) : selected,
    smoke,
    json,
    alone,
    trials: trials ?? (smoke ? 1 : FULL_TRIALS),
    write,
  };
}

function withoutPeers(row: Row): Row {
  return { ...row, beside: row.beside.filter((contender) => !isPeer(contender)) };
}

function needsNothing(row: Row): boolean {
  return row.cell.kind !== "python";
}

/** The rows that are named, or whose names begin with a given word; all without names. */
function selectRows(all: readonly Row[], names: readonly string[]): Row[] {
  for (const name of names) {
    if (!all.some((row) => row.name.startsWith(name))) {
      const list = all.map((row) => `  ${row.name}`).join("\n");
      throw new UsageError(`no row ${name}; rows:\n${list}`);
    }
  }
  const exact = new Set(all.map((row) => row.name));
  const wanted = (row: Row) =>
    names.length === 0 ||
    names.some((name) => exact.has(name) ? row.name === name : row.name.startsWith(name));
  return all.filter(wanted);
}

function positiveInteger(text: string | undefined): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1) {
    throw new UsageError(`a positive number is due, not ${text}\n\n${USAGE}`);
  }
  return value;
}

function required(text: string | undefined): string {
  if (text === undefined) throw new UsageError(`--write needs a file\n\n${USAGE}`);
  return text;
}
