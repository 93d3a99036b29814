// Names of streams and caches: one map key per (tenant, namespace, name), whatever the names
// contain, and the bounds that a definition must keep.

import { CoreError } from "./core_error.ts";

/** Largest width of a stream or cache (spec/controlplane.md §2). */
export const MAX_SHARDS = 1024;

/** A map key that no other scope has: the lengths in it keep the names apart. */
export function scopeKey(tenant: string, namespace: string, name: string): string {
  return `${tenant.length}:${tenant}${namespace.length}:${namespace}${name}`;
}

/** Refuses an empty name (`invalid_definition`). */
export function checkScope(tenant: string, namespace: string, name: string): void {
  if (tenant !== "" && namespace !== "" && name !== "") return;
  throw new CoreError("invalid_definition", "tenant, namespace and name must not be empty");
}

/** Refuses a width outside 1 to `MAX_SHARDS` (`invalid_definition`). */
export function checkShards(shards: number): void {
  if (Number.isInteger(shards) && shards >= 1 && shards <= MAX_SHARDS) return;
  throw new CoreError("invalid_definition", `a width must be 1 to ${MAX_SHARDS}, not ${shards}`);
}
