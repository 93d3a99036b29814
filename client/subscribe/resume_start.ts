// Where a subscription that was interrupted starts again (spec/client.md §7.3). Pure. Asking for
// too much is harmless (duplicates are thrown away), asking for too little loses.

import type { StartPosition } from "../types.ts";

/** What is known when it starts again. */
export interface ResumePoint {
  /** First offset not received; `null` when nothing with an offset was received. */
  readonly next: bigint | null;
  /** Where it was meant to start. */
  readonly start: StartPosition;
  /** The tail when it first joined; `null` on a stream without a log. */
  readonly liveOffset: bigint | null;
  /** First offset that a broker which gave the shard away has not offered; only after a move. */
  readonly movedFrom: bigint | undefined;
  /** Whether events without offsets were received. */
  readonly receivedAny: boolean;
}

/** The start position to ask for. */
export function resumeStart(point: ResumePoint): StartPosition {
  const { next, movedFrom } = point;
  if (next !== null) return movedFrom !== undefined && movedFrom > next ? movedFrom : next;
  if (point.receivedAny) return "latest";
  if (movedFrom !== undefined) {
    return typeof point.start === "bigint" && point.start > movedFrom ? point.start : movedFrom;
  }
  if (point.start === "latest" && point.liveOffset !== null) return point.liveOffset;
  return point.start;
}
