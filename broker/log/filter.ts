// The level filter of `FELIX_LOG`: a level for everything and levels per component
// (spec/operations.md §10). The longest component prefix wins: `broker=info,broker.publish=debug`.

import type { LogLevel } from "./broker_log.ts";

/** Levels of a filter; `off` writes nothing. */
export type FilterLevel = LogLevel | "off";

/** A parsed filter. */
export interface LogFilter {
  /** Level of components that no entry names. */
  readonly root: FilterLevel;
  /** Levels per component; a component covers its parts. */
  readonly components: ReadonlyMap<string, FilterLevel>;
}

const RANK: Readonly<Record<FilterLevel, number>> = {
  trace: 0,
  debug: 1,
  info: 2,
  warn: 3,
  error: 4,
  off: 5,
};

const CRATES: Readonly<Record<string, string>> = {
  felix_broker: "broker",
  felix_broker_service: "broker",
  felix_storage: "storage",
  felix_replication: "replication",
  felix_wire: "wire",
  felix_transport: "transport",
};

/** Parses `info,broker.publish=debug`; `problem` is a phrase that follows the setting's name. */
export function parseLogFilter(text: string): LogFilter | { readonly problem: string } {
  let root: FilterLevel = "info";
  const components = new Map<string, FilterLevel>();
  for (const part of text.split(",").map((entry) => entry.trim())) {
    const equals = part.indexOf("=");
    const level = part.slice(equals + 1).trim().toLowerCase();
    if (!isFilterLevel(level)) {
      const shown = JSON.stringify(level.slice(0, 40));
      return { problem: `has the level ${shown}; use error, warn, info, debug, trace or off` };
    }
    if (equals < 0) {
      root = level;
      continue;
    }
    const component = part.slice(0, equals).trim();
    if (!/^[a-z_]+(\.[a-z_]+)*$/.test(component)) {
      return { problem: `names the component ${JSON.stringify(component.slice(0, 40))}` };
    }
    components.set(component, level);
  }
  return { root, components };
}

/** Whether a line of `level` from `component` passes. */
export function passes(filter: LogFilter, component: string, level: LogLevel): boolean {
  return RANK[level] >= RANK[levelOf(filter, component)];
}

/** Least level that `component` writes. */
export function levelOf(filter: LogFilter, component: string): FilterLevel {
  for (
    let name = component;
    name !== "";
    name = name.slice(0, Math.max(0, name.lastIndexOf(".")))
  ) {
    const level = filter.components.get(name);
    if (level !== undefined) return level;
  }
  return filter.root;
}

/**
 * Translates a `RUST_LOG` filter: crate names become components, entries that mean nothing here are
 * left out. Returns `null` when nothing is left.
 */
export function filterFromRustLog(text: string): string | null {
  const entries: string[] = [];
  for (const part of text.split(",").map((entry) => entry.trim())) {
    const equals = part.lastIndexOf("=");
    const level = part.slice(equals + 1).toLowerCase();
    if (equals < 0) {
      const component = componentOfCrate(part);
      if (isFilterLevel(level)) entries.push(level);
      else if (component !== null) entries.push(`${component}=trace`);
      continue;
    }
    const component = componentOfCrate(part.slice(0, equals));
    if (component !== null && isFilterLevel(level)) entries.push(`${component}=${level}`);
  }
  return entries.length === 0 ? null : entries.join(",");
}

function componentOfCrate(target: string): string | null {
  const crate = target.split("::")[0]!;
  if (crate.startsWith("felix_controlplane")) return "controlplane";
  return CRATES[crate] ?? null;
}

function isFilterLevel(text: string): text is FilterLevel {
  return Object.hasOwn(RANK, text);
}
