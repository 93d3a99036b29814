// What a verified token allows, as an interface: the only thing that the server knows of tokens.
// One rule: a refusal carries a reason out of a fixed list and never a part of the token.

/** Why a token was refused. A log field and a metric label; clients see `auth failed` only. */
export type AuthRefusal =
  | "bad_algorithm"
  | "bad_claims"
  | "bad_signature"
  | "bad_tenant_id"
  | "expired"
  | "keys_unavailable"
  | "malformed_token"
  | "no_usable_keys"
  | "not_yet_valid"
  | "tenant_mismatch"
  | "token_too_large"
  | "unknown_tenant"
  | "wrong_audience"
  | "wrong_issuer";

/** Every reason of `AuthRefused`, sorted. */
export const AUTH_REFUSALS: readonly AuthRefusal[] = [
  "bad_algorithm",
  "bad_claims",
  "bad_signature",
  "bad_tenant_id",
  "expired",
  "keys_unavailable",
  "malformed_token",
  "no_usable_keys",
  "not_yet_valid",
  "tenant_mismatch",
  "token_too_large",
  "unknown_tenant",
  "wrong_audience",
  "wrong_issuer",
];

/** A token that does not let its bearer in. */
export class AuthRefused extends Error {
  override readonly name = "AuthRefused";
  /** Stable code of this class. */
  readonly code = "auth_refused";

  /** `reason` says why; `message` never quotes the token. */
  constructor(readonly reason: AuthRefusal, message: string, options?: ErrorOptions) {
    super(message, options);
  }
}

/** What one verified token allows. Immutable; outlives the token's expiry (spec/auth.md §9.2). */
export interface Grants {
  /** Tenant that the token belongs to. */
  readonly tenant: string;
  /** Principal id (`sub`). */
  readonly subject: string;
  /** `exp` of the token, in seconds since the epoch. */
  readonly expiresAtSeconds: number;
  /**
   * Whether `action` over `object` is allowed, as
   * `allows("stream.publish", "stream:t1/ns/events")`.
   * Answers are remembered per object in a small bounded table.
   */
  allows(action: string, object: string): boolean;
}

/** Turns a tenant and a token into grants. */
export interface TokenVerifier {
  /**
   * @throws {AuthRefused} always this class; the promise rejects with nothing else
   */
  verify(tenant: string, token: string): Promise<Grants>;
}
