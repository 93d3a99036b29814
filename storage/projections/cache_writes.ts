// The writes of a cache log: what each has to find when its turn comes, and what it leaves behind.
// Rule: a decision is made against everything that is in the log before it, kept or not; an answer
// that rests on what is not kept yet waits until it is.

import { encodeCacheRecord } from "../format/cache_record.ts";
import type { StorageError } from "../storage_error.ts";
import { CacheEntry } from "./cache_entry.ts";
import type { CacheChange } from "./cache_watchers.ts";
import type { Write } from "./ordered_writes.ts";

/** When a conditional write applies: there is no live value, or one of this version. */
export type CacheCondition = "absent" | { readonly version: number };

/** What a write did. */
export interface WriteResult {
  readonly applied: boolean;
  /** The version written, or else the one that is there; `null`: none. */
  readonly version: number | null;
  /** Of a read what the key holds, of a delete what it removed; `null`: nothing live. */
  readonly value: Uint8Array | null;
}

/** What a write is to do; `nowMs` decides what is expired. */
export type CacheRequest =
  | {
    readonly op: "put";
    readonly key: string;
    /** Copied. */
    readonly value: Uint8Array;
    readonly expiresAtMs: number;
    readonly nowMs: number;
    readonly condition: CacheCondition | null;
  }
  /** A compaction's: `value` again, while `entry` is what the key holds. */
  | {
    readonly op: "copy";
    readonly key: string;
    readonly value: Uint8Array;
    readonly entry: CacheEntry;
  }
  | {
    readonly op: "delete";
    readonly key: string;
    readonly nowMs: number;
    readonly condition: { readonly version: number } | null;
  }
  /** Writes nothing: answers what the key holds after everything submitted before. */
  | { readonly op: "read"; readonly key: string; readonly nowMs: number }
  /** The end of `entry`, whose time has passed, while it is what the key holds. */
  | { readonly op: "expire"; readonly key: string; readonly entry: CacheEntry };

/** The parts of a cache log that its writes work on. */
export interface CacheIndex {
  /** Newest write of each key that is in the log and not applied. */
  readonly staged: Map<string, CacheWrite>;
  entryOf(key: string): CacheEntry | undefined;
  valueOf(entry: CacheEntry): Uint8Array | Promise<Uint8Array>;
  replace(entry: CacheEntry, value: Uint8Array): void;
  remove(key: string, bytes: number): void;
  notify(change: CacheChange): void;
  applied(target: number): Promise<void>;
}

/** What a key holds as far as a decision goes. */
interface Live {
  readonly version: number;
  readonly value: () => Uint8Array | Promise<Uint8Array>;
}

/** One write of a cache log. */
export class CacheWrite implements Write {
  readonly key: string;
  readonly #index: CacheIndex;
  readonly #request: CacheRequest;
  readonly #done: (result: WriteResult) => void;
  readonly #failed: (error: StorageError) => void;
  /** The write of the key that was the newest before this one. */
  #previous: CacheWrite | null = null;
  #offset = -1;
  #settled = false;
  #payload: Uint8Array | null = null;
  #bytes = 0;
  /** The value of a put or copy, in memory of its own. */
  #value: Uint8Array | null = null;
  /** What a read or delete found. */
  #held: Uint8Array | Promise<Uint8Array> | null = null;

  constructor(
    index: CacheIndex,
    request: CacheRequest,
    done: (result: WriteResult) => void,
    failed: (error: StorageError) => void,
  ) {
    this.key = request.key;
    this.#index = index;
    this.#request = request;
    this.#done = done;
    this.#failed = failed;
    // What the caller passed is the caller's when this turn is over.
    if (request.op === "put") this.#own(encodePut(request, null), request.value);
  }

  prepare(offset: number): Uint8Array | null {
    const request = this.#request;
    const { key } = this;
    const live = "nowMs" in request ? this.#live(request.nowMs) : null;
    const version = live?.version ?? null;
    switch (request.op) {
      case "put": {
        const { condition } = request;
        const wanted = condition === "absent" ? null : condition?.version;
        if (condition !== null && version !== wanted) return this.#leave(version);
        break;
      }
      case "delete": {
        const { condition } = request;
        if (condition === null && !this.#holdsAnything()) return this.#leave(version);
        if (condition !== null && version !== condition.version) return this.#leave(version);
        if (condition === null) this.#held = live?.value() ?? null;
        break;
      }
      case "read":
        this.#held = live?.value() ?? null;
        return this.#leave(version);
      case "copy":
      case "expire":
        if (!this.#holds(request.entry)) return this.#leave(null);
        if (request.op === "copy") this.#own(encodePut(request, request.entry), request.value);
    }
    this.#payload ??= encodeCacheRecord({ op: "delete", key });
    this.#bytes = this.#payload.length;
    this.#offset = offset;
    this.#previous = this.#index.staged.get(key) ?? null;
    this.#index.staged.set(key, this);
    return this.#payload;
  }

  apply(offset: number): void {
    this.#settle();
    const { key } = this;
    const request = this.#request;
    const value = this.#value;
    if (value === null) {
      this.#index.remove(key, this.#bytes);
      this.#index.notify({ key, value, offset, expiresAtMs: 0 });
      return this.#answer(true, null);
    }
    const version = request.op === "copy" ? request.entry.version : offset;
    const expiresAtMs = expiryOf(request);
    this.#index.replace(new CacheEntry(key, offset, version, expiresAtMs, this.#bytes), value);
    if (request.op === "put") this.#index.notify({ key, value, offset, expiresAtMs });
    this.#done({ applied: true, version, value: null });
  }

  fail(error: StorageError): void {
    this.#settle();
    const previous = this.#previous;
    if (previous !== null && !previous.#settled) this.#index.staged.set(this.key, previous);
    this.#failed(error);
  }

  #settle(): void {
    const { staged } = this.#index;
    this.#settled = true;
    if (staged.get(this.key) === this) staged.delete(this.key);
  }

  #own(payload: Uint8Array, { length }: Uint8Array): void {
    this.#payload = payload;
    this.#value = payload.subarray(payload.length - length);
  }

  /** Whether the key has an entry, or will have when everything in the log is applied. */
  #holdsAnything(): boolean {
    const staged = this.#index.staged.get(this.key);
    return staged === undefined
      ? this.#index.entryOf(this.key) !== undefined
      : staged.#value !== null;
  }

  #holds(entry: CacheEntry): boolean {
    return !this.#index.staged.has(this.key) && this.#index.entryOf(this.key) === entry;
  }

  /** What the key will hold when everything in the log is applied; `null`: nothing live. */
  #live(nowMs: number): Live | null {
    const index = this.#index;
    const staged = index.staged.get(this.key);
    if (staged === undefined) {
      const entry = index.entryOf(this.key);
      if (entry === undefined || entry.expired(nowMs)) return null;
      return { version: entry.version, value: () => index.valueOf(entry) };
    }
    const value = staged.#value;
    const request = staged.#request;
    const expiresAtMs = expiryOf(request);
    if (value === null || (expiresAtMs !== 0 && expiresAtMs <= nowMs)) return null;
    const version = request.op === "copy" ? request.entry.version : staged.#offset;
    return { version, value: () => value };
  }

  /** Writes nothing, and says so once what that rests on is kept. */
  #leave(version: number | null): null {
    const staged = this.#index.staged.get(this.key);
    const answer = (): void => this.#answer(false, version);
    if (staged === undefined) answer();
    else this.#index.applied(staged.#offset + 1).then(answer, this.#failed);
    return null;
  }

  #answer(applied: boolean, version: number | null): void {
    const held = this.#held;
    const done = (value: Uint8Array | null): void => this.#done({ applied, version, value });
    if (held instanceof Promise) held.then(done, this.#failed);
    else done(held);
  }
}

function expiryOf(request: CacheRequest): number {
  if (request.op === "put") return request.expiresAtMs;
  return request.op === "copy" ? request.entry.expiresAtMs : 0;
}

function encodePut(
  request: CacheRequest & { readonly value: Uint8Array },
  copied: CacheEntry | null,
): Uint8Array {
  const { key, value } = request;
  const expiresAtMs = expiryOf(request);
  return encodeCacheRecord({
    op: "put",
    key,
    value,
    expiresAtMs,
    version: copied?.version ?? null,
  });
}
