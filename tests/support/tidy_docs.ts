// The rule that a room's public symbols are documented: whatever its door re-exports has a JSDoc
// block right above its declaration. A pure function of the files.

import { resolveReexports } from "./reexports.ts";
import type { RepositoryFile } from "./repository.ts";
import { lineOf, scanSource } from "./source_text.ts";

/** A declaration at the top level of a file. */
interface Declaration {
  readonly name: string;
  readonly line: number;
  readonly documented: boolean;
}

const DECLARATION = new RegExp(
  "^export +(?:declare +)?(?:abstract +)?(?:async +)?" +
    "(?:class|function\\*?|const|let|interface|type|enum) +(\\w+)",
  "gm",
);

/** Exported declarations of a file, with whether a JSDoc block ends right above them. */
export function exportedDeclarations(text: string): Declaration[] {
  const { code, comments } = scanSource(text);
  const found = [...code.matchAll(DECLARATION)].map((match) => {
    const block = comments.findLast(({ start }) => start < match.index);
    const end = block === undefined ? 0 : block.start + block.text.length;
    const documented = block !== undefined && block.text.startsWith("/**") &&
      code.slice(end, match.index).trim() === "";
    return { name: match[1]!, line: lineOf(text, match.index), documented };
  });
  // One documented overload documents them all.
  const names = new Set(found.filter((entry) => entry.documented).map((entry) => entry.name));
  return found.map((entry) => ({ ...entry, documented: names.has(entry.name) }));
}

/** Public symbols of every room without docs, one sentence each. */
export function checkPublicDocs(files: readonly RepositoryFile[]): string[] {
  const byPath = new Map(files.map((file) => [file.path, file.text]));
  const doors = files.filter(({ path }) => /^[a-z]+\/mod\.ts$/.test(path));
  const faults = new Set<string>();
  for (const door of doors) {
    for (const { path, names } of resolveReexports(door.path, byPath)) {
      for (const { name, line, documented } of exportedDeclarations(byPath.get(path) ?? "")) {
        const isPublic = names === "all" || names.has(name);
        if (isPublic && !documented) faults.add(`${path}:${line}: ${name} has no docs`);
      }
    }
  }
  return [...faults];
}

/** A door re-exports and does nothing else: anything but imports and exports is a fault. */
export function checkDoors(files: readonly RepositoryFile[]): string[] {
  return files.filter(({ path }) => /^[a-z]+\/(?:[a-z]+\/)*mod\.ts$/.test(path)).flatMap((file) => {
    const { code } = scanSource(file.text);
    const rest = code
      .replace(/export +(?:type +)?(?:\*(?: +as +\w+)?|\{[^}]*\}) +from +"[^"]*";/g, "")
      .replace(/import +(?:type +)?\{[^}]*\} +from +"[^"]*";/g, "")
      .replace(/export +(?:type +)?\{[^}]*\};/g, "")
      .trim();
    return rest === "" ? [] : [`${file.path}: a door only re-exports, found: ${rest.slice(0, 40)}`];
  });
}
