// The broker's log on LogTape: one sink, one filter, our line formats. LogTape keeps its
// configuration per process, so a process configures it once, at start.

import { configureSync, getLogger } from "@logtape/logtape";
import type { Logger, LogLevel as TapeLevel, LogRecord } from "@logtape/logtape";
import type { BrokerLog, LogFields, LogLevel } from "./broker_log.ts";
import { parseLogFilter, passes } from "./filter.ts";
import type { LogFilter } from "./filter.ts";
import { jsonLine, textLine } from "./format.ts";

const ROOT = "felix";
const TO_TAPE: Readonly<Record<LogLevel, TapeLevel>> = {
  trace: "trace",
  debug: "debug",
  info: "info",
  warn: "warning",
  error: "error",
};

/** How a process logs. */
export interface LogOptions {
  /** `FELIX_LOG`; what cannot be parsed counts as `info`. */
  readonly filter: string;
  readonly format: "json" | "text";
  /** Takes one line with its line break. Must not throw. */
  write(line: string): void;
}

/** Configures logging for this process and returns the log of the component `broker`. */
export function createBrokerLog(options: LogOptions): BrokerLog {
  const parsed = parseLogFilter(options.filter);
  const filter: LogFilter = "problem" in parsed ? { root: "info", components: new Map() } : parsed;
  const format = options.format === "json" ? jsonLine : textLine;
  const write = (record: LogRecord): void => {
    options.write(format({
      wallMs: record.timestamp,
      level: fromTape(record.level),
      component: record.category.slice(1).join("."),
      msg: String(record.rawMessage),
      fields: record.properties,
    }));
  };
  configureSync({
    reset: true,
    sinks: { lines: write },
    loggers: [
      { category: [ROOT], lowestLevel: "trace", sinks: ["lines"] },
      { category: ["logtape", "meta"], lowestLevel: "error", sinks: ["lines"] },
    ],
  });
  return new TapeLog("broker", getLogger([ROOT, "broker"]), filter);
}

class TapeLog implements BrokerLog {
  readonly #component: string;
  readonly #logger: Logger;
  readonly #filter: LogFilter;
  readonly #enabled: Readonly<Record<LogLevel, boolean>>;

  constructor(component: string, logger: Logger, filter: LogFilter) {
    this.#component = component;
    this.#logger = logger;
    this.#filter = filter;
    this.#enabled = {
      trace: passes(filter, component, "trace"),
      debug: passes(filter, component, "debug"),
      info: passes(filter, component, "info"),
      warn: passes(filter, component, "warn"),
      error: passes(filter, component, "error"),
    };
  }

  trace(msg: string, fields?: LogFields): void {
    this.#emit("trace", msg, fields);
  }

  debug(msg: string, fields?: LogFields): void {
    this.#emit("debug", msg, fields);
  }

  info(msg: string, fields?: LogFields): void {
    this.#emit("info", msg, fields);
  }

  warn(msg: string, fields?: LogFields): void {
    this.#emit("warn", msg, fields);
  }

  error(msg: string, fields?: LogFields): void {
    this.#emit("error", msg, fields);
  }

  child(component: string): BrokerLog {
    const name = `${this.#component}.${component}`;
    return new TapeLog(name, this.#logger.getChild(component), this.#filter);
  }

  enabled(level: LogLevel): boolean {
    return this.#enabled[level];
  }

  #emit(level: LogLevel, msg: string, fields: LogFields = {}): void {
    if (!this.#enabled[level]) return;
    this.#logger.emit({
      timestamp: Date.now(),
      level: TO_TAPE[level],
      message: [msg],
      rawMessage: msg,
      properties: { ...fields },
    });
  }
}

function fromTape(level: TapeLevel): LogLevel {
  if (level === "warning") return "warn";
  return level === "fatal" ? "error" : level;
}

/** A writer of lines to a file descriptor; a reader that has gone away is not an error. */
export function lineWriter(
  target: { writeSync(bytes: Uint8Array): number },
): (line: string) => void {
  const encoder = new TextEncoder();
  return (line) => {
    let rest = encoder.encode(line);
    try {
      while (rest.length > 0) rest = rest.subarray(target.writeSync(rest));
    } catch {
      // Nobody reads the log any more; serving goes on.
    }
  };
}

/** A log that writes nothing. */
export const silentLog: BrokerLog = {
  trace: () => {},
  debug: () => {},
  info: () => {},
  warn: () => {},
  error: () => {},
  child: () => silentLog,
  enabled: () => false,
};
