// What was found in a log, in lines for people. Rule: every repair and every damage has a line of
// its own with segment, byte and kind.

import type {
  FoundDamage,
  InspectedSegment,
  LogInspection,
  MissingBytes,
  Repair,
} from "./inspect_log.ts";
import type { Damage } from "./segment_walk.ts";

/** The segments as a table, then what would be repaired and what is damaged. */
export function inspectionLines(inspection: LogInspection): string[] {
  const { directory, segments, repairs, damage, missing } = inspection;
  return [
    directory,
    ...table(segments),
    ...repairs.map((repair) => `  repair: ${repairText(repair, "would be")}`),
    ...damage.map((found) => `  damage: ${foundText(found)}`),
    ...missingLines(missing),
    `  ${conclusion(inspection)}`,
  ];
}

/** What a repair did. */
export function repairedLine(repair: Repair): string {
  return `  repaired: ${repairText(repair, repair.action === "index" ? "was" : "were")}`;
}

/** A line when bytes are missing. */
export function missingLines(missing: MissingBytes | null): string[] {
  if (missing === null) return [];
  const { segment, position, bytes } = missing;
  const what = `${bytes} bytes that had been synced are missing`;
  return [`  missing: segment ${segment}, byte ${position}: ${what}`];
}

/** Segment, byte and kind. */
export function damageText({ segment, position, kind, detail }: Damage): string {
  return `segment ${segment}, byte ${position}: ${kind}${detail === "" ? "" : ` (${detail})`}`;
}

function repairText(repair: Repair, verb: string): string {
  const { action, segment, position, discardedBytes, cause } = repair;
  const place = `segment ${segment}, byte ${position}: ${cause}`;
  if (action === "index") return `${place}; the index ${verb} written anew`;
  const what = action === "cut" ? "cut" : "removed with the file";
  return `${place}; ${discardedBytes} bytes ${verb} ${what}`;
}

function foundText(found: FoundDamage): string {
  const effect = found.refusesToOpen
    ? "the log does not open"
    : "the log opens as far as this goes, reading it is refused";
  return `${damageText(found)}; ${effect}`;
}

function conclusion({ sound, segments, damage, missing }: LogInspection): string {
  if (damage.length > 0) return "damaged";
  if (missing !== null) return "opens without what is missing, unless that was being truncated";
  if (!sound) return "whole after the repairs above, which opening the log makes";
  return segments.length === 0 ? "sound; empty" : "sound";
}

function table(segments: readonly InspectedSegment[]): string[] {
  if (segments.length === 0) return [];
  const columns = ["segment", "base", "next", "bytes", "version"] as const;
  const rows = [
    [...columns, "state"],
    ...segments.map((segment) => [
      ...columns.map((name) => String(segment[name] ?? "-")),
      segment.state,
    ]),
  ];
  const widths = columns.map((_, at) => Math.max(...rows.map((row) => row[at]!.length)));
  return rows.map((row) =>
    `  ${row.map((cell, at) => cell.padStart(widths[at] ?? 0)).join("  ")}`.trimEnd()
  );
}
