// One row against all its contenders, a number of times, interleaved so that what else the machine
// does hits all of them alike. Rule: a run that lost anything has no figures, only the loss.

import { stripVTControlCharacters } from "node:util";
import type { Cell, LoadResult } from "./cell.ts";
import type { Contender, Row } from "./rows.ts";
import { type LoadKind, NotInstalled, type Session } from "./session.ts";
import { median, spread } from "./statistics.ts";

/** Core-microseconds per record, delivery or request. */
export interface CoreMicroseconds {
  readonly server: number;
  readonly client: number;
}

/** One contender's figures: medians over the trials. */
export interface Figures {
  /** Per second; for idle rows bytes of server memory for each. */
  readonly rate: number | null;
  readonly p50_ms: number | null;
  readonly p99_ms: number | null;
  readonly core_us_per_record: CoreMicroseconds | null;
  /** Largest over smallest rate of the trials. */
  readonly spread: number;
  readonly trials: number;
  /** Why there are no figures. */
  readonly void?: string;
}

/** How our figures compare: ours divided by theirs. */
export interface Ratios {
  readonly rate: number | null;
  readonly p50: number | null;
  readonly core_us_server: number | null;
}

/** A measured row, as `--json` prints it. */
export interface RowResult extends Figures {
  readonly row: string;
  readonly unit: string;
  readonly contender: Contender;
  /** Figures of the others by name, ceilings first. */
  readonly beside: Readonly<Record<string, Figures>>;
  /** Ours divided by each of theirs. */
  readonly ratios: Readonly<Record<string, Ratios>>;
}

/** Opens a session for one measurement and says whether it ends with it. */
export type WithSession = <T>(use: (session: Session) => Promise<T>) => Promise<T>;

type Trial = Pick<Figures, "rate" | "p50_ms" | "p99_ms" | "core_us_per_record">;

/** Measures `row` `trials` times against everything that is installed. */
export async function measureRow(
  row: Row,
  trials: number,
  withSession: WithSession,
): Promise<RowResult> {
  const contenders: Contender[] = [row.ours, ...row.beside];
  const taken = new Map<Contender, Trial[]>();
  const voids = new Map<Contender, string>();
  for (let trial = 0; trial < trials; trial++) {
    for (const contender of contenders) {
      if (voids.has(contender)) continue;
      try {
        const result = await withSession((session) => measureOnce(session, contender, row.cell));
        taken.set(contender, [...taken.get(contender) ?? [], result]);
      } catch (error) {
        const missing = error instanceof NotInstalled ? "not installed: " : "";
        voids.set(contender, missing + reasonOf(error));
      }
    }
  }
  const figures = (contender: Contender): Figures =>
    summarize(taken.get(contender) ?? [], voids.get(contender));
  return assemble(row, figures);
}

/** The first line of what went wrong, without colours. */
function reasonOf(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return stripVTControlCharacters(text).split("\n")[0] ?? "";
}

function assemble(row: Row, figures: (contender: Contender) => Figures): RowResult {
  const ours = figures(row.ours);
  const beside = Object.fromEntries(row.beside.map((other) => [other, figures(other)]));
  const ratios = Object.fromEntries(
    Object.entries(beside).map(([name, other]) => [name, compare(ours, other)]),
  );
  return { row: row.name, unit: row.unit, contender: row.ours, ...ours, beside, ratios };
}

/** Which load generator drives `cell` against `contender`. */
export function loadFor(contender: Contender, cell: Cell): LoadKind {
  if (cell.kind === "python" || cell.kind === "idle") return cell.kind;
  switch (contender) {
    case "felix":
    case "felix (fsync)":
      return "felix";
    case "jetstream (fsync)":
    case "jetstream (fsync 2 min)":
      return "jetstream";
    case "redis":
    case "redis (fsync)":
    case "redis (fsync 1 s)":
      return cell.kind === "cache" ? "redis" : "redis_stream";
    case "disk (fsync)":
    case "disk":
      return "disk";
    case "least":
      throw new TypeError("the least broker serves published clients only");
    default:
      return contender;
  }
}

async function measureOnce(
  session: Session,
  contender: Contender,
  cell: Cell,
): Promise<Trial> {
  const server = await session.server(contender);
  const load = await session.load(loadFor(contender, cell));
  await load.ask({ op: "prepare", cell, target: server.target });
  try {
    if (cell.kind === "idle") await settle(cell.settleMs);
    const before = { server: server.cpuMicroseconds(), client: load.cpuMicroseconds() };
    const memory = server.residentBytes();
    const result = await load.ask<LoadResult>({ op: "run" });
    if (result.completed < result.expected) {
      throw new TypeError(`lost ${result.expected - result.completed} of ${result.expected}`);
    }
    const each = (microseconds: number) => microseconds / result.completed;
    const core_us_per_record = {
      server: each(server.cpuMicroseconds() - before.server),
      client: each(load.cpuMicroseconds() - before.client),
    };
    const { p50Ms: p50_ms, p99Ms: p99_ms } = result;
    if (cell.kind === "idle") {
      await settle(cell.settleMs);
      const rate = (server.residentBytes() - memory) / cell.count;
      return { rate, p50_ms: null, p99_ms: null, core_us_per_record: null };
    }
    const rate = result.completed / (result.elapsedMs / 1000);
    return { rate, p50_ms, p99_ms, core_us_per_record };
  } finally {
    await load.ask({ op: "finish" });
  }
}

function settle(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Medians over trials; none when the contender was void in any of them. */
export function summarize(trials: readonly Trial[], why?: string): Figures {
  if (why !== undefined || trials.length === 0) {
    const nothing = { rate: null, p50_ms: null, p99_ms: null, core_us_per_record: null };
    return { ...nothing, spread: 1, trials: 0, void: why ?? "not measured" };
  }
  const middle = (pick: (trial: Trial) => number | null | undefined): number | null =>
    median(trials.map(pick).filter((value): value is number => typeof value === "number"));
  const server = middle((trial) => trial.core_us_per_record?.server);
  const client = middle((trial) => trial.core_us_per_record?.client);
  return {
    rate: middle((trial) => trial.rate),
    p50_ms: middle((trial) => trial.p50_ms),
    p99_ms: middle((trial) => trial.p99_ms),
    core_us_per_record: server === null || client === null ? null : { server, client },
    spread: spread(trials.map(({ rate }) => rate ?? 0)),
    trials: trials.length,
  };
}

/** Ours divided by theirs, where both have a figure. */
export function compare(ours: Figures, theirs: Figures): Ratios {
  const ratio = (a: number | null | undefined, b: number | null | undefined): number | null =>
    a === null || b === null || a === undefined || b === undefined || b === 0 ? null : a / b;
  return {
    rate: ratio(ours.rate, theirs.rate),
    p50: ratio(ours.p50_ms, theirs.p50_ms),
    core_us_server: ratio(ours.core_us_per_record?.server, theirs.core_us_per_record?.server),
  };
}
