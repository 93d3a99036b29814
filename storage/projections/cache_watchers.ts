// Watches of a cache shard (spec/semantics.md §6.4): what the watch asked for of the past, then
// every matching change in offset order. Rule: nothing is missed in silence; a queue that overflows
// ends its watch and says from where to go on.

import { StorageError } from "../storage_error.ts";
import type { CacheEntry } from "./cache_entry.ts";
import type { CacheLog } from "./cache_log.ts";

/** Changes that may wait for a slow reader (spec/semantics.md §6.4). */
const CAPACITY_CHANGES = 1024;
/** Bytes of current values that are read for a watch at once. */
const PAGE_BYTES = 1024 * 1024;

/** One change of a key. */
export interface CacheChange {
  readonly key: string;
  /** `null`: removed. Not to be changed. */
  readonly value: Uint8Array | null;
  readonly offset: number;
  /** Unix milliseconds; 0 = never. */
  readonly expiresAtMs: number;
}

/** Which keys are watched. */
export type KeyFilter = { readonly key: string } | { readonly prefix: string };

/** What comes before the live changes. */
export type WatchStart =
  | { readonly kind: "live" }
  /** The current values, at `nowMs`. */
  | { readonly kind: "retained"; readonly nowMs: number }
  /** Every change from `offset` on; where they are compacted away the current values at `nowMs`. */
  | { readonly kind: "from"; readonly offset: number; readonly nowMs: number };

/** What became of a watch. */
export type WatchResult =
  | { readonly kind: "watching"; readonly watch: CacheWatch }
  /** It asked for changes behind the frontier. */
  | { readonly kind: "in_future"; readonly available: number };

type Past =
  | { readonly kind: "changes"; from: number }
  | { readonly kind: "values"; readonly entries: readonly CacheEntry[]; at: number };

/** The watches of one shard. */
export class CacheWatchers {
  readonly #cache: CacheLog;
  readonly #byKey = new Map<string, Set<CacheWatch>>();
  readonly #byPrefix = new Set<CacheWatch>();

  constructor(cache: CacheLog) {
    this.#cache = cache;
  }

  /** Watches that are open. */
  get size(): number {
    let size = this.#byPrefix.size;
    for (const watches of this.#byKey.values()) size += watches.size;
    return size;
  }

  /**
   * Begins a watch, whose queue holds at most `budgetBytes` of keys and values: it gets every
   * matching change from the frontier on, and before these what `start` asks for.
   */
  watch(filter: KeyFilter, start: WatchStart, budgetBytes: number): WatchResult {
    const cache = this.#cache;
    const { frontier } = cache;
    if (start.kind === "from" && start.offset > frontier) {
      return { kind: "in_future", available: frontier };
    }
    const resnapshot = start.kind === "from" && start.offset < cache.base;
    let past: Past | null = null;
    if (start.kind === "from" && !resnapshot) past = { kind: "changes", from: start.offset };
    else if (start.kind !== "live") {
      past = { kind: "values", entries: this.#current(filter, start.nowMs), at: 0 };
    }
    const watch = new CacheWatch(cache, filter, { past, resnapshot, frontier, budgetBytes });
    const slot = this.#slot(filter);
    slot.add(watch);
    watch.onClose = (): void => {
      slot.delete(watch);
      if ("key" in filter && slot.size === 0) this.#byKey.delete(filter.key);
    };
    return { kind: "watching", watch };
  }

  /** Offers a change to those whom it concerns. */
  notify(change: CacheChange): void {
    const watches = this.#byKey.get(change.key);
    if (watches !== undefined) { for (const watch of watches) watch.offer(change); }
    for (const watch of this.#byPrefix) if (watch.matches(change.key)) watch.offer(change);
  }

  /** The cache is gone: every watch ends. */
  close(): void {
    const open = [...this.#byPrefix, ...[...this.#byKey.values()].flatMap((some) => [...some])];
    for (const watch of open) watch.end();
  }

  #slot(filter: KeyFilter): Set<CacheWatch> {
    if ("prefix" in filter) return this.#byPrefix;
    let slot = this.#byKey.get(filter.key);
    if (slot === undefined) this.#byKey.set(filter.key, slot = new Set());
    return slot;
  }

  #current(filter: KeyFilter, nowMs: number): CacheEntry[] {
    const entry = "key" in filter ? this.#cache.find(filter.key, nowMs) : null;
    if ("key" in filter) return entry === null ? [] : [entry];
    const found: CacheEntry[] = [];
    for (const entry of this.#cache.entries()) {
      if (entry.key.startsWith(filter.prefix) && !entry.expired(nowMs)) found.push(entry);
    }
    return found.sort((one, other) => one.offset - other.offset);
  }
}

interface WatchSettings {
  past: Past | null;
  readonly resnapshot: boolean;
  readonly frontier: number;
  readonly budgetBytes: number;
}

/** One watch. Take changes until there are none, `fetch` while it is behind, then wait. */
export class CacheWatch {
  /** The live changes begin here. */
  readonly resumeOffset: number;
  /** The changes asked for are compacted away: current values come first. */
  readonly resnapshot: boolean;
  /** Current values that come first. */
  readonly currentValues: number;
  /** Called when there is something new to take, or the end. */
  onReady: (() => void) | null = null;
  /** For `CacheWatchers`. */
  onClose: (() => void) | null = null;

  readonly #cache: CacheLog;
  readonly #filter: KeyFilter;
  readonly #budgetBytes: number;
  #past: Past | null;
  #page: CacheChange[] = [];
  #pageAt = 0;
  #live: CacheChange[] = [];
  #liveAt = 0;
  #liveBytes = 0;
  #missed: number | null = null;
  #ended = false;

  constructor(cache: CacheLog, filter: KeyFilter, settings: WatchSettings) {
    const { past, resnapshot, frontier, budgetBytes } = settings;
    this.#cache = cache;
    this.#filter = filter;
    this.#budgetBytes = budgetBytes;
    this.#past = past;
    this.resumeOffset = frontier;
    this.resnapshot = resnapshot;
    this.currentValues = past?.kind === "values" ? past.entries.length : 0;
  }

  /** Whether `fetch` brings more of the past; live changes follow when it does not. */
  get behind(): boolean {
    return this.#past !== null;
  }

  /** The first change that was missed, once everything before it has been taken. */
  get missed(): number | null {
    const empty = this.#past === null && this.#pageAt === this.#page.length &&
      this.#liveAt === this.#live.length;
    return empty ? this.#missed : null;
  }

  /** Whether the cache is gone. */
  get ended(): boolean {
    return this.#ended;
  }

  /** Changes that wait to be taken. */
  get queued(): number {
    return this.#page.length - this.#pageAt + this.#live.length - this.#liveAt;
  }

  /** The next change; `undefined`: none at hand. */
  take(): CacheChange | undefined {
    if (this.#pageAt < this.#page.length) return this.#page[this.#pageAt++];
    if (this.#past !== null || this.#liveAt === this.#live.length) return undefined;
    const change = this.#live[this.#liveAt++]!;
    this.#liveBytes -= bytesOf(change);
    if (this.#liveAt >= Math.min(CAPACITY_CHANGES, this.#live.length)) {
      this.#live = this.#live.slice(this.#liveAt);
      this.#liveAt = 0;
    }
    return change;
  }

  /**
   * Fetches more of the past, after everything at hand was taken; one call at a time. A past that
   * cannot be read on ends the watch with `missed`; rejects when the log cannot be read at all.
   */
  async fetch(): Promise<void> {
    const past = this.#past;
    if (past === null) return;
    this.#pageAt = 0;
    this.#page = [];
    try {
      this.#page = past.kind === "changes" ? await this.#changes(past) : await this.#values(past);
    } catch (error) {
      if (!(error instanceof StorageError) || error.code !== "trimmed") throw error;
      this.#past = null;
      this.#live = [];
      this.#liveAt = 0;
      // Changes are gone on from; of current values there is no middle: the next watch begins anew.
      this.#lose(past.kind === "changes" ? past.from : 0);
    }
  }

  /** Takes a change in; for `CacheWatchers`. */
  offer(change: CacheChange): void {
    if (this.#missed !== null || this.#ended) return;
    const queued = this.#live.length - this.#liveAt;
    const bytes = bytesOf(change);
    if (queued >= CAPACITY_CHANGES || (queued > 0 && this.#liveBytes + bytes > this.#budgetBytes)) {
      return this.#lose(change.offset);
    }
    this.#live.push(change);
    this.#liveBytes += bytes;
    this.onReady?.();
  }

  /** Whether a key is watched. */
  matches(key: string): boolean {
    const filter = this.#filter;
    return "key" in filter ? key === filter.key : key.startsWith(filter.prefix);
  }

  /** The cache is gone. */
  end(): void {
    this.close();
    this.#ended = true;
    this.onReady?.();
  }

  /** Stops watching. */
  close(): void {
    this.onClose?.();
    this.onClose = null;
  }

  #lose(from: number): void {
    this.#missed = from;
    this.close();
    this.onReady?.();
  }

  async #changes(past: { from: number }): Promise<CacheChange[]> {
    const { changes, next } = await this.#cache.changes(past.from, this.resumeOffset);
    past.from = next;
    if (next >= this.resumeOffset) this.#past = null;
    return changes.filter(({ key }) => this.matches(key));
  }

  async #values(past: { readonly entries: readonly CacheEntry[]; at: number }) {
    const page: CacheChange[] = [];
    for (let bytes = 0; bytes < PAGE_BYTES && past.at < past.entries.length;) {
      const entry = past.entries[past.at++]!;
      const change = await this.#valueOf(entry);
      bytes += bytesOf(change);
      page.push(change);
    }
    if (past.at === past.entries.length) this.#past = null;
    return page;
  }

  async #valueOf(entry: CacheEntry): Promise<CacheChange> {
    const { key, version } = entry;
    for (let held = entry;;) {
      try {
        const value = await this.#cache.valueOf(held);
        return { key, value, offset: held.offset, expiresAtMs: held.expiresAtMs };
      } catch (error) {
        // A compaction may have moved it; a newer value comes with the live changes.
        const moved = this.#cache.entryOf(key);
        if (moved === undefined || moved === held || moved.version !== version) throw error;
        held = moved;
      }
    }
  }
}

/** What a change takes in a queue, its object included. */
function bytesOf({ key, value }: CacheChange): number {
  return 64 + 2 * key.length + (value?.length ?? 0);
}
