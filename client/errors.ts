/**
 * The errors of `@felix/client`, importable without loading the client.
 *
 * @example
 * ```ts
 * import { OutcomeUnknownError } from "@felix/client/errors";
 *
 * function needsChecking(error: unknown): boolean {
 *   return error instanceof OutcomeUnknownError;
 * }
 * ```
 *
 * @module
 */
export * from "./failure/felix_error.ts";
export * from "./failure/classes.ts";
