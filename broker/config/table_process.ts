// The settings of the process that this build applies: listeners, identity, limits before
// authentication, lifecycle (spec/operations.md §3.1, §3.2, §3.10). A row here has a member in
// `BrokerSettings`; `load.ts` copies it there.

import { BOOLEAN, COUNT_OR_ZERO, MILLISECONDS, MILLISECONDS_OR_ZERO, PATH } from "./kinds.ts";
import type { Setting } from "./setting.ts";

/** Listeners and TLS (spec/operations.md §3.1). */
export const LISTENER_SETTINGS: readonly Setting[] = [
  {
    name: "FELIX_QUIC_BIND",
    key: "quic_bind",
    kind: { type: "address" },
    default: "0.0.0.0:5000",
    effect: "applied",
    summary: "Client QUIC listener.",
  },
  {
    name: "FELIX_QUIC_ALPN_BIND",
    key: "quic_alpn_bind",
    kind: { type: "address" },
    default: null,
    effect: "applied",
    summary: "Second client listener, for clients that offer ALPN `felix/1`.",
  },
  {
    name: "FELIX_QUIC_ENGINE",
    key: "quic_engine",
    kind: { type: "choice", values: ["native", "quiche"] },
    default: "native",
    effect: "applied",
    summary:
      "QUIC engine of the client listeners. `quiche` needs `--allow-ffi`, and clients must " +
      "offer ALPN `felix/1`, which published clients do not by default.",
  },
  {
    name: "FELIX_TLS_CERT",
    key: "tls.cert",
    kind: PATH,
    default: null,
    effect: "applied",
    summary: "PEM file with the served chain. Unset: a certificate is generated at every start.",
  },
  {
    name: "FELIX_TLS_KEY",
    key: "tls.key",
    kind: PATH,
    default: null,
    effect: "applied",
    summary: "PEM file with the key of `FELIX_TLS_CERT`.",
  },
  {
    name: "FELIX_TLS_REQUIRE_CERT",
    key: "tls.require_cert",
    kind: BOOLEAN,
    default: "false",
    effect: "applied",
    summary: "Refuse to start on a generated certificate.",
  },
  {
    name: "FELIX_TLS_CERT_EXPORT",
    key: "tls.cert_export",
    kind: PATH,
    default: null,
    effect: "applied",
    summary: "File to write the generated certificate to, for clients to trust.",
  },
  {
    name: "FELIX_TLS_REQUIRE_ALPN",
    key: "tls.require_alpn",
    kind: BOOLEAN,
    default: "false",
    effect: "applied",
    summary:
      "Require ALPN `felix/1` on `FELIX_QUIC_BIND`; published clients offer none by default.",
  },
  {
    name: "FELIX_BROKER_METRICS_BIND",
    key: "metrics_bind",
    kind: { type: "address" },
    default: "0.0.0.0:8080",
    effect: "applied",
    summary: "Metrics and probes, plain HTTP without authentication. " +
      "The default is 127.0.0.1:8080 while `FELIX_DEV_FILE` is set.",
  },
  {
    name: "FELIX_KEEPALIVE_MS",
    kind: MILLISECONDS,
    default: "2000",
    effect: "applied",
    summary: "Milliseconds between keep-alive packets; keep it under half the idle timeout.",
  },
  {
    name: "FELIX_MAX_IDLE_TIMEOUT_MS",
    kind: MILLISECONDS,
    default: "6000",
    effect: "applied",
    summary: "Milliseconds of silence after which a peer counts as dead.",
  },
];

/** Identity, keys and catalog (spec/operations.md §3.2, spec/auth.md §9.2, ours). */
export const IDENTITY_SETTINGS: readonly Setting[] = [
  {
    name: "FELIX_CONTROLPLANE_URL",
    aliases: ["FELIX_CP_URL"],
    key: "controlplane_url",
    kind: { type: "url" },
    default: null,
    effect: "applied",
    summary: "Base URL of the control plane whose tenant keys verify client tokens. " +
      "One of this, `FELIX_JWKS_FILE` and `FELIX_JWKS_URL` is needed.",
  },
  {
    name: "FELIX_CONTROLPLANE_CA",
    key: "controlplane_ca",
    kind: PATH,
    default: null,
    effect: "applied",
    summary: "PEM file with further roots for an https control plane or JWKS URL.",
  },
  {
    name: "FELIX_JWKS_FILE",
    key: "jwks_file",
    kind: PATH,
    default: null,
    effect: "applied",
    summary: "JWKS file with the keys that verify tokens of every tenant; re-read when it changes.",
  },
  {
    name: "FELIX_JWKS_URL",
    key: "jwks_url",
    kind: { type: "url" },
    default: null,
    effect: "applied",
    summary: "JWKS URL; `{tenant}` in it is replaced by the percent-encoded tenant id.",
  },
  {
    name: "FELIX_JWKS_STALE_MAX_SECONDS",
    key: "jwks_stale_max_seconds",
    kind: COUNT_OR_ZERO,
    default: "86400",
    effect: "applied",
    summary: "Seconds that fetched keys serve on past their hour while no new ones can be fetched.",
  },
  {
    name: "FELIX_CATALOG_FILE",
    key: "catalog_file",
    kind: PATH,
    default: null,
    effect: "applied",
    summary: "YAML file that lists tenants, namespaces, streams and caches; re-read on SIGHUP.",
  },
  {
    name: "FELIX_CLIENT_ADVERTISE_ADDR",
    key: "node.client_advertise_addr",
    kind: { type: "host_port" },
    default: null,
    effect: "applied",
    summary: "`host:port` given to clients in discovery answers.",
  },
  {
    name: "FELIX_REGION_ID",
    key: "node.region",
    kind: { type: "text" },
    default: "local",
    effect: "applied",
    summary: "Region that this broker reports.",
  },
];

/** Lifecycle and logs (spec/operations.md §3.10). */
export const LIFECYCLE_SETTINGS: readonly Setting[] = [
  {
    name: "FELIX_SHUTDOWN_DRAIN_TIMEOUT_MS",
    key: "shutdown_drain_timeout_ms",
    kind: MILLISECONDS,
    default: "25000",
    effect: "applied",
    summary: "One budget for everything that drains at shutdown, in milliseconds.",
  },
  {
    name: "FELIX_SHUTDOWN_PREDRAIN_MS",
    key: "shutdown_predrain_ms",
    kind: MILLISECONDS_OR_ZERO,
    default: "0",
    effect: "applied",
    summary: "Milliseconds of serving on after readiness went off.",
  },
  {
    name: "FELIX_LOG",
    key: "log.level",
    kind: { type: "log_filter" },
    default: "info",
    effect: "applied",
    summary: "Level filter: `error`, `warn`, `info`, `debug`, `trace`, and per component as " +
      "`info,broker.publish=debug`. When unset, `RUST_LOG` is read.",
  },
  {
    name: "FELIX_LOG_FORMAT",
    key: "log.format",
    kind: { type: "choice", values: ["json", "text"] },
    default: null,
    effect: "applied",
    summary: "Form of a log line. Unset: `text` on a terminal, `json` elsewhere.",
  },
  {
    name: "FELIX_DEV_FILE",
    kind: PATH,
    default: null,
    effect: "applied",
    summary: "Development: JSON file that says where the broker serves, removed when it stops.",
  },
  {
    name: "FELIX_DEV_INFO",
    kind: { type: "text" },
    default: null,
    effect: "applied",
    summary: "Development: a JSON object whose members `FELIX_DEV_FILE` holds as well.",
  },
  {
    name: "FELIX_STOP_WITH_STDIN",
    kind: BOOLEAN,
    default: "false",
    effect: "applied",
    summary: "Shut down when standard input ends, so that a broker never outlives its launcher.",
  },
];
