// What a log was asked to do, as a model: every history of records that it may legitimately hold,
// and what it must hold. Compared with what a log holds after a crash.

import { assert, assertEquals } from "@std/assert";
import type { LogRecord, SegmentLog } from "@felix/storage";

/** Records by offset; a truncation or a reset begins another history. */
export class History {
  /** Payloads from offset `start` on. */
  #histories: { start: number; payloads: string[] }[] = [{ start: 0, payloads: [] }];
  /** Below: acknowledged, and in the newest history. */
  acknowledged = 0;
  /** The highest offset that the log's head may have been trimmed to. */
  trimmed = 0;

  get #newest() {
    return this.#histories.at(-1)!;
  }

  /** Records are about to be appended. */
  attempt(payloads: readonly string[]): void {
    this.#newest.payloads.push(...payloads);
  }

  /** Everything below `next` was acknowledged. */
  acknowledge(next: number): void {
    this.acknowledged = Math.max(this.acknowledged, next);
  }

  /** The log is about to be cut to end at `offset`, and to begin at `start` if that is given. */
  cut(offset: number, start = this.#newest.start): void {
    const { start: was, payloads } = this.#newest;
    const kept = start === was ? payloads.slice(0, Math.max(0, offset - was)) : [];
    this.#histories.push({ start, payloads: kept });
    this.acknowledged = Math.min(this.acknowledged, offset);
  }

  /** The cut is done and durable: what was before is no longer a possible answer. */
  cutDone(): void {
    this.#histories = [this.#newest];
  }

  /** The head is about to be removed up to `offset`. */
  trim(offset: number): void {
    this.trimmed = Math.max(this.trimmed, offset);
  }

  /** Holds `records`, which begin at `base`, against what may be there and what must be. */
  check(base: number, records: readonly LogRecord[]): void {
    const texts = records.map(({ payload }) => new TextDecoder().decode(payload));
    records.forEach(({ offset }, at) => assertEquals(offset, base + at, "no hole"));
    const possible = this.#histories.some(({ start, payloads }) =>
      base >= start && texts.every((text, at) => payloads[base + at - start] === text) ||
      records.length === 0 && base <= start
    );
    assert(possible, `invented: base ${base}, ${JSON.stringify(texts)}`);
    const end = base + records.length;
    assert(end >= this.acknowledged, `lost: ends at ${end}, acknowledged ${this.acknowledged}`);
    assert(
      records.length === 0 || base <= Math.max(this.trimmed, this.#newest.start),
      `lost its head: begins at ${base}, trimmed to ${this.trimmed}`,
    );
  }
}

/** Every record of a log, read in small pages. */
export async function readAll(log: SegmentLog): Promise<LogRecord[]> {
  const records: LogRecord[] = [];
  for (let next = log.base; next < log.readable;) {
    const page = await log.read(next, { maxBytes: 100 });
    assert(page.next > next, "a page moves on");
    records.push(...page.records);
    next = page.next;
  }
  return records;
}
