// What this build calls itself in `--version`, logs and metrics.

import manifest from "../deno.json" with { type: "json" };

/** Version of the broker. */
export const VERSION: string = manifest.version;
/** Commit that it was built from; `unknown` when it runs from its sources. */
export const COMMIT = "unknown";
