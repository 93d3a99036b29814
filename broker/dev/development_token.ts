// Signing keys and tokens for development: an Ed25519 key kept in the state directory (mode 0600)
// and the JWKS file with its public half, which is all that the broker ever reads.
// Tokens follow spec/auth.md §2; whoever can read the key can be anybody, so it is for one machine.

import { SignJWT } from "jose";
import { join } from "node:path";

/** Names of the files in a state directory. */
const KEY_FILE = "signing_key.json";
const JWKS_FILE = "jwks.json";

/** A development signing key. */
export interface DevelopmentKey {
  /** Key id. */
  readonly kid: string;
  /** Private half. Secret. */
  readonly privateKey: CryptoKey;
  /** Path of the JWKS file with the public half. */
  readonly jwksFile: string;
}

/** What a token is to say. */
export interface DevelopmentTokenRequest {
  readonly tenant: string;
  /** Principal, as `p:dev`. */
  readonly principal: string;
  /** `action:object` pairs. */
  readonly permissions: readonly string[];
  /** Seconds until it expires. */
  readonly ttlSeconds: number;
  /** Seconds since the epoch; default: now. */
  readonly nowSeconds?: number;
  /** Default `felix-broker`. */
  readonly audience?: string;
}

/** The key of a state directory; made, with its JWKS file, when it is not there. */
export async function ensureDevelopmentKey(directory: string): Promise<DevelopmentKey> {
  const keyFile = join(directory, KEY_FILE);
  const jwksFile = join(directory, JWKS_FILE);
  const jwk = await readKey(keyFile) ?? await makeKey(keyFile);
  const { kid, x } = jwk;
  const published = { kty: "OKP", kid, alg: "EdDSA", use: "sig", crv: "Ed25519", x };
  await writeWhole(jwksFile, `${JSON.stringify({ keys: [published] }, null, 2)}\n`, 0o644);
  const privateKey = await crypto.subtle.importKey("jwk", toPrivate(jwk), "Ed25519", false, [
    "sign",
  ]);
  return { kid, privateKey, jwksFile };
}

/** Signs a token. */
export function signDevelopmentToken(
  key: Pick<DevelopmentKey, "kid" | "privateKey">,
  request: DevelopmentTokenRequest,
): Promise<string> {
  const now = request.nowSeconds ?? Math.floor(Date.now() / 1000);
  return new SignJWT({ tid: request.tenant, perms: [...request.permissions] })
    .setProtectedHeader({ typ: "JWT", alg: "EdDSA", kid: key.kid })
    .setIssuer("felix-auth")
    .setAudience(request.audience ?? "felix-broker")
    .setSubject(request.principal)
    .setIssuedAt(now)
    .setExpirationTime(now + request.ttlSeconds)
    .sign(key.privateKey);
}

/** A token from the key of a state directory; the key is made when it is not there. */
export async function mintDevelopmentToken(
  directory: string,
  request: DevelopmentTokenRequest,
): Promise<string> {
  return await signDevelopmentToken(await ensureDevelopmentKey(directory), request);
}

/** Puts `text` at `path` with `mode` in one step. */
export async function writeWhole(path: string, text: string, mode: number): Promise<void> {
  const temporary = `${path}.${crypto.randomUUID()}.tmp`;
  await Deno.writeTextFile(temporary, text, { mode, createNew: true });
  await Deno.rename(temporary, path);
}

interface StoredKey {
  readonly kid: string;
  readonly x: string;
  readonly d: string;
}

async function readKey(path: string): Promise<StoredKey | null> {
  let text: string;
  try {
    text = await Deno.readTextFile(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return null;
    throw error;
  }
  try {
    const { kid, x, d } = JSON.parse(text);
    const stored = { kid: String(kid), x: String(x), d: String(d) };
    await crypto.subtle.importKey("jwk", toPrivate(stored), "Ed25519", false, ["sign"]);
    return stored;
  } catch {
    // Broken: a new one replaces it, and old tokens with it.
    return null;
  }
}

async function makeKey(path: string): Promise<StoredKey> {
  const pair = await crypto.subtle.generateKey("Ed25519", true, ["sign", "verify"]);
  const { x, d } = await crypto.subtle.exportKey("jwk", (pair as CryptoKeyPair).privateKey);
  const kid = crypto.getRandomValues(new Uint8Array(16)).toHex();
  const stored = { kid, x: x!, d: d! };
  await writeWhole(path, `${JSON.stringify(stored)}\n`, 0o600);
  return stored;
}

function toPrivate({ x, d }: StoredKey): JsonWebKey {
  return { kty: "OKP", crv: "Ed25519", x, d, ext: false, key_ops: ["sign"] };
}
