// The shard of a cache key: its UTF-8 bytes, always by modulo (spec/wire.md §6).

import { shardForKey } from "@felix/wire";

const encoder = new TextEncoder();
const keyBytes = new Uint8Array(3 * 1024);

/** Index of the shard, of `shards`, that a key belongs to. */
export function cacheShardOf(key: string, shards: number): number {
  if (shards === 1) return 0;
  const fits = key.length * 3 <= keyBytes.length;
  const bytes = fits
    ? keyBytes.subarray(0, encoder.encodeInto(key, keyBytes).written)
    : encoder.encode(key);
  return shardForKey(bytes, shards);
}
