// The certificate that a broker serves: the operator's files, or one generated for this start.
// A pair that does not belong together is refused before anything is bound.

import { createPrivateKey, X509Certificate } from "node:crypto";
import { createCertificateAuthority, issueCertificate } from "@felix/transport";
import { ConfigError } from "../config/config_error.ts";
import type { BrokerSettings } from "../config/settings.ts";
import { fileVersion, readFileOrNull, replaceFile } from "./files.ts";

/** What the listener needs, and where it came from. */
export interface TlsIdentity {
  /** Chain in PEM. */
  readonly cert: string;
  /** Key in PEM. */
  readonly key: string;
  /** Whether it was generated for this start. */
  readonly generated: boolean;
}

const PRIVATE_KEY = /-----BEGIN ([A-Z ]*PRIVATE KEY)-----[^-]*-----END \1-----/;

type TlsSettings = Pick<BrokerSettings, "tlsCert" | "tlsKey" | "tlsCertExport">;

/** The operator's pair; `null` when none is configured. @throws {ConfigError} `bad_file` */
export function readTlsFiles(settings: TlsSettings): TlsIdentity | null {
  if (settings.tlsCert === null || settings.tlsKey === null) return null;
  const cert = readPem("FELIX_TLS_CERT", settings.tlsCert);
  const key = readPem("FELIX_TLS_KEY", settings.tlsKey);
  if (!pairMatches(cert, key, settings.tlsCert, settings.tlsKey)) {
    throw new ConfigError(
      "bad_file",
      `FELIX_TLS_KEY: the key in ${settings.tlsKey} does not belong to ${settings.tlsCert}`,
    );
  }
  return { cert, key, generated: false };
}

/**
 * A certificate for `localhost`, signed by an authority of this start. With `tlsCertExport` the
 * authority's certificate goes there: it is what clients trust.
 * @throws {ConfigError} `bad_file` when it cannot be written
 */
export async function generateTlsIdentity(settings: TlsSettings): Promise<TlsIdentity> {
  const authority = await createCertificateAuthority("Felix generated CA");
  const leaf = await issueCertificate(authority, { names: ["localhost", "127.0.0.1", "::1"] });
  if (settings.tlsCertExport !== null) {
    try {
      replaceFile(settings.tlsCertExport, authority.cert, 0o644);
    } catch (error) {
      const path = settings.tlsCertExport;
      throw new ConfigError("bad_file", `FELIX_TLS_CERT_EXPORT: ${path} cannot be written`, {
        cause: error,
      });
    }
  }
  return { ...leaf, generated: true };
}

/** Something that changes when one of the pair's files does. */
export function tlsFilesVersion(settings: TlsSettings): string | null {
  if (settings.tlsCert === null || settings.tlsKey === null) return null;
  const cert = fileVersion(settings.tlsCert);
  const key = fileVersion(settings.tlsKey);
  return cert === null || key === null ? null : `${cert} ${key}`;
}

/** Text of a PEM file. @throws {ConfigError} `bad_file` */
export function readPem(variable: string, path: string): string {
  let text: string | null;
  try {
    text = readFileOrNull(path);
  } catch (error) {
    throw new ConfigError("bad_file", `${variable}: ${path} cannot be read`, { cause: error });
  }
  if (text === null) throw new ConfigError("bad_file", `${variable}: there is no file ${path}`);
  if (!text.includes("-----BEGIN ")) {
    throw new ConfigError("bad_file", `${variable}: ${path} holds no PEM`);
  }
  return text;
}

function pairMatches(cert: string, key: string, certPath: string, keyPath: string): boolean {
  const certificate = parsed("FELIX_TLS_CERT", certPath, () => new X509Certificate(cert));
  // The parser takes nothing around the block, a blank line included.
  const block = PRIVATE_KEY.exec(key)?.[0] ?? key;
  const privateKey = parsed("FELIX_TLS_KEY", keyPath, () => createPrivateKey(block));
  return certificate.checkPrivateKey(privateKey);
}

function parsed<T>(variable: string, path: string, parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    throw new ConfigError("bad_file", `${variable}: ${path} cannot be parsed`, { cause: error });
  }
}
