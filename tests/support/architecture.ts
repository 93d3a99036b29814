// Which room may know which (docs/architecture.md, "Rooms"), as data, and the check that holds
// every file to it. A pure function of the files: it answers sentences, empty when all is well.

import { isForTests, type RepositoryFile } from "./repository.ts";
import { lineOf, moduleReferences, scanSource } from "./source_text.ts";

/** What one room may import besides its own files. */
export interface RoomRule {
  /** Rooms whose doors it may use. */
  readonly rooms: readonly string[];
  /** Packages it may use, by the name in the import map; node built-ins as `node:`. */
  readonly packages: readonly string[];
}

const EVERY_ROOM = ["wire", "transport", "storage", "raft", "broker", "controlplane", "client"];

/** The arrows between rooms, and the packages each room may use. */
export const ROOM_RULES: Readonly<Record<string, RoomRule>> = {
  wire: { rooms: [], packages: [] },
  transport: {
    rooms: [],
    packages: ["node:", "@matrixai/quic", "@peculiar/x509", "reflect-metadata"],
  },
  storage: { rooms: [], packages: ["node:"] },
  raft: { rooms: ["storage"], packages: ["node:"] },
  broker: {
    rooms: ["wire", "transport", "storage"],
    packages: ["node:", "@std/", "@hono/hono", "@logtape/logtape", "jose", "prom-client", "yaml"],
  },
  "broker/core": { rooms: ["storage"], packages: [] },
  controlplane: {
    rooms: ["raft", "storage"],
    packages: ["node:", "@std/", "@hono/hono", "@logtape/logtape", "jose", "prom-client", "yaml"],
  },
  client: { rooms: ["wire", "transport"], packages: ["node:", "@std/"] },
};

/** What a test beside a file may use on top of its room. */
const TEST_PACKAGES = ["@std/assert", "@std/path", "node:", "fast-check"];

/** Rooms that take time, chance and I/O from outside, so that a simulation can drive them. */
const PURE_ROOMS = ["wire", "broker/core"];

const IMPURE = new RegExp(
  [
    /\bDeno\s*\./,
    /\bfetch\s*\(/,
    /\bset(?:Timeout|Interval|Immediate)\b/,
    /\bDate\s*\.\s*now\b/,
    /\bnew Date\b/,
    /\bperformance\s*\./,
    /\bMath\s*\.\s*random\b/,
    /\bcrypto\s*\./,
  ].map((pattern) => pattern.source).join("|"),
  "g",
);

/** Doors by name, as `@felix/wire` or `@felix/broker/config`, from the rooms' `deno.json`. */
export function declaredDoors(files: readonly RepositoryFile[]): Set<string> {
  const doors = new Set<string>();
  for (const { path, text } of files) {
    if (!/^[a-z]+\/deno\.json$/.test(path)) continue;
    const { name, exports } = JSON.parse(text) as { name: string; exports: unknown };
    if (typeof exports === "string") doors.add(name);
    else for (const key of Object.keys(exports as object)) doors.add(name + key.slice(1));
  }
  return doors;
}

/** Room of a path; `null` for what belongs to none (tests, examples, docs). */
function roomOf(path: string): string | null {
  if (path.startsWith("broker/core/")) return "broker/core";
  const first = path.split("/")[0]!;
  return EVERY_ROOM.includes(first) ? first : null;
}

function resolveRelative(from: string, specifier: string): string {
  const parts = from.split("/").slice(0, -1);
  for (const part of specifier.split("/")) {
    if (part === "..") parts.pop();
    else if (part !== ".") parts.push(part);
  }
  return parts.join("/");
}

function allows(packages: readonly string[], specifier: string): boolean {
  const name = specifier.startsWith("npm:") ? specifier.slice(4) : specifier;
  return packages.some((allowed) =>
    /[:/]$/.test(allowed)
      ? name.startsWith(allowed)
      : name === allowed || name.startsWith(`${allowed}/`) || name.startsWith(`${allowed}@`)
  );
}

/** Why a reference between two files of this repository is refused; `null` when it is allowed. */
function judgeFile(from: string, to: string): string | null {
  const room = roomOf(from);
  const target = roomOf(to);
  if (target === room) return null;
  if (room === "broker" && target === "broker/core") return null;
  if (target === null) {
    const forTests = room === null || (isForTests(from) && to.startsWith("tests/"));
    return forTests ? null : `a room imports ${to}, which is outside the rooms`;
  }
  if (room === "broker/core" && target === "broker") return `broker/core imports ${to}`;
  return `deep import of ${to}; use the room's door`;
}

function judgeDoor(from: string, specifier: string, doors: ReadonlySet<string>): string | null {
  const name = specifier.slice("@felix/".length).split("/")[0]!;
  if (!doors.has(specifier)) return `${specifier} is no declared door of ${name}`;
  const room = roomOf(from);
  if (room === null || room === name) return null;
  if (ROOM_RULES[room]!.rooms.includes(name)) return null;
  return `${room} must not know ${name}`;
}

function judgePackage(from: string, specifier: string): string | null {
  const room = roomOf(from);
  if (/^https?:/.test(specifier)) return `${specifier}: a dependency is named in deno.json`;
  if (room === null) return null;
  const extra = isForTests(from) ? TEST_PACKAGES : [];
  const rule = ROOM_RULES[room]!;
  return allows([...rule.packages, ...extra], specifier)
    ? null
    : `${room} must not use the package ${specifier}`;
}

/** Why one module reference is refused; `null` when it is allowed. */
export function judgeReference(
  from: string,
  specifier: string,
  doors: ReadonlySet<string>,
): string | null {
  if (specifier.startsWith(".")) return judgeFile(from, resolveRelative(from, specifier));
  if (specifier.startsWith("@felix/")) return judgeDoor(from, specifier, doors);
  return judgePackage(from, specifier);
}

function impurities({ path, text }: RepositoryFile): string[] {
  const room = roomOf(path);
  if (room === null || !PURE_ROOMS.includes(room) || isForTests(path)) return [];
  return [...scanSource(text).code.matchAll(IMPURE)].map((match) =>
    `${path}:${lineOf(text, match.index)}: ${room} uses ${match[0].replace(/\W+$/, "")}: ` +
    "time, chance and I/O come in as arguments"
  );
}

/** Checks every arrow between rooms; answers one sentence per fault. */
export function checkArchitecture(files: readonly RepositoryFile[]): string[] {
  const doors = declaredDoors(files);
  const faults: string[] = [];
  for (const file of files) {
    if (!file.path.endsWith(".ts")) continue;
    for (const { specifier, line } of moduleReferences(file.text)) {
      const fault = judgeReference(file.path, specifier, doors);
      if (fault !== null) faults.push(`${file.path}:${line}: ${fault}`);
    }
    faults.push(...impurities(file));
  }
  return faults;
}
