// Reads a catalog file (YAML):
//
//   tenants: [{ id, namespaces: [{ name, streams: [{ name, shards, routing, durable }],
//                                  caches: [{ name, shards }] }] }]
//
// An unknown key, a missing name, a name twice or a value out of range names its path.

import { parse } from "yaml";
import { MAX_SHARDS } from "../core/mod.ts";
import type { CacheDefinition, StreamDefinition } from "../core/mod.ts";

/** What a catalog file lists. */
export interface CatalogFile {
  readonly tenants: readonly string[];
  readonly streams: readonly StreamDefinition[];
  readonly caches: readonly CacheDefinition[];
}

/** A catalog file that cannot be used; the message is one line and names the place. */
export class CatalogError extends Error {
  override readonly name = "CatalogError";
  /** Stable code of this class. */
  readonly code = "bad_catalog";
}

const MAX_NAME_BYTES = 65_535;

/** @throws {CatalogError} */
export function parseCatalog(text: string): CatalogFile {
  let document: unknown;
  try {
    document = parse(text, { maxAliasCount: 100 });
  } catch (error) {
    const message = error instanceof Error ? error.message.split("\n", 1)[0]! : String(error);
    throw new CatalogError(message, { cause: error });
  }
  const root = fields(document ?? {}, "", ["tenants"]);
  const tenants = new Set<string>();
  const streams: StreamDefinition[] = [];
  const caches: CacheDefinition[] = [];
  for (const [entry, at] of items(root["tenants"], "tenants")) {
    const tenant = fields(entry, at, ["id", "namespaces"]);
    const id = name(tenant["id"], `${at}.id`);
    unique(tenants, id, `${at}.id`);
    const namespaces = new Set<string>();
    for (const [inner, path] of items(tenant["namespaces"], `${at}.namespaces`)) {
      const namespace = fields(inner, path, ["name", "streams", "caches"]);
      const space = name(namespace["name"], `${path}.name`);
      unique(namespaces, space, `${path}.name`);
      streams.push(...readStreams(namespace["streams"], `${path}.streams`, id, space));
      caches.push(...readCaches(namespace["caches"], `${path}.caches`, id, space));
    }
  }
  return { tenants: [...tenants], streams, caches };
}

function readStreams(
  list: unknown,
  path: string,
  tenant: string,
  namespace: string,
): StreamDefinition[] {
  const names = new Set<string>();
  return items(list, path).map(([entry, at]) => {
    const stream = fields(entry, at, ["name", "shards", "routing", "durable"]);
    const called = name(stream["name"], `${at}.name`);
    unique(names, called, `${at}.name`);
    const routing = stream["routing"] ?? "modulo";
    if (routing !== "modulo" && routing !== "jump_hash") {
      throw new CatalogError(`${at}.routing: must be modulo or jump_hash`);
    }
    const durable = stream["durable"] ?? false;
    if (typeof durable !== "boolean") {
      throw new CatalogError(`${at}.durable: must be true or false`);
    }
    const shards = width(stream["shards"], `${at}.shards`);
    return { tenant, namespace, stream: called, shards, routing, durable };
  });
}

function readCaches(
  list: unknown,
  path: string,
  tenant: string,
  namespace: string,
): CacheDefinition[] {
  const names = new Set<string>();
  return items(list, path).map(([entry, at]) => {
    const cache = fields(entry, at, ["name", "shards"]);
    const called = name(cache["name"], `${at}.name`);
    unique(names, called, `${at}.name`);
    return { tenant, namespace, cache: called, shards: width(cache["shards"], `${at}.shards`) };
  });
}

function fields(value: unknown, path: string, known: readonly string[]): Record<string, unknown> {
  const at = path === "" ? "the catalog" : path;
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new CatalogError(`${at}: must be a map with ${known.join(", ")}`);
  }
  for (const key of Object.keys(value)) {
    if (known.includes(key)) continue;
    const full = path === "" ? key : `${path}.${key}`;
    throw new CatalogError(`${full}: unknown key; known here: ${known.join(", ")}`);
  }
  return value as Record<string, unknown>;
}

function items(value: unknown, path: string): [unknown, string][] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) throw new CatalogError(`${path}: must be a list`);
  return value.map((entry, index) => [entry, `${path}[${index}]`]);
}

function name(value: unknown, path: string): string {
  if (typeof value !== "string" || value === "") {
    throw new CatalogError(`${path}: must be a name, in quotes if it looks like a number`);
  }
  if (new TextEncoder().encode(value).length > MAX_NAME_BYTES) {
    throw new CatalogError(`${path}: is longer than ${MAX_NAME_BYTES} bytes`);
  }
  return value;
}

function width(value: unknown, path: string): number {
  if (value === undefined || value === null) return 1;
  if (!Number.isInteger(value) || (value as number) < 1 || (value as number) > MAX_SHARDS) {
    throw new CatalogError(`${path}: must be a whole number from 1 to ${MAX_SHARDS}`);
  }
  return value as number;
}

function unique(seen: Set<string>, value: string, path: string): void {
  if (seen.has(value)) throw new CatalogError(`${path}: ${JSON.stringify(value)} is there twice`);
  seen.add(value);
}
