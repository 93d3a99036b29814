// The environment as settings see it. Where the process may read only some variables
// (`--allow-env=FELIX_*`), it is read name by name: unknown names then stay unseen.

import { KNOWN_NAMES } from "../config/table.ts";

/** Variables beside `FELIX_*` that settings look at. */
const OTHER_NAMES = ["RUST_LOG"];

/** Every variable that this process may read and that settings may look at. */
export function readEnvironment(): Record<string, string> {
  try {
    return Deno.env.toObject();
  } catch (error) {
    if (!(error instanceof Deno.errors.NotCapable)) throw error;
  }
  const env: Record<string, string> = {};
  for (const name of [...KNOWN_NAMES, ...OTHER_NAMES]) {
    const value = readVariable(name);
    if (value !== undefined) env[name] = value;
  }
  return env;
}

function readVariable(name: string): string | undefined {
  try {
    return Deno.env.get(name);
  } catch {
    return undefined;
  }
}
