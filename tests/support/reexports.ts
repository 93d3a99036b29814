// What a door re-exports: follows `export … from` through a room's files and answers, per file,
// which of its names are public. A pure function of the files.

/** Public names of one file. */
export interface PublicNames {
  /** Path of the file that declares them. */
  readonly path: string;
  /** The names, or every exported one. */
  readonly names: ReadonlySet<string> | "all";
}

const REEXPORT = /export +(?:type +)?(\*|\{[^}]*\}) +from +"(\.[^"]+)"/g;

function join(from: string, specifier: string): string {
  const parts = from.split("/").slice(0, -1);
  for (const part of specifier.split("/")) {
    if (part === "..") parts.pop();
    else if (part !== ".") parts.push(part);
  }
  return parts.join("/");
}

function namesIn(list: string): Set<string> {
  const names = list.replace(/[{}]/g, "").split(",").map((entry) =>
    entry.replace(/\/\/.*$/gm, "").trim().replace(/^type +/, "").split(/ +as +/)[0]!.trim()
  );
  return new Set(names.filter((name) => name !== ""));
}

/** Files that `door` makes public, with the names; `files` maps paths to texts. */
export function resolveReexports(door: string, files: ReadonlyMap<string, string>): PublicNames[] {
  const found: PublicNames[] = [];
  const visit = (path: string, wanted: ReadonlySet<string> | "all", depth: number): void => {
    found.push({ path, names: wanted });
    if (depth > 8) return;
    for (const [, list, specifier] of (files.get(path) ?? "").matchAll(REEXPORT)) {
      const target = join(path, specifier!);
      if (list === "*") visit(target, wanted, depth + 1);
      else {
        const names = namesIn(list!);
        visit(target, wanted === "all" ? names : names.intersection(wanted), depth + 1);
      }
    }
  };
  visit(door, "all", 0);
  return found;
}
