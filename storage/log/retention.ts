// Removing the head of a log: by offset, or by a stream's retention (spec/storage.md §12). Rules:
// whole sealed segments, oldest first, each unlink made durable, so a crash leaves a longer log
// without a gap; readers lose a segment before its file goes; the active segment always stays.

import { removeSegment } from "./cut.ts";
import type { LogState } from "./log_state.ts";
import type { Segment } from "./segment.ts";

/** How much of a log is kept; a bound that is absent does not bound. */
export interface RetentionPolicy {
  /** Most bytes of a log's segments; 1 or more. */
  readonly maxBytes?: number;
  /** Most age of a segment's newest record, microseconds; 1 or more. */
  readonly maxAgeMicros?: number;
}

/** What retention needs to know of a segment. */
export type RetainedSegment = Pick<Segment, "bytes" | "newestTimestampMicros">;

/** How many of `sealed`, oldest first, have to go; `activeBytes` counts and stays. */
export function countExpired(
  sealed: readonly RetainedSegment[],
  activeBytes: number,
  policy: RetentionPolicy,
  nowMicros: number,
): number {
  let bytes = activeBytes;
  for (const segment of sealed) bytes += segment.bytes;
  let count = 0;
  for (const segment of sealed) {
    const tooMany = policy.maxBytes !== undefined && bytes > policy.maxBytes;
    const age = nowMicros - segment.newestTimestampMicros;
    const tooOld = policy.maxAgeMicros !== undefined && age > policy.maxAgeMicros;
    // A time that is not known is no reason to delete.
    if (!tooMany && !(tooOld && segment.newestTimestampMicros > 0)) break;
    bytes -= segment.bytes;
    count++;
  }
  return count;
}

/** Takes the `count` oldest sealed segments from readers and puts them up for removal. */
export function condemn(state: LogState, count: number): void {
  state.condemned.push(...state.sealed.splice(0, count));
}

/** How many sealed segments hold nothing but records below `offset`. */
export function countBelow(state: LogState, offset: number): number {
  let count = 0;
  while (count < state.sealed.length && state.sealed[count]!.next <= offset) count++;
  return count;
}

/** Unlinks what was put up for removal; what fails stays up for the next time. */
export async function removeCondemned(state: LogState): Promise<number> {
  let bytes = 0;
  while (state.condemned.length > 0) {
    const segment = state.condemned[0]!;
    await removeSegment(state, segment);
    state.condemned.shift();
    bytes += segment.bytes;
  }
  return bytes;
}
