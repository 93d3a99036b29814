// The part of YAML that a client's configuration file needs: one `key: value` a line, comments,
// quoted or plain scalars. Anything else is refused with its line, never guessed at.

import { InvalidArgumentError } from "./failure/classes.ts";

function refuse(line: number, message: string): never {
  throw new InvalidArgumentError({
    message: `configuration file, line ${line}: ${message}`,
    operation: "configure",
  });
}

function scalar(text: string, line: number): string {
  const single = /^'((?:[^']|'')*)'\s*(?:#.*)?$/.exec(text);
  if (single !== null) return single[1]!.replaceAll("''", "'");
  const double = /^"([^"\\]*)"\s*(?:#.*)?$/.exec(text);
  if (double !== null) return double[1]!;
  const plain = text.replace(/\s+#.*$/, "").trim();
  if (/^[[{&*!|>%@`"']/.test(plain)) refuse(line, "only plain and quoted values are supported");
  return plain;
}

/**
 * Reads a flat file of keys and values.
 * @throws {InvalidArgumentError} it is not flat, or a key comes twice
 */
export function parseFlatYaml(text: string): Map<string, string> {
  const values = new Map<string, string>();
  for (const [index, raw] of text.split(/\r?\n/).entries()) {
    const line = index + 1;
    if (/^\s*(#.*)?$/.test(raw) || (index === 0 && raw.trim() === "---")) continue;
    const entry = /^([A-Za-z_][\w.-]*)\s*:(?:\s+(.*))?$/.exec(raw);
    if (entry === null) refuse(line, "expected `key: value` without indentation");
    const key = entry[1]!;
    if (values.has(key)) refuse(line, `${key} is set twice`);
    values.set(key, scalar(entry[2] ?? "", line));
  }
  return values;
}
