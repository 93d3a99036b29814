/**
 * The Felix broker as a library: everything `deno task broker` is made of, for tests and for
 * programs that embed one.
 *
 * @module
 */
export * from "./auth/grants.ts";
export * from "./catalog/catalog.ts";
export * from "./config/settings.ts";
export * from "./log/broker_log.ts";
export * from "./metrics/counters.ts";
export * from "./server/server.ts";
