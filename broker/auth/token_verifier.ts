// Turns a tenant and a token into grants (spec/auth.md §2, §9.2). It ties the parts together:
// tenant id, verdicts, keys, signature, claims. It rejects with `AuthRefused` and nothing else.

import type { BrokerLog } from "../log/broker_log.ts";
import type { AuthMetrics } from "../metrics/counters.ts";
import { AuthRefused } from "./grants.ts";
import type { Grants, TokenVerifier } from "./grants.ts";
import type { KeySet } from "./key_set.ts";
import { FileKeySource } from "./key_source.ts";
import type { AuthClock, KeyFile, KeySource } from "./key_source.ts";
import { grantsFrom } from "./permissions.ts";
import { checkClaims, checkTenantId, readHeader, verifySignature } from "./token.ts";
import type { TokenHeader } from "./token.ts";
import { UrlKeySource } from "./url_key_source.ts";
import { Verdicts } from "./verdicts.ts";

/** Where keys come from. */
export type KeySourceConfig =
  | { readonly kind: "file"; readonly path: string }
  /** `{tenant}` in `url` is replaced by the percent-encoded tenant id. */
  | { readonly kind: "url"; readonly url: string; readonly staleMaxSeconds: number }
  /** Base URL of a control plane. */
  | { readonly kind: "controlplane"; readonly url: string; readonly staleMaxSeconds: number };

/** Needs of a token verifier. */
export interface TokenVerifierOptions {
  readonly source: KeySourceConfig;
  readonly clock: AuthClock;
  readonly file: KeyFile;
  readonly fetch: typeof fetch;
  readonly log: BrokerLog;
  readonly metrics: AuthMetrics;
  /** Whether a tenant exists, where that is known: keys of no other tenant are fetched. */
  readonly tenantExists?: (tenant: string) => boolean;
  /** A signal that aborts a fetch; default `AbortSignal.timeout`. */
  readonly timeout?: (ms: number) => AbortSignal;
}

const MAX_VERDICTS = 4096;
const MAX_VERDICT_CHARACTERS = 16 * 1024 * 1024;

/** A verifier with keys from `options.source`. Holds no timer and nothing to close. */
export function createTokenVerifier(options: TokenVerifierOptions): TokenVerifier {
  return new FelixTokenVerifier(options, keySource(options));
}

/** The JWKS address of a tenant at a control plane (spec/auth.md §3.1). */
export function controlPlaneKeysUrl(base: string, tenant: string): string {
  const root = base.replace(/\/+$/, "");
  return `${root}/v1/tenants/${encodeURIComponent(tenant)}/.well-known/jwks.json`;
}

function keySource(options: TokenVerifierOptions): KeySource {
  const { source, clock, file, fetch, log, metrics, timeout } = options;
  if (source.kind === "file") {
    return new FileKeySource({ path: source.path, file, clock, log, metrics });
  }
  const { url, staleMaxSeconds } = source;
  const urlOf = source.kind === "controlplane"
    ? (tenant: string) => controlPlaneKeysUrl(url, tenant)
    : (tenant: string) => url.replaceAll("{tenant}", () => encodeURIComponent(tenant));
  const shared = { urlOf, staleMaxSeconds, fetch, clock, log, metrics };
  return new UrlKeySource(timeout === undefined ? shared : { ...shared, timeout });
}

class FelixTokenVerifier implements TokenVerifier {
  readonly #options: TokenVerifierOptions;
  readonly #source: KeySource;
  readonly #verdicts = new Verdicts(MAX_VERDICTS, MAX_VERDICT_CHARACTERS);
  readonly #verifying = new Map<string, Promise<Grants>>();

  constructor(options: TokenVerifierOptions, source: KeySource) {
    this.#options = options;
    this.#source = source;
  }

  async verify(tenant: string, token: string): Promise<Grants> {
    const { metrics, tenantExists } = this.#options;
    checkTenantId(tenant);
    if (tenantExists !== undefined && !tenantExists(tenant)) {
      throw new AuthRefused("unknown_tenant", "no such tenant");
    }
    const keys = this.#source.current(tenant);
    const known = keys === null
      ? null
      : this.#verdicts.find(tenant, token, keys, this.#nowSeconds());
    if (known !== null) {
      metrics.verdictsRemembered++;
      return known;
    }
    const header = readHeader(token);
    // Streams that bring the same token at once share one verification.
    const key = `${tenant}\n${token}`;
    const running = this.#verifying.get(key);
    if (running !== undefined) return await running;
    const verifying = this.#verify(tenant, token, header, keys)
      .finally(() => this.#verifying.delete(key));
    this.#verifying.set(key, verifying);
    return await verifying;
  }

  async #verify(
    tenant: string,
    token: string,
    header: TokenHeader,
    keys: KeySet | null,
  ): Promise<Grants> {
    try {
      return await this.#verifyWith(tenant, token, header, keys ?? await this.#source.load(tenant));
    } catch (error) {
      if (error instanceof AuthRefused) throw error;
      this.#options.log.error("token verification failed", { tenant, error: String(error) });
      throw new AuthRefused("keys_unavailable", "the token could not be verified", {
        cause: error,
      });
    }
  }

  async #verifyWith(
    tenant: string,
    token: string,
    header: TokenHeader,
    keys: KeySet,
  ): Promise<Grants> {
    const { metrics } = this.#options;
    const checked = (): void => void metrics.signaturesChecked++;
    let used = keys;
    let payload = await verifySignature(token, header, used, checked);
    if (payload === null && namesUnknownKey(header, used)) {
      used = await this.#source.refresh(tenant, used);
      if (used !== keys) payload = await verifySignature(token, header, used, checked);
    }
    if (payload === null) {
      throw new AuthRefused("bad_signature", "no key of the tenant signed the token");
    }
    const { grants, unknown } = grantsFrom(checkClaims(payload, tenant, this.#nowSeconds()));
    metrics.unknownPermissions += unknown;
    this.#verdicts.add(tenant, token, used, grants);
    return grants;
  }

  #nowSeconds(): number {
    return this.#options.clock.wallMs() / 1000;
  }
}

function namesUnknownKey(header: TokenHeader, keys: KeySet): boolean {
  return header.kid !== null && !keys.keys.some((key) => key.kid === header.kid);
}
