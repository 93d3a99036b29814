// For tests of authentication: keys, tokens of every shape, a clock that tests set, a key server
// that tests script. Nothing here waits for real time.

import { CompactSign, SignJWT } from "jose";
import type { JWTPayload } from "jose";
import { AuthMetrics } from "../../metrics/counters.ts";
import { silentLog } from "../../log/create_log.ts";
import { createTokenVerifier } from "../token_verifier.ts";
import type { TokenVerifierOptions } from "../token_verifier.ts";
import type { TokenVerifier } from "../grants.ts";

/** Seconds at which the test clock starts. */
export const NOW = 1_700_000_000;

/** A signing key and its public half. */
export interface LabKey {
  readonly kid: string;
  readonly privateKey: CryptoKey;
  readonly jwk: Record<string, unknown>;
}

/** A new Ed25519 key. */
export async function labKey(kid: string): Promise<LabKey> {
  const pair = await crypto.subtle.generateKey("Ed25519", true, ["sign", "verify"]);
  const keys = pair as CryptoKeyPair;
  const { x } = await crypto.subtle.exportKey("jwk", keys.publicKey);
  const jwk = { kty: "OKP", crv: "Ed25519", alg: "EdDSA", use: "sig", kid, x };
  return { kid, privateKey: keys.privateKey, jwk };
}

/** Claims of a token that is good; `undefined` takes one away. */
export function labClaims(changes: Record<string, unknown> = {}): JWTPayload {
  const claims: Record<string, unknown> = {
    iss: "felix-auth",
    aud: "felix-broker",
    sub: "p:dev",
    tid: "t1",
    iat: NOW,
    exp: NOW + 900,
    perms: ["stream.publish:stream:t1/*"],
    ...changes,
  };
  for (const [name, value] of Object.entries(claims)) if (value === undefined) delete claims[name];
  return claims;
}

/** A signed token. */
export function labToken(
  key: LabKey,
  changes: Record<string, unknown> = {},
  header: Record<string, unknown> = {},
): Promise<string> {
  return new SignJWT(labClaims(changes))
    .setProtectedHeader({ typ: "JWT", alg: "EdDSA", kid: key.kid, ...header })
    .sign(key.privateKey);
}

/** A signed text that may be no JSON at all. */
export function labSigned(key: LabKey, payload: string): Promise<string> {
  return new CompactSign(new TextEncoder().encode(payload))
    .setProtectedHeader({ alg: "EdDSA", kid: key.kid })
    .sign(key.privateKey);
}

/** A key set document. */
export function labKeySet(...keys: readonly (LabKey | Record<string, unknown>)[]): string {
  return JSON.stringify({ keys: keys.map((key) => "jwk" in key ? key.jwk : key) });
}

/** A clock that only tests move. */
export class LabClock {
  seconds = NOW;
  wallMs(): number {
    return this.seconds * 1000;
  }
  monotonicMs(): number {
    return this.seconds * 1000;
  }
}

/** A scripted key server. */
export class LabKeyServer {
  /** URLs asked for, in order. */
  readonly asked: string[] = [];
  /** What the next requests answer. */
  answer: (url: string) => Response | Promise<Response> = () => new Response("", { status: 404 });
  /** Requests that have not been answered. */
  open = 0;
  /** Most requests open at once. */
  mostOpen = 0;

  /** In place of the runtime's `fetch`. */
  readonly fetch = async (input: RequestInfo | URL): Promise<Response> => {
    const url = String(input);
    this.asked.push(url);
    this.open++;
    this.mostOpen = Math.max(this.mostOpen, this.open);
    try {
      return await this.answer(url);
    } finally {
      this.open--;
    }
  };

  /** Answers every request with `text`. */
  serve(text: string): void {
    this.answer = () => new Response(text);
  }

  /** Fails every request. */
  goDown(): void {
    this.answer = () => Promise.reject(new TypeError("connection refused"));
  }
}

/** A verifier with everything around it in the test's hands. */
export interface Lab {
  readonly clock: LabClock;
  readonly server: LabKeyServer;
  readonly metrics: AuthMetrics;
  readonly verifier: TokenVerifier;
  /** The key file: `null` = there is none. */
  readonly file: { text: string | null; version: string };
}

/** A lab; `options` replaces parts. */
export function createLab(options: Partial<TokenVerifierOptions> = {}): Lab {
  const clock = new LabClock();
  const server = new LabKeyServer();
  const metrics = new AuthMetrics();
  const file: { text: string | null; version: string } = { text: null, version: "1" };
  const verifier = createTokenVerifier({
    source: { kind: "controlplane", url: "http://cp/", staleMaxSeconds: 86_400 },
    clock,
    file: {
      version: () => file.text === null ? null : file.version,
      read: () => {
        if (file.text === null) throw new Deno.errors.NotFound("no key file");
        return file.text;
      },
    },
    fetch: server.fetch as typeof fetch,
    log: silentLog,
    metrics,
    timeout: () => new AbortController().signal,
    ...options,
  });
  return { clock, server, metrics, verifier, file };
}
