// Looks at one log's directory: every segment read in full, beside what opening the log would do to
// it (spec/storage.md §10.3). Rule: nothing on the disk changes; a place that opening would cut or
// remove is a repair, every other place that does not verify is damage.

import type { Disk } from "../disk/disk.ts";
import type { DurableMark } from "../format/durable_mark.ts";
import { SEGMENT_HEADER_BYTES } from "../format/segment_header.ts";
import { readMark } from "../log/mark_file.ts";
import { DirectoryView } from "../recovery/directory_view.ts";
import { planDirectory } from "../recovery/recover.ts";
import type { RecoveryPlan, RecoverySettings } from "../recovery/recovery_plan.ts";
import { CorruptionError } from "../storage_error.ts";
import { chainBreak, damageOf, SegmentWalk } from "./segment_walk.ts";
import type { Damage } from "./segment_walk.ts";

/**
 * `torn`: ends in an unfinished write, which opening cuts. `abandoned`: a file of a roll that did
 * not take place, which opening removes.
 */
export type SegmentState = "sound" | "torn" | "abandoned" | "damaged";

/** What is known of one segment file. */
export interface InspectedSegment {
  readonly segment: number;
  /** Offset of the first record; `null` when the header does not verify. */
  readonly base: number | null;
  /** Offset after the last good record. */
  readonly next: number | null;
  /** Bytes of the file. */
  readonly bytes: number;
  readonly version: number | null;
  readonly state: SegmentState;
}

/** One thing that opening the log does to its files. */
export interface Repair {
  readonly action: "remove" | "index" | "cut";
  readonly segment: number;
  /** First byte that goes; for `index` 0, and none goes. */
  readonly position: number;
  readonly discardedBytes: number;
  /** A format kind for a cut, a sentence otherwise. */
  readonly cause: string;
}

/** Damage, and whether the log opens in spite of it. */
export interface FoundDamage extends Damage {
  /** Opening refuses it; otherwise the first read that comes to it does. */
  readonly refusesToOpen: boolean;
}

/** Bytes that the durable mark says were on the device and that are not there any more. */
export interface MissingBytes {
  readonly segment: number;
  /** First byte that is missing. */
  readonly position: number;
  readonly bytes: number;
}

/** What was found in a log's directory. */
export interface LogInspection {
  readonly directory: string;
  /** Nothing is damaged or missing, and nothing would be cut or removed. */
  readonly sound: boolean;
  readonly segments: readonly InspectedSegment[];
  /** What opening would do, in order; nothing when it refuses. */
  readonly repairs: readonly Repair[];
  readonly damage: readonly FoundDamage[];
  /** Opening passes over this: it may have to, as an interrupted truncation looks the same. */
  readonly missing: MissingBytes | null;
}

/** Reads the whole log of `directory`, an absolute path. */
export async function inspectLog(
  disk: Disk,
  directory: string,
  settings: RecoverySettings,
): Promise<LogInspection> {
  // First, so that beside a running broker it does not vouch for what is written after the look.
  const mark = await readMark(disk, directory);
  const { plan, refusal } = await planOrRefusal(disk, directory, settings);
  const view = new DirectoryView(disk, directory);
  try {
    const segments: InspectedSegment[] = [];
    const damage: FoundDamage[] = [];
    let expected: number | null = null;
    for (const id of view.ids) {
      const walk = await SegmentWalk.begin(view.file(id), view.length(id), id);
      for (let more = walk.advance(); more instanceof Promise ? await more : more;) {
        more = walk.advance();
      }
      const found = judge(walk, plan, expected);
      if (found.damage !== null) {
        damage.push({ ...found.damage, refusesToOpen: isSame(found.damage, refusal) });
      }
      segments.push(describe(walk, found.state));
      if (found.state === "abandoned") continue;
      expected = found.state === "damaged" ? null : walk.next;
    }
    if (refusal !== null && !damage.some((other) => isSame(other, refusal))) {
      damage.push({ ...refusal, refusesToOpen: true });
    }
    const repairs = plan === null ? [] : repairsOf(plan, view);
    const missing = plan === null ? null : missingBytes(mark, plan);
    const sound = damage.length === 0 && missing === null &&
      repairs.every(({ action }) => action === "index");
    return { directory, sound, segments, repairs, damage, missing };
  } finally {
    view.close();
  }
}

/** What a plan does to the files that `view` shows. */
export function repairsOf(plan: RecoveryPlan, view: DirectoryView): Repair[] {
  return [
    ...plan.removals.map((segment): Repair => ({
      action: "remove",
      segment,
      position: 0,
      discardedBytes: view.length(segment),
      cause: "a roll that did not take place",
    })),
    ...plan.indexes.map(({ id }): Repair => ({
      action: "index",
      segment: id,
      position: 0,
      discardedBytes: 0,
      cause: "no usable index",
    })),
    ...plan.cuts.map(({ segment, length, discardedBytes, cause }): Repair => ({
      action: "cut",
      segment,
      position: length,
      discardedBytes,
      cause,
    })),
  ];
}

/** What the mark vouches for and `plan` does not find. */
export function missingBytes(
  mark: DurableMark | null,
  { newest }: RecoveryPlan,
): MissingBytes | null {
  if (mark === null || (newest !== null && newest.id > mark.segment)) return null;
  const position = newest?.id === mark.segment ? newest.bytes : 0;
  if (mark.syncedBytes <= Math.max(position, SEGMENT_HEADER_BYTES)) return null;
  return { segment: mark.segment, position, bytes: mark.syncedBytes - position };
}

async function planOrRefusal(
  disk: Disk,
  directory: string,
  settings: RecoverySettings,
): Promise<{ plan: RecoveryPlan | null; refusal: Damage | null }> {
  try {
    return { plan: await planDirectory(disk, directory, settings, directory), refusal: null };
  } catch (error) {
    if (!(error instanceof CorruptionError)) throw error;
    return { plan: null, refusal: damageOf(error) };
  }
}

function isSame(one: Damage, other: Damage | null): boolean {
  return one.segment === other?.segment && one.position === other.position;
}

/** What a segment that was walked to its end or its damage is. */
function judge(
  walk: SegmentWalk,
  plan: RecoveryPlan | null,
  expected: number | null,
): { state: SegmentState; damage: Damage | null } {
  const { segment, header, damage } = walk;
  if (plan?.removals.includes(segment)) return { state: "abandoned", damage: null };
  if (damage !== null) {
    const cut = plan?.cuts.find((planned) => planned.segment === segment);
    return cut !== undefined && damage.position >= cut.length
      ? { state: "torn", damage: null }
      : { state: "damaged", damage };
  }
  if (header !== null && expected !== null && header.base !== expected) {
    return { state: "damaged", damage: chainBreak(segment, header.base, expected) };
  }
  return { state: "sound", damage: null };
}

function describe({ segment, header, next, length }: SegmentWalk, state: SegmentState) {
  return {
    segment,
    base: header?.base ?? null,
    next: header === null ? null : next,
    bytes: length,
    version: header?.version ?? null,
    state,
  };
}
