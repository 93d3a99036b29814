// Applies a catalog file at start and on SIGHUP, and says what it did. A file that cannot be used
// leaves the catalog as it is.

import type { FileCatalog } from "../catalog/catalog.ts";
import type { CatalogFile } from "../catalog/catalog_file.ts";
import type { BrokerLog } from "../log/broker_log.ts";
import { readCatalog } from "./prepare.ts";

/** Makes the catalog what `file` lists. */
export async function applyCatalog(
  catalog: FileCatalog,
  file: CatalogFile,
  log: BrokerLog,
): Promise<void> {
  const { added, removed, refused } = await catalog.apply(file);
  for (const { name, error } of refused) {
    log.warn("catalog change refused", { name, error, code: "definition_refused" });
  }
  log.info("catalog synced", {
    tenants: file.tenants.length,
    streams: catalog.streams.list().length,
    caches: catalog.caches.list().length,
    added: added.length,
    removed: removed.length,
    refused: refused.length,
  });
}

/** Reads the catalog file again and applies it. Never rejects. */
export async function reloadCatalog(
  path: string | null,
  catalog: FileCatalog,
  log: BrokerLog,
): Promise<void> {
  if (path === null) {
    log.warn("nothing to reload", { reason: "FELIX_CATALOG_FILE is not set" });
    return;
  }
  try {
    await applyCatalog(catalog, readCatalog(path), log);
  } catch (error) {
    log.error("catalog reload failed; the catalog stays as it is", { error, code: "bad_catalog" });
  }
}
