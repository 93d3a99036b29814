// Decides what opening a log directory has to do to it: the procedure of spec/storage.md §10.3,
// step by step under its letters. Rule: it reads and decides; nothing is changed here, and a
// directory that cannot be proved whole is refused with segment, position and kind.

import { syncedThrough, unsyncedFrom } from "../format/durable_mark.ts";
import type { DurableMark } from "../format/durable_mark.ts";
import { SEGMENT_HEADER_BYTES } from "../format/segment_header.ts";
import { SparseIndex } from "../format/sparse_index.ts";
import { CorruptionError } from "../storage_error.ts";
import type { DirectoryView, PlannedCut } from "./directory_view.ts";
import { readSegmentHeader, scanSegment } from "./segment_scan.ts";
import type { SegmentScan, TailRepair } from "./segment_scan.ts";

/** How careful a recovery is. */
export interface RecoverySettings {
  /** Cut a last record that does not verify even where it may have been synced. */
  readonly repairChecksumTail: boolean;
  /** Scan every segment in full. */
  readonly verifyAllOnOpen: boolean;
  readonly indexSpacingBytes: number;
}

/** A segment that is found whole. */
export interface FoundSegment {
  readonly id: number;
  readonly version: number;
  readonly base: number;
  /** Offset after its last record. */
  readonly next: number;
  readonly bytes: number;
  readonly newestTimestampMicros: number;
  /** Made by a full scan; `null` where the file on the disk is good. */
  readonly index: SparseIndex | null;
  /** Offset of the first record with a producer mark that a full scan met. */
  readonly firstMark: number | null;
}

/** What has to be done, in this order: removals, index files, cuts. */
export interface RecoveryPlan {
  readonly removals: readonly number[];
  readonly cuts: readonly PlannedCut[];
  /** Sealed segments whose index file has to be written anew. */
  readonly indexes: readonly FoundSegment[];
  /** Oldest first. */
  readonly sealed: readonly FoundSegment[];
  /** The segment to go on with; `null`: the log is empty and has no file. */
  readonly newest: FoundSegment | null;
}

/** Plans the recovery of the directory that `view` shows. */
export async function planRecovery(
  view: DirectoryView,
  mark: DurableMark | null,
  settings: RecoverySettings,
  label: string,
): Promise<RecoveryPlan> {
  return await new Planner(view, mark, settings, label).plan();
}

interface Chain {
  readonly sealed: FoundSegment[];
  readonly indexes: FoundSegment[];
  readonly newest: FoundSegment;
  readonly newestScan: SegmentScan;
}

class Planner {
  readonly #view: DirectoryView;
  readonly #mark: DurableMark | null;
  readonly #settings: RecoverySettings;
  readonly #label: string;

  constructor(
    view: DirectoryView,
    mark: DurableMark | null,
    settings: RecoverySettings,
    label: string,
  ) {
    this.#view = view;
    this.#mark = mark;
    this.#settings = settings;
    this.#label = label;
  }

  async plan(): Promise<RecoveryPlan> {
    const view = this.#view;
    await this.#removeBlankInterior();
    await this.#removeUninstalled();
    await this.#removeBlankFirst();
    const { removals, cuts } = view;
    if (view.ids.length === 0) return { removals, cuts, indexes: [], sealed: [], newest: null };
    const { sealed, indexes, newest, newestScan } = await this.#chainOrFinishSeal();
    if (newestScan.torn !== null) {
      view.cut(newest.id, newestScan.validBytes, newestScan.torn.cause);
    }
    return { removals, cuts, indexes, sealed, newest };
  }

  #repair(segment: number, checksumTail = this.#settings.repairChecksumTail): TailRepair {
    return { checksumTail, unsyncedFrom: unsyncedFrom(this.#mark, segment) };
  }

  async #scan(
    segment: number,
    repair: TailRepair | null,
    from?: { offset: number; position: number },
  ): Promise<SegmentScan> {
    return await scanSegment({
      label: this.#label,
      segment,
      file: this.#view.file(segment),
      length: this.#view.length(segment),
      repair,
      indexSpacingBytes: this.#settings.indexSpacingBytes,
      ...(from === undefined ? {} : { from }),
    });
  }

  /** The base that a segment's header gives; `null` when there is no good header. */
  async #base(segment: number): Promise<number | null> {
    try {
      const { base } = await this.#header(segment);
      return base;
    } catch (error) {
      if (error instanceof CorruptionError) return null;
      throw error;
    }
  }

  #header(segment: number) {
    const length = this.#view.length(segment);
    return readSegmentHeader(this.#view.file(segment), length, this.#label, segment);
  }

  /** No header at all: shorter than one, or its bytes are zero. */
  async #blank(segment: number): Promise<boolean> {
    if (this.#view.length(segment) < SEGMENT_HEADER_BYTES) return true;
    const bytes = new Uint8Array(SEGMENT_HEADER_BYTES);
    await this.#view.file(segment).read(bytes, 0);
    return bytes.every((byte) => byte === 0);
  }

  /** C: files of a lost roll between two segments that meet exactly. */
  async #removeBlankInterior(): Promise<void> {
    const view = this.#view;
    const ids = view.ids;
    const short = (id: number) => view.length(id) < SEGMENT_HEADER_BYTES;
    for (let at = 1; at < ids.length - 1; at++) {
      if (!short(ids[at]!) || short(ids[at - 1]!)) continue;
      let after = at;
      while (after < ids.length && short(ids[after]!)) after++;
      if (after === ids.length) return;
      if (await this.#endsAt(ids[at - 1]!, await this.#base(ids[after]!))) {
        for (const id of ids.slice(at, after)) view.remove(id);
      }
      at = after;
    }
  }

  async #endsAt(segment: number, base: number | null): Promise<boolean> {
    if (base === null) return false;
    try {
      const scan = await this.#scan(segment, this.#repair(segment));
      return scan.next === base;
    } catch (error) {
      if (error instanceof CorruptionError) return false;
      throw error;
    }
  }

  /** D: newest files that no record ever went into and that do not follow the one before. */
  async #removeUninstalled(): Promise<void> {
    const view = this.#view;
    while (view.ids.length > 1) {
      const newest = view.ids.at(-1)!;
      if (await this.#blank(newest)) {
        view.remove(newest);
        continue;
      }
      const scan = await this.#scan(newest, this.#repair(newest));
      if (scan.next > scan.header.base) return;
      if (await this.#endsAt(view.ids.at(-2)!, scan.header.base)) return;
      view.remove(newest);
    }
  }

  /**
   * E: the only segment, whose header was never written: a new log, or one that was being reset
   * (which is why it need not be segment 0).
   */
  async #removeBlankFirst(): Promise<void> {
    const view = this.#view;
    const [only, ...others] = view.ids;
    if (only === undefined || others.length > 0) return;
    if (view.length(only) > SEGMENT_HEADER_BYTES || !await this.#blank(only)) return;
    if (syncedThrough(this.#mark, only) <= SEGMENT_HEADER_BYTES) view.remove(only);
  }

  /** G: every segment is whole and begins where the one before ends. */
  async #chain(): Promise<Chain> {
    const ids = this.#view.ids;
    const sealed: FoundSegment[] = [];
    const indexes: FoundSegment[] = [];
    let expected: number | null = null;
    for (const id of ids.slice(0, -1)) {
      const base: number = (await this.#header(id)).base;
      if (expected !== null && base !== expected) throw this.#gap(id, base, expected);
      const { segment, rebuilt } = await this.#checkSealed(id, base);
      if (rebuilt) indexes.push(segment);
      sealed.push(segment);
      expected = segment.next;
    }
    const id = ids.at(-1)!;
    const newestScan = await this.#scan(id, this.#repair(id));
    const { base } = newestScan.header;
    if (expected !== null && base !== expected) throw this.#gap(id, base, expected);
    return { sealed, indexes, newest: found(id, newestScan), newestScan };
  }

  #gap(segment: number, base: number, expected: number): CorruptionError {
    const detail = `begins at offset ${base}, expected ${expected}`;
    return new CorruptionError("OffsetOutOfOrder", this.#label, segment, 0, detail);
  }

  async #checkSealed(
    id: number,
    base: number,
  ): Promise<{ segment: FoundSegment; rebuilt: boolean }> {
    const { indexSpacingBytes, verifyAllOnOpen } = this.#settings;
    const bytes = verifyAllOnOpen ? null : await this.#view.indexBytes(id);
    const index = bytes === null ? null : SparseIndex.decode(bytes, base, indexSpacingBytes);
    const last = index?.last ?? null;
    if (index !== null && last !== null && last.position < this.#view.length(id)) {
      try {
        const scan = await this.#scan(id, null, last);
        if (scan.next > last.offset) return { segment: found(id, scan), rebuilt: false };
      } catch (error) {
        // The index may be what is wrong: a full scan tells.
        if (!(error instanceof CorruptionError)) throw error;
      }
    }
    const scan = await this.#scan(id, null);
    return { segment: found(id, scan), rebuilt: true };
  }

  /** H: the segment before the newest was retired before its last bytes were synced. */
  async #chainOrFinishSeal(): Promise<Chain> {
    try {
      return await this.#chain();
    } catch (error) {
      if (!(error instanceof CorruptionError)) throw error;
      if (!await this.#finishSeal(error)) throw error;
      return await this.#chain();
    }
  }

  async #finishSeal(refusal: CorruptionError): Promise<boolean> {
    const view = this.#view;
    const newest = view.ids.at(-1)!;
    const suspect = view.ids.at(-2);
    if (suspect === undefined) return false;
    const gapBehind = refusal.segment === newest && refusal.kind === "OffsetOutOfOrder" &&
      refusal.position === 0;
    if (refusal.segment !== suspect && !gapBehind) return false;
    let scan: SegmentScan;
    try {
      scan = await this.#scan(suspect, this.#repair(suspect, false));
    } catch (error) {
      if (error instanceof CorruptionError) return false;
      throw error;
    }
    const newestBase = await this.#base(newest);
    if (scan.torn === null && (newestBase === null || newestBase <= scan.next)) return false;
    if (scan.validBytes < syncedThrough(this.#mark, suspect)) return false;
    if (newestBase !== scan.next) view.remove(newest);
    if (scan.torn !== null) view.cut(suspect, scan.validBytes, scan.torn.cause);
    return true;
  }
}

function found(id: number, scan: SegmentScan): FoundSegment {
  return {
    id,
    version: scan.header.version,
    base: scan.header.base,
    next: scan.next,
    bytes: scan.validBytes,
    newestTimestampMicros: scan.newestTimestampMicros,
    index: scan.index,
    firstMark: scan.firstMark,
  };
}
