// Why a configuration was refused. Every message is one line that names the setting as the operator
// wrote it, what is wrong and, where it helps, what to do; a secret's value is never part of it.

/** Stable codes of `ConfigError`. */
export type ConfigErrorCode =
  | "bad_argument"
  | "bad_file"
  | "bad_value"
  | "conflict"
  | "missing"
  | "not_available"
  | "unknown_key";

/** A configuration that cannot be run; the process exits with status 2. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";

  /** `message`: one line. */
  constructor(readonly code: ConfigErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
  }
}
