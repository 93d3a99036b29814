// Combinations of settings that are refused, and those that only deserve a warning
// (spec/operations.md §8). Equality is allowed everywhere. The first one found is reported.

import { ConfigError } from "./config_error.ts";
import type { ResolvedSettings } from "./resolve.ts";
import { formatAddress } from "./setting.ts";

/** @throws {ConfigError} `conflict`, `missing` */
export function checkCombinations(settings: ResolvedSettings): void {
  checkKeySource(settings);
  checkTls(settings);
  checkSizes(settings);
  checkPorts(settings);
  atMost(
    settings,
    "FELIX_INTERNAL_MAX_INBOUND_PER_SOURCE",
    "FELIX_INTERNAL_MAX_INBOUND_CONNECTIONS",
    "one peer may not have more connections than all peers together",
  );
  allOrNone(settings, [
    "FELIX_INTERNAL_TLS_CERT",
    "FELIX_INTERNAL_TLS_KEY",
    "FELIX_INTERNAL_TLS_CA",
  ]);
  if (settings.number("FELIX_GROUP_MAX_VISIBILITY_MS") < settings.number(VISIBILITY)) {
    throw conflict(`FELIX_GROUP_MAX_VISIBILITY_MS is below ${VISIBILITY}`);
  }
}

/** Combinations that work and are probably a mistake: one line each. */
export function combinationWarnings(settings: ResolvedSettings): string[] {
  const warnings: string[] = [];
  const keepAlive = settings.number("FELIX_KEEPALIVE_MS");
  const idle = settings.number("FELIX_MAX_IDLE_TIMEOUT_MS");
  if (keepAlive * 2 >= idle) {
    warnings.push(
      `FELIX_KEEPALIVE_MS ${keepAlive} is not under half of FELIX_MAX_IDLE_TIMEOUT_MS ${idle}: ` +
        "one lost packet can end a connection",
    );
  }
  if (settings.textOrNull("FELIX_CATALOG_FILE") === null) {
    warnings.push(
      "FELIX_CATALOG_FILE is not set: no stream and no cache exists, every request is not_found",
    );
  }
  return warnings;
}

const VISIBILITY = "FELIX_GROUP_VISIBILITY_TIMEOUT_MS";

function checkKeySource(settings: ResolvedSettings): void {
  const url = settings.textOrNull("FELIX_CONTROLPLANE_URL");
  const file = settings.textOrNull("FELIX_JWKS_FILE");
  const jwksUrl = settings.textOrNull("FELIX_JWKS_URL");
  if (url === null && file === null && jwksUrl === null) {
    throw new ConfigError(
      "missing",
      "FELIX_CONTROLPLANE_URL must be set for auth; without a control plane set FELIX_JWKS_FILE " +
        "or FELIX_JWKS_URL to the public keys that verify client tokens, " +
        "or run `deno task dev` for a local broker",
    );
  }
  if (file !== null && jwksUrl !== null) {
    throw conflict("FELIX_JWKS_FILE and FELIX_JWKS_URL are both set; keys come from one of them");
  }
  if (settings.textOrNull("FELIX_CONTROLPLANE_CA") === null) return;
  const https = [jwksUrl ?? url].some((candidate) => candidate?.toLowerCase().startsWith("https:"));
  if (!https) {
    throw conflict("FELIX_CONTROLPLANE_CA is set, but keys are not fetched from an https URL");
  }
}

function checkTls(settings: ResolvedSettings): void {
  allOrNone(settings, ["FELIX_TLS_CERT", "FELIX_TLS_KEY"]);
  const cert = settings.textOrNull("FELIX_TLS_CERT");
  if (cert !== null && settings.textOrNull("FELIX_TLS_CERT_EXPORT") !== null) {
    throw conflict(
      "FELIX_TLS_CERT_EXPORT writes the generated certificate and FELIX_TLS_CERT replaces it; " +
        "unset one of them",
    );
  }
  if (cert === null && settings.boolean("FELIX_TLS_REQUIRE_CERT")) {
    throw new ConfigError(
      "missing",
      "FELIX_TLS_REQUIRE_CERT is set, so FELIX_TLS_CERT and FELIX_TLS_KEY must be set",
    );
  }
}

function checkSizes(settings: ResolvedSettings): void {
  const frame = "FELIX_MAX_FRAME_BYTES";
  const perConnection = "FELIX_BROKER_PUBLISH_CONN_INFLIGHT_BYTES";
  const inflight = "FELIX_BROKER_PUBLISH_INFLIGHT_BYTES";
  atMost(settings, "FELIX_EVENT_BATCH_MAX_BYTES", frame, "clients would refuse such frames");
  atMost(settings, perConnection, inflight, "the limit per connection could never apply");
  const total = "FELIX_BROKER_PUBLISH_CONN_TOTAL_INFLIGHT_BYTES";
  if (settings.isSet(total)) {
    atMost(settings, perConnection, total, "all identities of a connection include each one");
    atMost(settings, total, inflight, "the limit per connection could never apply");
  }
  const subscriptions = "FELIX_MAX_SUBSCRIPTIONS_PER_CONN_TOTAL";
  if (settings.isSet(subscriptions)) {
    atMost(
      settings,
      "FELIX_MAX_SUBSCRIPTIONS_PER_CONN",
      subscriptions,
      "all identities of a connection include each one",
    );
  }
  const connectionWindow = "FELIX_BROKER_PUB_CONN_RECV_WINDOW";
  const streamWindow = "FELIX_BROKER_PUB_STREAM_RECV_WINDOW";
  atMost(settings, frame, connectionWindow, "a whole frame would never arrive");
  atMost(settings, frame, streamWindow, "a whole frame would never arrive");
  atMost(settings, streamWindow, connectionWindow, "a stream is part of its connection");
}

function checkPorts(settings: ResolvedSettings): void {
  const bind = settings.address("FELIX_QUIC_BIND");
  const listeners = settings.number("FELIX_QUIC_LISTENERS");
  const last = bind.port + listeners - 1;
  if (last > 65535) {
    throw conflict(
      `FELIX_QUIC_LISTENERS ${listeners} from port ${bind.port} passes port 65535`,
    );
  }
  const internal = settings.address("FELIX_INTERNAL_BIND");
  if (
    settings.isSet("FELIX_INTERNAL_BIND") && internal.port >= bind.port && internal.port <= last
  ) {
    throw conflict(
      `FELIX_INTERNAL_BIND ${formatAddress(internal)} is inside the client listener range`,
    );
  }
  const alpn = settings.addressOrNull("FELIX_QUIC_ALPN_BIND");
  if (alpn === null) return;
  if (settings.boolean("FELIX_TLS_REQUIRE_ALPN")) {
    throw conflict(
      "FELIX_QUIC_ALPN_BIND and FELIX_TLS_REQUIRE_ALPN are both set: the second listener would " +
        "be like the first",
    );
  }
  if (alpn.port !== 0 && alpn.port >= bind.port && alpn.port <= last) {
    throw conflict(`FELIX_QUIC_ALPN_BIND has the port of FELIX_QUIC_BIND, ${alpn.port}`);
  }
}

function atMost(settings: ResolvedSettings, smaller: string, larger: string, why: string): void {
  const low = settings.number(smaller);
  const high = settings.number(larger);
  if (low <= high) return;
  throw conflict(`${smaller} ${low} is more than ${larger} ${high}: ${why}`);
}

function allOrNone(settings: ResolvedSettings, names: readonly string[]): void {
  const missing = names.filter((name) => settings.textOrNull(name) === null);
  if (missing.length === 0 || missing.length === names.length) return;
  const set = names.filter((name) => !missing.includes(name));
  throw conflict(`${set.join(" and ")} is set without ${missing.join(" and ")}`);
}

function conflict(message: string): ConfigError {
  return new ConfigError("conflict", message);
}
