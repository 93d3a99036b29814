// Writes docs/configuration.md from the settings tables, so that the page cannot say anything else
// than the code does. A test compares the two; `FELIX_REGENERATE_DOCS=1` makes it write the page.

import type { Setting, SettingKind } from "./setting.ts";
import { SECTIONS } from "./table.ts";
import { TEST_ONLY_NAMES } from "./known_names.ts";

const INTRODUCTION = `<!-- deno-fmt-ignore-file -->

# Configuration of the broker

This page is generated from the settings tables in \`broker/config/\`.

A setting is looked up in this order, the first place that has it wins:

1. the command line: \`--set KEY=VALUE\`, by YAML key or variable name
2. the environment
3. the YAML file: \`--config PATH\`, else \`$FELIX_BROKER_CONFIG\`, else
   \`/usr/local/felix/config.yml\` if it is there
4. its default

\`--print-config\` prints the effective settings with the source of each and exits; \`--check\` does
the same without printing. Both bind nothing. A setting that is wrong ends the process with status 2
and one line that names it.

- An empty value counts as unset, and a key without a value in the file too.
- Booleans are \`1\`, \`true\`, \`yes\`, \`0\`, \`false\`, \`no\`, in any case.
- Whole numbers may have \`_\` between digits. Sizes are bytes; in the file also as \`64 MiB\`.
- A zero in the file leaves a size or count that cannot be zero as it was.
- An unknown key in the file is an error. An unknown \`FELIX_*\` variable is a warning.
- Dots in a key below are sections of the file: \`tls.cert\` is \`cert\` inside \`tls\`.

A broker needs the public keys that verify client tokens: \`FELIX_CONTROLPLANE_URL\`,
\`FELIX_JWKS_FILE\` or \`FELIX_JWKS_URL\`. What it serves is in \`FELIX_CATALOG_FILE\`:

\`\`\`yaml
tenants:
  - id: t1
    namespaces:
      - name: default
        streams:
          - { name: events } # shards: 1, routing: modulo, durable: false
          - { name: wide, shards: 8, routing: jump_hash }
        caches:
          - { name: sessions, shards: 8 }
\`\`\`

\`shards\` is 1 to 1024, \`routing\` is \`modulo\` or \`jump_hash\`, and \`durable: true\` needs
\`FELIX_DURABLE_STORAGE_DIR\`. On SIGHUP the file is read again: what is new is
added, what is gone is removed, and a changed shard count, routing or durability is refused and
logged.
`;

const NOTES: Readonly<Record<string, string>> = {
  "Refused in this build": "Setting one of these ends the start with status 2.",
  "Accepted, not applied":
    "Validated and named once at start; this runtime has no lever that they could move.",
  "Of features that this build does not have": "Validated and named once at start.",
};

/** The whole page. */
export function configurationPage(): string {
  const parts = [INTRODUCTION];
  for (const { title, settings } of SECTIONS) {
    const note = NOTES[title];
    parts.push(`## ${title}\n${note === undefined ? "" : `\n${note}\n`}`);
    parts.push(settings[0]!.summary === "" ? shortTable(settings) : longTable(settings));
  }
  const names = TEST_ONLY_NAMES.map((name) => `\`${name}\``).join(", ");
  parts.push(`## For tests only\n\nA start with one of these warns: ${names}.\n`);
  return parts.join("\n");
}

function longTable(settings: readonly Setting[]): string {
  const rows = settings.map((setting) => {
    const refusal = setting.refusal === undefined ? "" : ` Refused: ${setting.refusal}.`;
    return `| ${nameCell(setting)} | ${keyCell(setting)} | ${kindCell(setting.kind)} | ` +
      `${defaultCell(setting)} | ${setting.summary}${refusal} |\n`;
  });
  return `| Variable | Key | Value | Default | Meaning |\n|---|---|---|---|---|\n${rows.join("")}`;
}

function shortTable(settings: readonly Setting[]): string {
  const rows = settings.map((setting) =>
    `| ${nameCell(setting)} | ${keyCell(setting)} | ${kindCell(setting.kind)} | ` +
    `${defaultCell(setting)} |\n`
  );
  return `| Variable | Key | Value | Default |\n|---|---|---|---|\n${rows.join("")}`;
}

function nameCell(setting: Setting): string {
  const aliases = [...setting.preferredAliases ?? [], ...setting.aliases ?? []];
  const also = aliases.length === 0
    ? ""
    : `, or ${aliases.map((name) => `\`${name}\``).join(", ")}`;
  return `\`${setting.name}\`${also}`;
}

function keyCell(setting: Setting): string {
  return setting.key === undefined ? "" : `\`${setting.key}\``;
}

function defaultCell(setting: Setting): string {
  if (setting.default === null) return "unset";
  return setting.derive === undefined ? `\`${setting.default}\`` : setting.default;
}

function kindCell(kind: SettingKind): string {
  switch (kind.type) {
    case "integer":
      return range(kind.min, kind.max);
    case "bytes":
      return `bytes, ${range(kind.min, kind.max)}`;
    case "choice":
      return kind.values.map((value) => `\`${value}\``).join(", ");
    case "address":
      return "IP literal and port";
    case "host_port":
      return "host and port";
    case "log_filter":
      return "levels";
    case "boolean":
    case "path":
    case "text":
      return kind.type;
    case "url":
      return "URL";
  }
}

function range(min: number, max: number): string {
  return max >= 2 ** 31 - 1 ? `${min} or more` : `${min} to ${max}`;
}
