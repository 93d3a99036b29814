/**
 * Token providers of `@felix/client`.
 *
 * @example
 * ```ts
 * import { tokenFile } from "@felix/client/tokens";
 *
 * const token = tokenFile("/run/secrets/felix-token");
 * ```
 *
 * @module
 */
export * from "./token/token_provider.ts";
export * from "./token/refreshing_token.ts";
export * from "./token/token_file.ts";
