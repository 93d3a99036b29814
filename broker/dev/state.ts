// Everything that a development broker needs on disk: certificates, signing key and key set,
// catalog, token. All of it lives in one state directory; secrets are mode 0600. What is there and
// still good is kept, so that clients of an earlier run go on working.

import { ensureDevelopmentCertificates } from "@felix/transport";
import { join, resolve } from "node:path";
import { parse, stringify } from "yaml";
import { CatalogError, parseCatalog } from "../catalog/catalog_file.ts";
import type { CatalogFile } from "../catalog/catalog_file.ts";
import { ensureDevelopmentKey, signDevelopmentToken, writeWhole } from "./development_token.ts";

/** Tenant of the development catalog. */
export const TENANT = "t1";
/** Namespace of the development catalog. */
export const NAMESPACE = "default";
/** Principal of the development token. */
const PRINCIPAL = "p:dev";
const CATALOG = "catalog.yml";
const TOKEN_TTL_SECONDS = 7 * 24 * 3600;

/** The streams and caches that are always there; `memory`: no stream is durable. */
function builtIn(memory: boolean) {
  const durable = !memory;
  return {
    tenants: [{
      id: TENANT,
      namespaces: [{
        name: NAMESPACE,
        streams: [{ name: "events", shards: 1, durable }, { name: "wide", shards: 8, durable }],
        caches: [{ name: "sessions", shards: 1 }, { name: "wide", shards: 8 }],
      }],
    }],
  };
}

/** Files of a state directory, absolute paths. */
export interface DevelopmentState {
  readonly directory: string;
  readonly caFile: string;
  readonly certFile: string;
  readonly keyFile: string;
  readonly jwksFile: string;
  readonly catalogFile: string;
  readonly tokenFile: string;
  /** Where durable streams are kept; `null`: in memory. */
  readonly dataDirectory: string | null;
  /** The file that says that a broker serves. */
  readonly devFile: string;
  /** Streams of tenant `t1`, namespace `default`. */
  readonly streams: readonly string[];
  /** Caches there. */
  readonly caches: readonly string[];
}

/** Permissions of a development token over everything of `tenant`. */
export function developmentPermissions(tenant: string): string[] {
  const streams = ["stream.publish", "stream.subscribe", "stream.manage"];
  const groups = ["group.consume", "group.manage"];
  return [
    ...streams.map((action) => `${action}:stream:${tenant}/*/*`),
    ...["cache.read", "cache.write"].map((action) => `${action}:cache:${tenant}/*/*`),
    ...groups.map((action) => `${action}:group:${tenant}/*/*/*`),
  ];
}

/**
 * Makes or completes the state directory. `extraCatalog`: a catalog file to add.
 * @throws {CatalogError} when that file cannot be used
 */
export async function prepareState(
  directory: string,
  extraCatalog: string | null,
  memory: boolean,
): Promise<DevelopmentState> {
  const root = resolve(directory);
  await Deno.mkdir(root, { recursive: true, mode: 0o700 });
  const file = await writeCatalog(root, extraCatalog, memory);
  const certificates = await ensureDevelopmentCertificates(root, []);
  const key = await ensureDevelopmentKey(root);
  const tokenFile = join(root, "token");
  const token = await signDevelopmentToken(key, {
    tenant: TENANT,
    principal: PRINCIPAL,
    permissions: developmentPermissions(TENANT),
    ttlSeconds: TOKEN_TTL_SECONDS,
  });
  await writeWhole(tokenFile, `${token}\n`, 0o600);
  const here = (definition: { tenant: string; namespace: string }): boolean =>
    definition.tenant === TENANT && definition.namespace === NAMESPACE;
  return {
    directory: root,
    caFile: certificates.caFile,
    certFile: certificates.certFile,
    keyFile: certificates.keyFile,
    jwksFile: key.jwksFile,
    catalogFile: join(root, CATALOG),
    tokenFile,
    dataDirectory: memory ? null : join(root, "data"),
    devFile: join(root, "dev.json"),
    streams: file.streams.filter(here).map((definition) => definition.stream),
    caches: file.caches.filter(here).map((definition) => definition.cache),
  };
}

/**
 * Writes the catalog of a state directory: the built-in one and `extra`'s.
 * @throws {CatalogError} when that file cannot be used
 */
export async function writeCatalog(
  directory: string,
  extra: string | null,
  memory: boolean,
): Promise<CatalogFile> {
  const { text, file } = await mergedCatalog(extra, memory);
  await writeWhole(join(resolve(directory), CATALOG), text, 0o644);
  return file;
}

/** The built-in catalog with another one's tenants, namespaces, streams and caches added. */
async function mergedCatalog(
  extra: string | null,
  memory: boolean,
): Promise<{ text: string; file: CatalogFile }> {
  let merged: unknown = builtIn(memory);
  if (extra !== null) {
    const text = await readExtra(extra);
    try {
      parseCatalog(text);
      merged = merge(builtIn(memory), parse(text) ?? {});
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      throw new CatalogError(`--catalog ${extra}: ${reason}`, { cause: error });
    }
  }
  const text = stringify(merged);
  return { text, file: parseCatalog(text) };
}

async function readExtra(path: string): Promise<string> {
  try {
    return await Deno.readTextFile(path);
  } catch (error) {
    throw new CatalogError(`--catalog ${path}: cannot be read`, { cause: error });
  }
}

type Named = Record<string, unknown>;

/** Merges lists of named things; one that both have is merged in turn, the second one's wins. */
function merge(base: Named, extra: Named): Named {
  const merged: Named = { ...base, ...extra };
  for (const [key, value] of Object.entries(base)) {
    if (!Array.isArray(value)) continue;
    const added = extra[key];
    merged[key] = Array.isArray(added) ? mergeLists(value, added) : value;
  }
  return merged;
}

function mergeLists(base: readonly Named[], extra: readonly Named[]): Named[] {
  const merged = new Map(base.map((entry) => [nameOf(entry), entry]));
  for (const entry of extra) {
    const known = merged.get(nameOf(entry));
    merged.set(nameOf(entry), known === undefined ? entry : merge(known, entry));
  }
  return [...merged.values()];
}

function nameOf(entry: Named): string {
  return String(entry["id"] ?? entry["name"]);
}
