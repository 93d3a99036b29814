// What every part of one client shares: settings, counters, hooks, tokens and request numbers. It
// is handed to each part; nothing is reached through globals.

import type { HookRunner } from "../hooks.ts";
import type { Counters } from "../metrics.ts";
import type { Settings } from "../settings.ts";
import type { TokenProvider } from "../token/token_provider.ts";
import type { TurnClock } from "../turn_clock.ts";

/** The shared parts of one client. */
export interface ClientCore {
  readonly settings: Settings;
  readonly counters: Counters;
  readonly hooks: HookRunner;
  readonly tokens: TokenProvider;
  /** The time, as calls need it. */
  readonly clock: TurnClock;
  /** Uniform in `[0, 1)`. */
  readonly random: () => number;
  /** The next request number; one counter for all requests but publishes. */
  nextRequestId(): number;
  /** Set once the client refuses new calls. */
  readonly closed: boolean;
}
