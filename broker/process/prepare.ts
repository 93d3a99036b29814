// Reads and checks every file that the settings name, before anything is bound. `--check` and
// `--print-config` run exactly this; a start goes on with what it read.

import { parseCatalog } from "../catalog/catalog_file.ts";
import type { CatalogFile } from "../catalog/catalog_file.ts";
import { parseKeySet } from "../auth/key_set.ts";
import type { KeySourceConfig } from "../auth/token_verifier.ts";
import { ConfigError } from "../config/config_error.ts";
import type { BrokerSettings } from "../config/settings.ts";
import { readFileOrNull } from "./files.ts";
import { readPem, readTlsFiles } from "./tls_identity.ts";
import type { TlsIdentity } from "./tls_identity.ts";

/** What the files say. */
export interface Prepared {
  /** The operator's certificate; `null`: one is to be generated. */
  readonly tls: TlsIdentity | null;
  readonly keySource: KeySourceConfig;
  /** Further roots for fetching keys, in PEM; `null`: none. */
  readonly keyServerCa: string | null;
  /** The catalog; `null`: none is configured. */
  readonly catalog: CatalogFile | null;
}

/** @throws {ConfigError} `bad_file` */
export async function prepare(settings: BrokerSettings): Promise<Prepared> {
  const tls = readTlsFiles(settings);
  if (settings.devInfo !== null) parseDevInfo(settings.devInfo);
  return {
    tls,
    keySource: await keySourceOf(settings),
    keyServerCa: settings.controlplaneCa === null
      ? null
      : readPem("FELIX_CONTROLPLANE_CA", settings.controlplaneCa),
    catalog: settings.catalogFile === null ? null : checkedCatalog(settings),
  };
}

/** What is durable needs storage: known before anything is bound, not at the first publish. */
function checkedCatalog({ catalogFile, durableStorageDir }: BrokerSettings): CatalogFile {
  const file = readCatalog(catalogFile!);
  const durable = file.streams.find((stream) => stream.durable);
  if (durable !== undefined && durableStorageDir === null) {
    const name = `${durable.tenant}/${durable.namespace}/${durable.stream}`;
    throw new ConfigError(
      "conflict",
      `FELIX_CATALOG_FILE: ${catalogFile}: stream ${name} is durable and ` +
        "FELIX_DURABLE_STORAGE_DIR is not set",
    );
  }
  return file;
}

/** The catalog in `path`. @throws {ConfigError} `bad_file` */
export function readCatalog(path: string): CatalogFile {
  const text = readText("FELIX_CATALOG_FILE", path);
  try {
    return parseCatalog(text);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new ConfigError("bad_file", `FELIX_CATALOG_FILE: ${path}: ${reason}`, { cause: error });
  }
}

/** Members of `FELIX_DEV_INFO`. @throws {ConfigError} `bad_value` */
export function parseDevInfo(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) {
      return value as Record<string, unknown>;
    }
  } catch {
    // Refused below.
  }
  throw new ConfigError("bad_value", "FELIX_DEV_INFO: must be a JSON object");
}

async function keySourceOf(settings: BrokerSettings): Promise<KeySourceConfig> {
  const staleMaxSeconds = settings.jwksStaleMaxSeconds;
  const { jwksFile, jwksUrl, controlplaneUrl } = settings;
  if (jwksFile !== null) {
    await checkKeyFile(jwksFile);
    return { kind: "file", path: jwksFile };
  }
  if (jwksUrl !== null) return { kind: "url", url: jwksUrl, staleMaxSeconds };
  if (controlplaneUrl !== null) {
    return { kind: "controlplane", url: controlplaneUrl, staleMaxSeconds };
  }
  throw new ConfigError("missing", "FELIX_CONTROLPLANE_URL must be set for auth");
}

async function checkKeyFile(path: string): Promise<void> {
  const text = readText("FELIX_JWKS_FILE", path);
  let usable: number;
  try {
    usable = (await parseKeySet(text)).keys.length;
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new ConfigError("bad_file", `FELIX_JWKS_FILE: ${path}: ${reason}`, { cause: error });
  }
  if (usable === 0) {
    throw new ConfigError("bad_file", `FELIX_JWKS_FILE: ${path} holds no usable Ed25519 key`);
  }
}

function readText(variable: string, path: string): string {
  let text: string | null;
  try {
    text = readFileOrNull(path);
  } catch (error) {
    throw new ConfigError("bad_file", `${variable}: ${path} cannot be read`, { cause: error });
  }
  if (text === null) throw new ConfigError("bad_file", `${variable}: there is no file ${path}`);
  return text;
}
