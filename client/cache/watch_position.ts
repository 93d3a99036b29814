// Where the watch of one shard is: what each change means and where to go on after an interruption
// (spec/semantics.md §6.4). Pure. The rule: what was not announced as complete is asked for again
// from its beginning, because current values come in no order that could be resumed.

/** What to ask the broker for. */
export type WatchStart =
  | { readonly kind: "live" }
  | { readonly kind: "retained" }
  | { readonly kind: "from"; readonly offset: bigint };

/** What the broker said when it accepted a watch. */
export interface WatchStarted {
  readonly resumeOffset: bigint;
  readonly resnapshot: boolean;
  readonly retainedCount: bigint;
}

/** What a change is: a current value (perhaps the last one), news, or already known. */
export type ChangeKind = "current" | "lastCurrent" | "news" | "known";

/** Follows one shard. */
export class WatchPosition {
  readonly #first: WatchStart;
  /** Announced current values that have not come. */
  #remaining = 0n;
  /** While values come that nobody counted: those below this offset, asked for from `#since`. */
  #until: bigint | null = null;
  #since = 0n;
  /** First offset not seen; `null` until a watch was accepted. */
  #next: bigint | null = null;

  /** Nothing accepted yet. */
  constructor(start: WatchStart) {
    this.#first = start;
    if (start.kind === "from") this.#next = start.offset;
  }

  /** Where another watch would go on; `null` = only from the beginning. */
  get resume(): bigint | null {
    if (this.#remaining > 0n) return null;
    return this.#until === null ? this.#next : this.#since;
  }

  /** What to ask for now. */
  get start(): WatchStart {
    const { resume } = this;
    if (resume !== null) return { kind: "from", offset: resume };
    return this.#remaining > 0n ? { kind: "retained" } : this.#first;
  }

  /** A watch that asked for `asked` was accepted. */
  accepted(asked: WatchStart, started: WatchStarted): void {
    this.#remaining = asked.kind === "retained" ? started.retainedCount : 0n;
    this.#until = null;
    if (asked.kind !== "from") {
      this.#next = started.resumeOffset;
    } else if (started.resnapshot) {
      this.#since = asked.offset;
      this.#next = this.#until = started.resumeOffset;
    } else this.#next = asked.offset;
  }

  /** Looks at a change. */
  see(offset: bigint): ChangeKind {
    if (this.#remaining > 0n) return --this.#remaining === 0n ? "lastCurrent" : "current";
    if (this.#until !== null && offset < this.#until) return "current";
    if (offset < this.#next!) return "known";
    this.#until = null;
    this.#next = offset + 1n;
    return "news";
  }

  /** The broker dropped changes from `resumeFrom` on and delivered all before. */
  lagged(resumeFrom: bigint): void {
    if (this.#remaining > 0n) return;
    this.#until = null;
    this.#next = resumeFrom;
  }

  /** The shard went elsewhere; its old owner delivered everything below `resumeFrom`, if said. */
  moved(resumeFrom: bigint | undefined): void {
    if (this.resume !== this.#next || resumeFrom === undefined) return;
    if (this.#next === null || resumeFrom > this.#next) this.#next = resumeFrom;
  }
}
