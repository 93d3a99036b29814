// One Felix token: its form, its signature and its claims (spec/auth.md §2). Checks run in an order
// that spends nothing on a token that cannot be valid: size, form and algorithm come before keys.
// No message holds a part of the token.

import { compactVerify } from "jose";
import { AuthRefused } from "./grants.ts";
import { isRecord } from "./key_set.ts";
import type { KeySet, VerificationKey } from "./key_set.ts";

/** Largest token in characters. */
export const MAX_TOKEN_LENGTH = 65_536;
/** Clock difference that is forgiven, in seconds. */
export const LEEWAY_SECONDS = 60;

const ISSUER = "felix-auth";
const AUDIENCE = "felix-broker";

/** What the header says. */
export interface TokenHeader {
  /** Key id; `null`: none. */
  readonly kid: string | null;
}

/** Claims of a token that holds. */
export interface TokenClaims {
  readonly tenant: string;
  readonly subject: string;
  readonly expiresAtSeconds: number;
  readonly permissions: readonly string[];
}

/** @throws {AuthRefused} `token_too_large`, `malformed_token`, `bad_algorithm` */
export function readHeader(token: string): TokenHeader {
  if (token.length > MAX_TOKEN_LENGTH) {
    throw new AuthRefused("token_too_large", "the token is larger than 64 KiB");
  }
  const segments = token.split(".");
  if (segments.length !== 3) throw malformed("it does not have three parts");
  const header = parseJson(decodeSegment(segments[0]!));
  // The signature of a token without algorithm is empty: say what is wrong with it, not that.
  const { alg, kid } = header;
  if (alg !== "EdDSA") throw new AuthRefused("bad_algorithm", "the algorithm is not EdDSA");
  decodeSegment(segments[1]!);
  if (decodeSegment(segments[2]!).length !== 64) throw malformed("its signature is not 64 bytes");
  if (kid !== undefined && typeof kid !== "string") throw malformed("its key id is not text");
  return { kid: kid ?? null };
}

/**
 * The payload of `token`, verified with the key that the header names first and then with every
 * other one; `null` when none of them signed it. `checked` counts signatures.
 */
export async function verifySignature(
  token: string,
  header: TokenHeader,
  keySet: KeySet,
  checked: () => void,
): Promise<Record<string, unknown> | null> {
  for (const { key } of inOrder(keySet.keys, header.kid)) {
    checked();
    try {
      const { payload } = await compactVerify(token, key, { algorithms: ["EdDSA"] });
      return parseJson(payload);
    } catch (error) {
      if (error instanceof AuthRefused) throw error;
      // Anything else: not signed with this key.
    }
  }
  return null;
}

/** @throws {AuthRefused} the claim that does not hold */
export function checkClaims(
  payload: Record<string, unknown>,
  tenant: string,
  nowSeconds: number,
): TokenClaims {
  const { iss, aud, exp, nbf, iat, sub, tid, perms } = payload;
  if (iss !== ISSUER) throw new AuthRefused("wrong_issuer", "the issuer is not felix-auth");
  if (aud !== AUDIENCE) throw new AuthRefused("wrong_audience", "the audience is not this broker");
  if (!isSeconds(exp)) throw claims("exp");
  if (nowSeconds > exp + LEEWAY_SECONDS) throw new AuthRefused("expired", "the token has expired");
  if (!isSeconds(iat)) throw claims("iat");
  if (nbf !== undefined) {
    if (!isSeconds(nbf)) throw claims("nbf");
    if (nbf > nowSeconds + LEEWAY_SECONDS) {
      throw new AuthRefused("not_yet_valid", "the token is not valid yet");
    }
  }
  if (typeof sub !== "string" || sub === "") throw claims("sub");
  if (typeof tid !== "string") throw claims("tid");
  if (!isStrings(perms)) throw claims("perms");
  if (tid !== tenant) throw new AuthRefused("tenant_mismatch", "the token is another tenant's");
  return { tenant, subject: sub, expiresAtSeconds: exp, permissions: perms };
}

/** @throws {AuthRefused} `bad_tenant_id` (spec/auth.md §9.2) */
export function checkTenantId(tenant: string): void {
  // deno-lint-ignore no-control-regex -- control characters are what it looks for
  const control = /[\u0000-\u001f\u007f-\u009f]/;
  const bytes = tenant.length > 256 ? 257 : new TextEncoder().encode(tenant).length;
  const named = tenant !== "." && tenant !== "..";
  if (bytes < 1 || bytes > 256 || !named || control.test(tenant) || !tenant.isWellFormed()) {
    throw new AuthRefused("bad_tenant_id", "the tenant id is not valid");
  }
}

function* inOrder(
  keys: readonly VerificationKey[],
  kid: string | null,
): IterableIterator<VerificationKey> {
  for (const key of keys) if (kid !== null && key.kid === kid) yield key;
  for (const key of keys) if (kid === null || key.kid !== kid) yield key;
}

/** Strict base64url without padding: a token has one spelling. */
function decodeSegment(segment: string): Uint8Array {
  let bytes: Uint8Array;
  try {
    bytes = Uint8Array.fromBase64(segment, {
      alphabet: "base64url",
      lastChunkHandling: "loose",
    });
  } catch {
    throw malformed("a part of it is not base64url");
  }
  if (bytes.toBase64({ alphabet: "base64url", omitPadding: true }) !== segment) {
    throw malformed("a part of it is not canonical base64url");
  }
  return bytes;
}

function parseJson(bytes: Uint8Array): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    throw malformed("a part of it is not JSON");
  }
  if (!isRecord(value)) throw malformed("a part of it is not a JSON object");
  return value;
}

function isSeconds(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function isStrings(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((entry) => typeof entry === "string");
}

function malformed(what: string): AuthRefused {
  return new AuthRefused("malformed_token", `the token cannot be read: ${what}`);
}

function claims(name: string): AuthRefused {
  return new AuthRefused("bad_claims", `the claim ${name} is missing or of the wrong type`);
}
