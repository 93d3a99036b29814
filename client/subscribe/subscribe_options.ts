// What `subscribe` takes, and its defaults (spec/client.md §7). Refused before anything is asked of
// a broker: what cannot be meant.

import { InvalidArgumentError } from "../failure/classes.ts";
import type { CallOptions, StartPosition } from "../types.ts";

/** What to do when the client's buffer of a subscription is full. */
export type OverflowPolicy = "block" | "dropNew" | "dropOld";

/** Settings of `StreamHandle.subscribe`. */
export interface SubscribeOptions extends CallOptions {
  /** Where to start; default `latest`. */
  readonly start?: StartPosition;
  /** Shard to read; default 0. */
  readonly shard?: number;
  /** Asks the broker for a queue of this many batches. */
  readonly queueCapacity?: number;
  /**
   * The client's buffer: at most `maxEvents` (256) and `maxBytes` (8 MiB). When it is full, `block`
   * (the default) stops reading, `dropNew` and `dropOld` lose events and count them.
   */
  readonly buffer?: {
    readonly maxEvents?: number;
    readonly maxBytes?: number;
    readonly overflow?: OverflowPolicy;
  };
  /**
   * What to do when records are missing: `resume` reads them again, `report` sets `droppedBefore`,
   * `throw` rejects. Default `resume` on a stream with offsets, else `report`.
   */
  readonly onGap?: "resume" | "report" | "throw";
  /** What to do when the start cannot be read; default `throw`. */
  readonly onCursorError?: "throw" | "nearest" | "earliest" | "latest";
  /** Resume after moves and lost connections; default true. */
  readonly follow?: boolean;
  /** Milliseconds that a resume may take; default 30 000. */
  readonly resumeDeadlineMs?: number;
}

/** Options checked and completed. */
export interface ResolvedSubscribe {
  readonly start: StartPosition;
  readonly shard: number;
  readonly queueCapacity: number | undefined;
  readonly maxEvents: number;
  readonly maxBytes: number;
  readonly overflow: OverflowPolicy;
  readonly onGap: "resume" | "report" | "throw";
  readonly onCursorError: "throw" | "nearest" | "earliest" | "latest";
  readonly follow: boolean;
  readonly resumeDeadlineMs: number;
}

function refuse(message: string): never {
  throw new InvalidArgumentError({ message, operation: "subscribe" });
}

function count(value: number | undefined, name: string, fallback: number, least: number): number {
  if (value === undefined) return fallback;
  if (Number.isSafeInteger(value) && value >= least) return value;
  return refuse(`${name} must be a whole number of at least ${least}, not ${value}`);
}

function oneOf<T extends string>(value: T, words: readonly T[], name: string): T {
  if (words.includes(value)) return value;
  return refuse(`${name} must be one of ${words.join(", ")}, not ${value}`);
}

/** Checks options and fills in defaults. @throws {InvalidArgumentError} */
export function resolveSubscribe(
  options: SubscribeOptions,
  defaults: Pick<SubscribeOptions, "buffer" | "onGap" | "onCursorError">,
): ResolvedSubscribe {
  const start = options.start ?? "latest";
  if (typeof start === "bigint" ? start < 0n : start !== "latest" && start !== "earliest") {
    refuse(`start must be "latest", "earliest" or an offset, not ${start}`);
  }
  const buffer = { ...defaults.buffer, ...options.buffer };
  const capacity = options.queueCapacity;
  return {
    start,
    shard: count(options.shard, "shard", 0, 0),
    queueCapacity: capacity === undefined ? undefined : count(capacity, "queueCapacity", 1, 1),
    maxEvents: count(buffer.maxEvents, "buffer.maxEvents", 256, 1),
    maxBytes: count(buffer.maxBytes, "buffer.maxBytes", 8 * 1024 * 1024, 1),
    overflow: oneOf(buffer.overflow ?? "block", ["block", "dropNew", "dropOld"], "overflow"),
    onGap: oneOf(
      options.onGap ?? defaults.onGap ?? "resume",
      ["resume", "report", "throw"],
      "onGap",
    ),
    onCursorError: oneOf(
      options.onCursorError ?? defaults.onCursorError ?? "throw",
      ["throw", "nearest", "earliest", "latest"],
      "onCursorError",
    ),
    follow: options.follow ?? true,
    resumeDeadlineMs: count(options.resumeDeadlineMs, "resumeDeadlineMs", 30_000, 1),
  };
}
