// Makes X.509 certificates: a certificate authority, and leaves that it signs. ECDSA P-256, keys in
// PKCS #8. Rule: a leaf always says CA:FALSE, because the published client's verifier refuses one
// that does not (`spec/wire.md §1.1`). The X.509 library is loaded on first use only: a process
// that brings its own certificates never pays for it.

import { isIpLiteral } from "../address.ts";
import type { SubjectAlternativeNameExtension, X509Certificate } from "@peculiar/x509";

/** A certificate with its private key. */
export interface KeyedCertificate {
  /** Certificate in PEM. */
  readonly cert: string;
  /** Private key in PEM (PKCS #8). Secret. */
  readonly key: string;
}

/** What a leaf certificate should say. */
export interface CertificateRequest {
  /** DNS names and IP literals it is valid for; the first is the common name too. At least one. */
  readonly names: readonly string[];
  /** Start of validity; default one hour ago, so that a clock running late does not refuse it. */
  readonly validFrom?: Date;
  /** End of validity; default 90 days from now. */
  readonly validUntil?: Date;
}

const DAY_MS = 24 * 60 * 60 * 1000;
const CLOCK_LATE_MS = 60 * 60 * 1000;
const LEAF_DAYS = 90;
const AUTHORITY_DAYS = 3650;
const KEY_ALGORITHM = { name: "ECDSA", namedCurve: "P-256" } as const;
const SIGNING_ALGORITHM = { name: "ECDSA", hash: "SHA-256" } as const;

type X509 = typeof import("@peculiar/x509");

/** The X.509 library; what it injects with needs the metadata shim to be there first. */
export async function loadX509(): Promise<X509> {
  await import("reflect-metadata");
  return await import("@peculiar/x509");
}

/**
 * Makes a self-signed certificate authority, valid for ten years. It can sign leaves only
 * (path length 0).
 */
export async function createCertificateAuthority(commonName: string): Promise<KeyedCertificate> {
  const x509 = await loadX509();
  const keys = await generateKeys();
  const now = Date.now();
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: serialNumber(),
    name: new x509.Name([{ CN: [commonName] }]).toJSON(),
    notBefore: new Date(now - CLOCK_LATE_MS),
    notAfter: new Date(now + AUTHORITY_DAYS * DAY_MS),
    keys,
    signingAlgorithm: SIGNING_ALGORITHM,
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(
        x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign,
        true,
      ),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey, false, crypto),
    ],
  }, crypto);
  return { cert: toPem(certificate), key: await exportKey(keys.privateKey) };
}

/**
 * Makes a certificate signed by `authority`, good for a server and for a client.
 *
 * @throws {TypeError} `names` is empty
 */
export async function issueCertificate(
  authority: KeyedCertificate,
  request: CertificateRequest,
): Promise<KeyedCertificate> {
  const commonName = request.names[0];
  if (commonName === undefined) throw new TypeError("a certificate needs at least one name");
  const x509 = await loadX509();
  const issuer = new x509.X509Certificate(authority.cert);
  const keys = await generateKeys();
  const now = Date.now();
  const certificate = await x509.X509CertificateGenerator.create({
    serialNumber: serialNumber(),
    subject: new x509.Name([{ CN: [commonName] }]).toJSON(),
    issuer: issuer.subjectName.toJSON(),
    notBefore: request.validFrom ?? new Date(now - CLOCK_LATE_MS),
    notAfter: request.validUntil ?? new Date(now + LEAF_DAYS * DAY_MS),
    publicKey: keys.publicKey,
    signingKey: await importKey(authority.key),
    signingAlgorithm: SIGNING_ALGORITHM,
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension([
        x509.ExtendedKeyUsage.serverAuth,
        x509.ExtendedKeyUsage.clientAuth,
      ]),
      alternativeNames(x509, request.names),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey, false, crypto),
      await x509.AuthorityKeyIdentifierExtension.create(issuer, false, crypto),
    ],
  }, crypto);
  return { cert: toPem(certificate), key: await exportKey(keys.privateKey) };
}

/** Whether `pair` is a readable certificate together with the key that belongs to it. */
export async function keyMatches(pair: KeyedCertificate): Promise<boolean> {
  const x509 = await loadX509();
  try {
    const certificate = new x509.X509Certificate(pair.cert);
    const data = new TextEncoder().encode("do these belong together?");
    const signature = await crypto.subtle.sign(
      SIGNING_ALGORITHM,
      await importKey(pair.key),
      data,
    );
    const publicKey = await certificate.publicKey.export(KEY_ALGORITHM, ["verify"], crypto);
    return await crypto.subtle.verify(SIGNING_ALGORITHM, publicKey, signature, data);
  } catch {
    return false; // unreadable, or of another kind: not ours
  }
}

function alternativeNames(x509: X509, names: readonly string[]): SubjectAlternativeNameExtension {
  return new x509.SubjectAlternativeNameExtension(
    names.map((name) => ({
      type: isIpLiteral(name) ? "ip" as const : "dns" as const,
      value: name,
    })),
  );
}

function generateKeys(): Promise<CryptoKeyPair> {
  return crypto.subtle.generateKey(KEY_ALGORITHM, true, ["sign", "verify"]);
}

async function exportKey(key: CryptoKey): Promise<string> {
  const bytes = new Uint8Array(await crypto.subtle.exportKey("pkcs8", key));
  return pem("PRIVATE KEY", bytes);
}

function importKey(text: string): Promise<CryptoKey> {
  const base64 = text.replace(/-----[^-]+-----/g, "").replace(/\s+/g, "");
  return crypto.subtle.importKey(
    "pkcs8",
    Uint8Array.fromBase64(base64),
    KEY_ALGORITHM,
    false,
    ["sign"],
  );
}

function toPem(certificate: X509Certificate): string {
  return pem("CERTIFICATE", new Uint8Array(certificate.rawData));
}

function pem(label: string, bytes: Uint8Array): string {
  const lines = bytes.toBase64().match(/.{1,64}/g) ?? [];
  return `-----BEGIN ${label}-----\n${lines.join("\n")}\n-----END ${label}-----\n`;
}

/** 16 random bytes in hexadecimal, positive and without a leading zero byte. */
function serialNumber(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[0] = (bytes[0]! & 0x3f) | 0x40;
  return bytes.toHex();
}
