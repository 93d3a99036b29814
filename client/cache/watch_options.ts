// Checks the settings of a watch before anything is asked (spec/client.md §9).

import { InvalidArgumentError } from "../failure/classes.ts";
import type { Offset } from "../types.ts";
import type { WatchOptions } from "./watch_types.ts";

/** Which keys are watched; exactly one is not `null`. */
export interface WatchFilter {
  readonly key: string | null;
  readonly prefix: string | null;
}

/** Options checked and completed. */
export interface ResolvedWatch {
  readonly filter: WatchFilter;
  readonly retained: boolean;
  readonly from: WatchOptions["from"];
  /** Shard of a prefix; `null` = all. */
  readonly shard: number | null;
  readonly onLag: "rewatch" | "end";
}

function refuse(message: string): never {
  throw new InvalidArgumentError({ message, operation: "cache.watch" });
}

/** Checks options and fills in defaults. @throws {InvalidArgumentError} */
export function resolveWatch(options: WatchOptions): ResolvedWatch {
  const { key = null, prefix = null, from, shard, retained = false, onLag = "rewatch" } = options;
  if ((key === null) === (prefix === null)) refuse("a watch takes either a key or a prefix");
  if (key === "") refuse("key must not be empty");
  if (retained && from !== undefined) refuse("retained and from exclude each other");
  if (key !== null && shard !== undefined) refuse("the key says which shard: leave shard out");
  if (typeof shard === "number" && !(Number.isSafeInteger(shard) && shard >= 0)) {
    refuse(`shard must be a whole number or "all", not ${shard}`);
  }
  if (onLag !== "rewatch" && onLag !== "end") refuse(`onLag must be rewatch or end, not ${onLag}`);
  return {
    filter: { key, prefix },
    retained,
    from,
    shard: typeof shard === "number" ? shard : null,
    onLag,
  };
}

/** Where one of the watched shards starts; `null` = not said. @throws {InvalidArgumentError} */
export function fromOffset(from: WatchOptions["from"], shard: number): Offset | null {
  if (from === undefined) return null;
  const offset = typeof from === "bigint"
    ? from
    : from instanceof Map
    ? from.get(shard)
    : (from as Readonly<Record<number, Offset>>)[shard];
  if (typeof offset === "bigint" && offset >= 0n) return offset;
  if (offset === undefined) refuse(`from does not say where shard ${shard} starts`);
  return refuse(`from must be an offset, not ${String(offset)}`);
}
