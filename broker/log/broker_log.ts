// The logging interface that the broker's rooms are written against.
// `msg` is constant text and everything that varies is a field (spec/operations.md §10); fields
// never hold tokens, payloads or, at info and above, cache keys.

/** Fields of a line; names as spec/operations.md §10 lists them. */
export type LogFields = Readonly<Record<string, unknown>>;

/** A component's log. */
export interface BrokerLog {
  /** Finest level that is on only when asked for. */
  trace(msg: string, fields?: LogFields): void;
  /** Detail for somebody who looks into one component. */
  debug(msg: string, fields?: LogFields): void;
  /** Something an operator wants to have seen happen. */
  info(msg: string, fields?: LogFields): void;
  /** Something an operator should look at. */
  warn(msg: string, fields?: LogFields): void;
  /** Something that failed. */
  error(msg: string, fields?: LogFields): void;
  /** The log of a part, as `broker` -> `broker.publish`. */
  child(component: string): BrokerLog;
  /** Whether a line of this level would be written; for lines whose fields cost something. */
  enabled(level: LogLevel): boolean;
}

/** Levels, least urgent first. */
export type LogLevel = "trace" | "debug" | "info" | "warn" | "error";
