// How a program watches a client: a logger and hooks. The rule: neither may disturb the client; an
// exception from a hook is logged once and dropped (spec/client.md §16).

import type { FelixError } from "./failure/felix_error.ts";
import type { Offset } from "./types.ts";

/** Named facts of a log line; the names are stable. */
export type LogFields = Record<string, string | number | bigint | boolean | undefined>;

/** Where log lines go; the default logger drops them. */
export interface FelixLogger {
  /** Detail for finding faults. */
  debug(message: string, fields?: LogFields): void;
  /** Normal events. */
  info(message: string, fields?: LogFields): void;
  /** Something to look at that the client dealt with. */
  warn(message: string, fields?: LogFields): void;
  /** A failure that lost something. */
  error(message: string, fields?: LogFields): void;
}

/** Called as things happen; all optional, none may throw. */
export interface ClientHooks {
  /** A connection was opened and authenticated; `ms` it took. */
  onConnect?(info: {
    broker: string;
    role: string;
    features: readonly string[];
    ms: number;
  }): void;
  /** A connection ended. */
  onDisconnect?(info: {
    broker: string;
    role: string;
    code?: number;
    reason?: string;
    error?: FelixError;
  }): void;
  /** A request was sent on to the shard's owner. */
  onRedirect?(info: {
    operation: string;
    resource: string;
    from: string;
    to: string;
    generation: bigint;
  }): void;
  /** A call is tried again after `delayMs`. */
  onRetry?(info: {
    operation: string;
    resource?: string;
    attempt: number;
    delayMs: number;
    error: FelixError;
  }): void;
  /** A publish was relayed to its owner by the broker that it was sent to. */
  onForwarded?(info: { resource: string; shard: number; owner: string }): void;
  /** Records of a subscription were lost: `dropped` of them from offset `from` up to `to`. */
  onDrop?(info: {
    resource: string;
    shard: number;
    dropped: bigint;
    from: Offset;
    to: Offset;
  }): void;
  /** A subscription without offsets was resumed at the tail: records may be missing. */
  onGapPossible?(info: { resource: string; shard: number }): void;
  /** Publishes with ack `none` were on a connection that broke. */
  onUnackedLoss?(info: { broker: string; frames: number; bytes: number }): void;
  /** A subscribed shard moved to another broker. */
  onShardMoved?(info: {
    resource: string;
    shard: number;
    addr: string | null;
    generation: bigint;
  }): void;
  /** The token function passed to `connect` was called. */
  onTokenRefresh?(info: { expiresAt: Date | null; error?: Error }): void;
}

/** Calls hooks so that none of them can do harm. */
export class HookRunner {
  readonly #hooks: ClientHooks;
  readonly #logger: FelixLogger | undefined;
  readonly #client: LogFields;
  readonly #complained = new Set<string>();

  /** Runs `hooks`; complaints go to `logger`, every line with the client's name if it has one. */
  constructor(hooks?: ClientHooks, logger?: FelixLogger, clientName?: string) {
    this.#hooks = hooks ?? {};
    this.#logger = logger;
    this.#client = clientName === undefined ? {} : { client: clientName };
  }

  /** Calls one hook if it is set. */
  call<K extends keyof ClientHooks>(
    name: K,
    info: Parameters<NonNullable<ClientHooks[K]>>[0],
  ): void {
    const hook = this.#hooks[name] as ((info: unknown) => void) | undefined;
    if (hook === undefined) return;
    try {
      hook.call(this.#hooks, info);
    } catch (error) {
      if (this.#complained.has(name)) return;
      this.#complained.add(name);
      this.log("warn", `hook ${name} threw`, { reason: String(error) });
    }
  }

  /** Writes a log line if there is a logger. */
  log(level: keyof FelixLogger, message: string, fields?: LogFields): void {
    if (this.#logger === undefined) return;
    try {
      this.#logger[level](message, { ...this.#client, ...fields });
    } catch {
      // A logger that throws must not take a connection down with it.
    }
  }
}
