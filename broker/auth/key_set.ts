// Public keys that verify tokens, read from a JWKS document (spec/auth.md §3.1, §9.2).
// A key that is not Ed25519 or is malformed is skipped, never fatal to the others.

import { importJWK } from "jose";

/** One key. */
export interface VerificationKey {
  /** Key id; `null` where the document gives none. */
  readonly kid: string | null;
  readonly key: CryptoKey;
}

/** A tenant's keys; a set whose keys changed is another object. */
export interface KeySet {
  /** Keys in the document's order. */
  readonly keys: readonly VerificationKey[];
  /** Keys that were skipped. */
  readonly malformed: number;
  /** Equal for equal documents. */
  readonly fingerprint: string;
}

/** A document that is no JWKS. */
export class KeySetError extends Error {
  override readonly name = "KeySetError";
  /** Stable code of this class. */
  readonly code = "bad_key_set";
}

const MAX_KEYS = 64;

/** @throws {KeySetError} when `text` is not a JSON object with a `keys` array */
export async function parseKeySet(text: string): Promise<KeySet> {
  let document: unknown;
  try {
    document = JSON.parse(text);
  } catch (error) {
    throw new KeySetError("the key set is not JSON", { cause: error });
  }
  const entries = isRecord(document) ? document["keys"] : undefined;
  if (!Array.isArray(entries)) throw new KeySetError("the key set has no `keys` array");
  const keys: VerificationKey[] = [];
  let malformed = Math.max(0, entries.length - MAX_KEYS);
  for (const entry of entries.slice(0, MAX_KEYS)) {
    const key = await importKey(entry);
    if (key === null) malformed++;
    else keys.push(key);
  }
  return { keys, malformed, fingerprint: text };
}

async function importKey(entry: unknown): Promise<VerificationKey | null> {
  if (!isRecord(entry)) return null;
  const { kty, crv, alg, use, x, kid } = entry;
  if (kty !== "OKP" || crv !== "Ed25519" || typeof x !== "string") return null;
  if (alg !== undefined && alg !== "EdDSA") return null;
  if (use !== undefined && use !== "sig") return null;
  if (!/^[A-Za-z0-9_-]{43}$/.test(x)) return null;
  try {
    const key = await importJWK({ kty, crv, x, alg: "EdDSA" }, "EdDSA");
    if (!(key instanceof CryptoKey)) return null;
    return { kid: typeof kid === "string" ? kid : null, key };
  } catch {
    // Not a point of the curve.
    return null;
  }
}

/** Whether `value` is a JSON object. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
