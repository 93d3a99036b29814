// House style that a machine can hold: sizes, opening comments, leftover markers, skipped tests,
// console output, machine-bound text. Each rule is a pure function from a file to its faults, one
// sentence per fault as `path:line: what`; `tidy_docs.ts` holds the rule about public symbols.

import { isForTests, type RepositoryFile } from "./repository.ts";
import { lineOf, scanSource } from "./source_text.ts";

/** Most lines of a source file. */
export const MAX_FILE_LINES = 400;
/** Most lines of a function or method. */
export const MAX_FUNCTION_LINES = 70;
/** Most columns of a line. */
export const MAX_COLUMNS = 100;

/** Most lines of a file's opening comment. */
export const MAX_OPENING_LINES = 6;

/** One rule. */
export type TidyRule = (file: RepositoryFile) => string[];

const isSource = ({ path }: RepositoryFile): boolean => path.endsWith(".ts");

function matches(file: RepositoryFile, text: string, pattern: RegExp, fault: string): string[] {
  return [...text.matchAll(pattern)].map((match) =>
    `${file.path}:${lineOf(file.text, match.index)}: ${fault.replace("$0", match[0].trim())}`
  );
}

/** A file is at most 400 lines, a line at most 100 columns. */
export function checkSizes(file: RepositoryFile): string[] {
  if (!isSource(file)) return [];
  const lines = file.text.replace(/\n$/, "").split("\n");
  const faults = lines.length > MAX_FILE_LINES
    ? [`${file.path}: ${lines.length} lines; at most ${MAX_FILE_LINES}`]
    : [];
  for (const [index, line] of lines.entries()) {
    const columns = [...line].length;
    if (columns <= MAX_COLUMNS) continue;
    faults.push(`${file.path}:${index + 1}: ${columns} columns; at most ${MAX_COLUMNS}`);
  }
  return faults;
}

const KEYWORD_FUNCTION = /function\b\*? */.source;
const METHOD =
  /\*? *(?!(?:if|for|while|switch|catch|return|await|new|super|else|do|throw)\b)(?=#?[a-z]\w*\()/
    .source;
const FUNCTION_START = new RegExp(
  "^[ \\t]*(?:(?:export|async|static|override|private|get|set) +)*" +
    `(?:${KEYWORD_FUNCTION}|${METHOD})(#?\\w+)(?:<[^\\n(]*>)?\\(`,
  "gm",
);

/** End of the bracket that opens at `from`; the end of the text when it never closes. */
function closing(code: string, from: number): number {
  let depth = 0;
  for (let index = from; index < code.length; index++) {
    const character = code.charAt(index);
    if ("([{".includes(character)) depth++;
    if (")]}".includes(character) && --depth === 0) return index;
  }
  return code.length;
}

/** A function or method is at most 70 lines. Relies on the formatter's line breaks. */
export function checkFunctions(file: RepositoryFile): string[] {
  if (!isSource(file)) return [];
  const { code } = scanSource(file.text);
  const faults: string[] = [];
  for (const match of code.matchAll(FUNCTION_START)) {
    const parameters = closing(code, match.index + match[0].length - 1);
    const lineEnd = code.indexOf("\n", parameters);
    const body = code.lastIndexOf("{", lineEnd < 0 ? code.length : lineEnd);
    if (body < parameters) continue;
    const first = lineOf(code, match.index + match[0].search(/\S/));
    const lines = lineOf(code, closing(code, body)) - first + 1;
    if (lines <= MAX_FUNCTION_LINES) continue;
    faults.push(
      `${file.path}:${first}: ${match[1]} has ${lines} lines; at most ${MAX_FUNCTION_LINES}`,
    );
  }
  return faults;
}

/** A source file opens with a comment of one to six lines that says what it owns. */
export function checkOpening(file: RepositoryFile): string[] {
  if (!isSource(file)) return [];
  const lines = file.text.split("\n");
  if (lines[0]?.startsWith("#!")) lines.shift();
  const opening = lines.findIndex((line) => !line.startsWith("//"));
  if (opening === 0) {
    const block = /^\/\*\*?[\s\S]*?\*\//.exec(lines.join("\n"));
    return block === null ? [`${file.path}: no opening comment`] : [];
  }
  if (opening <= MAX_OPENING_LINES) return [];
  return [`${file.path}: the opening comment has ${opening} lines; at most ${MAX_OPENING_LINES}`];
}

/** No leftover markers in comments. */
export function checkMarkers(file: RepositoryFile): string[] {
  if (!isSource(file)) return [];
  return scanSource(file.text).comments.flatMap(({ start, text }) => {
    const marker = /\b(?:TODO|FIXME|XXX|HACK)\b/.exec(text);
    const line = lineOf(file.text, start + (marker?.index ?? 0));
    return marker === null ? [] : [`${file.path}:${line}: leftover marker ${marker[0]}`];
  });
}

/** No test is singled out; one that is skipped says why in a comment right above or beside it. */
export function checkSkips(file: RepositoryFile): string[] {
  if (!isSource(file)) return [];
  const { code } = scanSource(file.text);
  const only = /\b(?:Deno\.test|\bt(?:est)?|describe|it)\.only\b|^\s*only\s*:\s*true/gm;
  const faults = matches(file, code, only, "a test is singled out with `only`");
  const ignored = /\b(?:Deno\.test|test|describe|it)\.(?:ignore|skip)\b|^\s*ignore\s*:/gm;
  const lines = file.text.split("\n");
  for (const match of code.matchAll(ignored)) {
    const line = lineOf(code, match.index + match[0].search(/\S/));
    const near = `${lines[line - 2] ?? ""}\n${lines[line - 1] ?? ""}`;
    if (near.includes("//")) continue;
    faults.push(`${file.path}:${line}: a test is skipped without a reason`);
  }
  return faults;
}

const MAY_PRINT =
  /^(?:client\/cli\/|broker\/dev\/|tests\/bench\/|examples\/|(?:broker|controlplane)\/main\.ts$)/;

/** `console` only where a person reads the output: entry points, the command, bench, examples. */
export function checkConsole(file: RepositoryFile): string[] {
  if (!isSource(file) || MAY_PRINT.test(file.path)) return [];
  const { code } = scanSource(file.text);
  return matches(file, code, /\bconsole\s*\.\s*\w+/g, "$0 outside an entry point");
}

const MACHINE_PATH = /(?<![\w.])\/(?:work|home|root|Users|mnt)\/\w[\w./-]*/g;
const REGISTRY_HOST = new RegExp(
  "\\b(?:" + [
    /(?:registry|replicate)\.npmjs\.(?:org|com)/,
    /registry\.yarnpkg\.com/,
    /(?:npm\.)?jsr\.io/,
    /deno\.land/,
    /esm\.sh/,
    /pypi\.org/,
    /files\.pythonhosted\.org/,
    /proxy\.golang\.org/,
    /(?:static\.)?crates\.io/,
    /deb\.debian\.org/,
  ].map((pattern) => pattern.source).join("|") + ")\\b",
  "g",
);

/** Nothing that holds on one machine only: no absolute paths of a person, no registry hosts. */
export function checkMachineText(file: RepositoryFile): string[] {
  return [
    ...matches(file, file.text, MACHINE_PATH, "machine path $0"),
    ...matches(file, file.text, REGISTRY_HOST, "registry host $0"),
  ];
}

/** No default exports and no bare `throw new Error` in a room's own files. */
export function checkRoomHabits(file: RepositoryFile): string[] {
  const inRoom = /^(?:wire|transport|storage|raft|broker|controlplane|client)\//.test(file.path);
  if (!isSource(file) || !inRoom || isForTests(file.path)) return [];
  const { code } = scanSource(file.text);
  return [
    ...matches(file, code, /^export default\b/gm, "default export"),
    ...matches(file, code, /\bthrow new Error\(/g, "bare Error; a failure has a typed class"),
  ];
}

/** Every rule that looks at one file. */
export const TIDY_RULES: readonly TidyRule[] = [
  checkSizes,
  checkFunctions,
  checkOpening,
  checkMarkers,
  checkSkips,
  checkConsole,
  checkMachineText,
  checkRoomHabits,
];
