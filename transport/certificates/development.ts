// Certificates for development, kept in a directory: an authority that stays, and a leaf that is
// issued again when it is about to expire or is asked to name other hosts. Rules: private keys are
// mode 0600 in a directory of mode 0700; every file appears whole or not at all; several processes
// may ask at once (a lock file orders them).

import { join } from "node:path";
import { isIpLiteral } from "../address.ts";
import {
  createCertificateAuthority,
  issueCertificate,
  type KeyedCertificate,
  keyMatches,
  loadX509,
} from "./issue.ts";
import { readIfThere, withLock, writeWhole } from "./files.ts";

/** Development certificates: where they lie and what they are. */
export interface DevelopmentCertificates {
  /** Path of the authority's certificate: what a client trusts. */
  readonly caFile: string;
  /** Path of the server's certificate. */
  readonly certFile: string;
  /** Path of the server's private key. */
  readonly keyFile: string;
  /** The authority's certificate in PEM. */
  readonly ca: string;
  /** The server's certificate in PEM. */
  readonly cert: string;
  /** The server's private key in PEM (PKCS #8). Secret. */
  readonly key: string;
}

/** A certificate that has less than this left is issued again. */
const RENEW_BEFORE_MS = 7 * 24 * 60 * 60 * 1000;
/** What every development certificate is valid for. */
const ALWAYS_NAMES = ["localhost", "127.0.0.1", "::1"] as const;

/**
 * Makes sure that `directory` holds a development authority and a server certificate for
 * `localhost`, `127.0.0.1`, `::1` and `names`, and returns them. What is there and still good is
 * kept; the certificate is issued anew within 7 days of its end or when the names differ, the
 * authority only when it is missing, broken or near its own end (ten years).
 *
 * Not for production: whoever can read the directory can impersonate the server.
 *
 * @param directory is made (mode 0700) if it is not there
 * @param names further DNS names and IP literals
 * @throws {Deno.errors.PermissionDenied} and other file errors as they are
 */
export function ensureDevelopmentCertificates(
  directory: string,
  names: readonly string[] = [],
): Promise<DevelopmentCertificates> {
  return withLock(directory, async () => {
    const caFile = join(directory, "ca.pem");
    const certFile = join(directory, "server.pem");
    const keyFile = join(directory, "server_key.pem");
    const authority = await ensureAuthority(caFile, join(directory, "ca_key.pem"));
    const wanted = [...new Set([...ALWAYS_NAMES, ...names].map(canonicalName))];
    let server = await readPair(certFile, keyFile);
    if (server === null || !await isGood(server, authority.cert, wanted)) {
      server = await issueCertificate(authority, { names: wanted });
      await writePair(certFile, keyFile, server);
    }
    return { caFile, certFile, keyFile, ca: authority.cert, cert: server.cert, key: server.key };
  });
}

async function ensureAuthority(certFile: string, keyFile: string): Promise<KeyedCertificate> {
  const existing = await readPair(certFile, keyFile);
  if (existing !== null && await isGood(existing, existing.cert, null)) return existing;
  const authority = await createCertificateAuthority("Felix development CA");
  await writePair(certFile, keyFile, authority);
  return authority;
}

/** Whether `pair` belongs together, is signed by `issuer`, lasts, and names exactly `names`. */
async function isGood(
  pair: KeyedCertificate,
  issuer: string,
  names: readonly string[] | null,
): Promise<boolean> {
  if (!await keyMatches(pair)) return false;
  const x509 = await loadX509();
  const certificate = new x509.X509Certificate(pair.cert);
  if (certificate.notAfter.getTime() - Date.now() < RENEW_BEFORE_MS) return false;
  const publicKey = new x509.X509Certificate(issuer).publicKey;
  if (!await certificate.verify({ publicKey, signatureOnly: true }, crypto)) return false;
  if (names === null) return true;
  const extension = certificate.getExtension(x509.SubjectAlternativeNameExtension);
  const present = new Set(extension?.names.items.map((name) => canonicalName(name.value)));
  return present.size === names.length && names.every((name) => present.has(name));
}

/** One spelling per name: DNS names in lower case, IPv6 literals compressed. */
function canonicalName(name: string): string {
  if (!isIpLiteral(name)) return name.toLowerCase();
  return name.includes(":") ? new URL(`http://[${name}]`).hostname.slice(1, -1) : name;
}

async function readPair(certFile: string, keyFile: string): Promise<KeyedCertificate | null> {
  const [cert, key] = await Promise.all([readIfThere(certFile), readIfThere(keyFile)]);
  return cert === null || key === null ? null : { cert, key };
}

/** Key first: a certificate without its key would be found broken and issued again. */
async function writePair(certFile: string, keyFile: string, pair: KeyedCertificate): Promise<void> {
  await writeWhole(keyFile, pair.key, 0o600);
  await writeWhole(certFile, pair.cert, 0o644);
}
