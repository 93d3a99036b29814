// Reads when a token was issued and when it ends, without trusting it: the claims only decide when
// to fetch the next one.

/** Life of a token in milliseconds since the Unix epoch. */
export interface TokenLife {
  /** `iat`; absent when the token does not say. */
  readonly issuedMs: number | undefined;
  /** `exp`. */
  readonly expiresMs: number;
}

/** The life that a JWT claims; `null` when its `exp` cannot be read. */
export function tokenLife(token: string): TokenLife | null {
  const body = token.split(".")[1];
  if (body === undefined) return null;
  try {
    const bytes = Uint8Array.fromBase64(body, { alphabet: "base64url" });
    const claims: unknown = JSON.parse(new TextDecoder().decode(bytes));
    if (typeof claims !== "object" || claims === null) return null;
    const { exp, iat } = claims as { exp?: unknown; iat?: unknown };
    if (typeof exp !== "number" || !Number.isFinite(exp)) return null;
    const issued = typeof iat === "number" && Number.isFinite(iat) ? iat * 1000 : undefined;
    return { issuedMs: issued, expiresMs: exp * 1000 };
  } catch {
    return null;
  }
}

/** When to replace a token held since `heldSinceMs`: after two thirds of what was left of it. */
export function refreshAtMs(life: TokenLife, heldSinceMs: number): number {
  return heldSinceMs + Math.max(0, life.expiresMs - heldSinceMs) * (2 / 3);
}
