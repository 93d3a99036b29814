// A copy of the keys under a prefix that follows the cache. The rule: it follows for as long as
// anybody can be asked; when it has to give up, `failure` says why and everybody who reads its
// changes is told (spec/client.md §9).

import { ClosedError } from "../failure/classes.ts";
import type { FelixError } from "../failure/felix_error.ts";
import { backgroundTimeout } from "../runtime/deno.ts";
import { ChangeReader } from "./change_reader.ts";
import { MirrorState } from "./mirror_state.ts";
import type { CacheChange } from "./mirror_state.ts";
import type { FeedItem } from "./watch_types.ts";

/** A copy of the keys under a prefix. */
export interface CacheMirror extends AsyncDisposable {
  /** Resolves once all current values are here; rejects when that cannot happen any more. */
  readonly ready: Promise<void>;
  /** Number of entries. */
  readonly size: number;
  /** Why it does not follow the cache any more; `null` while it does and after `close`. */
  readonly failure: FelixError | null;
  /** The value of a key. */
  get(key: string): Uint8Array | undefined;
  /** Whether a key has a value. */
  has(key: string): boolean;
  /** All entries; the mirror may change meanwhile. */
  entries(): IterableIterator<[string, Uint8Array]>;
  /**
   * Changes from this call on, for one reader. One that falls behind is told the newest value of
   * each key only. Rejects when the mirror stops following.
   */
  changes(): AsyncIterable<CacheChange>;
  /** Ends it; the entries stay. Never throws. */
  close(): Promise<void>;
}

/** The time, and calls at a time. */
export interface MirrorClock {
  /** Milliseconds since the Unix epoch. */
  now(): number;
  /** Calls `run` once after `delayMs`; returns how to stop it. */
  after(delayMs: number, run: () => void): () => void;
}

/** What a mirror reads. */
export interface MirrorSource {
  next(): Promise<FeedItem | null>;
  close(): Promise<void>;
}

/** Milliseconds that a timer waits at most: beyond 31 bits timers fire at once. */
const LONGEST_WAIT_MS = 3_600_000;

/** The clock of the machine. */
export const systemClock: MirrorClock = {
  now: () => Date.now(),
  after: (delayMs, run) => backgroundTimeout(run, delayMs),
};

/** The mirror behind the interface. */
export class LiveMirror implements CacheMirror {
  readonly ready: Promise<void>;
  readonly #source: MirrorSource;
  readonly #clock: MirrorClock;
  readonly #state: MirrorState;
  readonly #readers = new Set<ChangeReader>();
  #failure: FelixError | null = null;
  #closed = false;
  /** When the timer fires; `null` = it is not set. */
  #wakesMs: number | null = null;
  #stopTimer: (() => void) | null = null;
  #resolveReady!: () => void;
  #rejectReady!: (error: unknown) => void;

  /** Follows a watch of current values. */
  constructor(source: MirrorSource, clock: MirrorClock) {
    this.#source = source;
    this.#clock = clock;
    this.#state = new MirrorState((change) => {
      for (const reader of this.#readers) reader.push(change);
    });
    this.ready = new Promise((resolve, reject) => {
      this.#resolveReady = resolve;
      this.#rejectReady = reject;
    });
    this.ready.catch(() => undefined);
    void this.#follow();
  }

  get size(): number {
    this.#expire();
    return this.#state.size;
  }

  get failure(): FelixError | null {
    return this.#failure;
  }

  get(key: string): Uint8Array | undefined {
    this.#expire();
    return this.#state.get(key);
  }

  has(key: string): boolean {
    return this.get(key) !== undefined;
  }

  entries(): IterableIterator<[string, Uint8Array]> {
    this.#expire();
    return this.#state.entries();
  }

  changes(): AsyncIterable<CacheChange> {
    const reader = new ChangeReader((ended) => this.#readers.delete(ended));
    if (this.#closed) reader.end(this.#failure);
    else this.#readers.add(reader);
    return reader;
  }

  async close(): Promise<void> {
    this.#end(null);
    await this.#source.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #follow(): Promise<void> {
    while (!this.#closed) {
      const item = await this.#source.next();
      if (this.#closed) return;
      if (item === null) return this.#end(null);
      this.#take(item);
    }
  }

  #take(item: FeedItem): void {
    switch (item.type) {
      case "change":
        this.#state.apply(item, this.#clock.now());
        return this.#setTimer();
      case "resnapshot":
        return this.#state.restart(item.shard);
      case "snapshotEnd":
        return this.#state.complete(item.shard);
      case "stateComplete":
        return this.#resolveReady();
      case "shardClosed":
        // With a part of it missing it is no copy any more.
        this.#end(item.error);
        return void this.#source.close();
      case "lagged":
      case "shardMoved":
        return;
    }
  }

  /** Removes what has expired, also when the timer is late. */
  #expire(): void {
    if (this.#wakesMs === null) return;
    const nowMs = this.#clock.now();
    if (nowMs >= this.#wakesMs) this.#state.expire(nowMs);
  }

  #setTimer(): void {
    const nextMs = this.#closed ? null : this.#state.nextExpiryMs;
    if (nextMs === this.#wakesMs) return;
    this.#stopTimer?.();
    this.#stopTimer = null;
    this.#wakesMs = nextMs;
    if (nextMs === null) return;
    const delayMs = Math.min(LONGEST_WAIT_MS, Math.max(0, nextMs - this.#clock.now()));
    this.#stopTimer = this.#clock.after(delayMs, () => {
      this.#wakesMs = null;
      this.#state.expire(this.#clock.now());
      this.#setTimer();
    });
  }

  #end(failure: FelixError | null): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#failure = failure;
    this.#setTimer();
    this.#rejectReady(
      failure ?? new ClosedError({
        message: "the mirror was closed before it had all values",
        operation: "cache.mirror",
      }),
    );
    for (const reader of this.#readers) reader.end(failure);
    this.#readers.clear();
  }
}
