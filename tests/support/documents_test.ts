// What the documents say about this repository is true of it: links lead somewhere, tasks and
// settings exist, every dependency is told with the version that is used.

import { assertEquals } from "@std/assert";
import { REPOSITORY_ROOT, repositoryFiles } from "./repository.ts";

interface Manifest {
  readonly tasks?: Readonly<Record<string, unknown>>;
  readonly imports: Readonly<Record<string, string>>;
}

async function manifest(): Promise<Manifest> {
  return JSON.parse(await Deno.readTextFile(new URL("deno.json", REPOSITORY_ROOT))) as Manifest;
}

async function documents(): Promise<{ path: string; text: string }[]> {
  const files = await repositoryFiles();
  return files.filter(({ path }) => /^(?:docs\/)?[\w.-]+\.md$/.test(path));
}

async function exists(path: URL): Promise<boolean> {
  return await Deno.stat(path).then(() => true, () => false);
}

/** Relative link targets of a Markdown text, without their anchors. */
function linksIn(text: string): string[] {
  return [...text.matchAll(/\]\(([^)#\s]+)(?:#[^)]*)?\)/g)]
    .map((match) => match[1]!)
    .filter((target) => !/^[a-z]+:/.test(target));
}

/** Files and folders that a Markdown text names in backticks. */
function pathsIn(text: string): string[] {
  const rooms = "wire|transport|storage|raft|broker|controlplane|client|tests|docs|examples";
  const pattern = new RegExp("`((?:" + rooms + ")/[\\w./-]*(?:\\.\\w+|/))(?: [^`]*)?`", "g");
  return [...text.matchAll(pattern)].map((match) => match[1]!);
}

Deno.test("links and paths are found in Markdown", () => {
  const text = "[a](b.md#c) [d](https://example.org) `wire/x.ts` `deno task wire/` `wire/y/`";
  assertEquals(linksIn(text), ["b.md"]);
  assertEquals(pathsIn(text), ["wire/x.ts", "wire/y/"]);
});

Deno.test("every link of the documents leads somewhere", async () => {
  const broken: string[] = [];
  for (const { path, text } of await documents()) {
    for (const target of linksIn(text)) {
      if (!await exists(new URL(target, new URL(path, REPOSITORY_ROOT)))) {
        broken.push(`${path}: ${target}`);
      }
    }
  }
  assertEquals(broken, []);
});

Deno.test("every file that the documents name exists", async () => {
  const missing: string[] = [];
  for (const { path, text } of await documents()) {
    for (const named of pathsIn(text)) {
      if (!await exists(new URL(named, REPOSITORY_ROOT))) missing.push(`${path}: ${named}`);
    }
  }
  assertEquals(missing, []);
});

Deno.test("every task that the documents name exists", async () => {
  const { tasks = {} } = await manifest();
  const unknown = (await documents()).flatMap(({ path, text }) =>
    [...text.matchAll(/(?:deno|deno@[\d.]+) task (\w+)/g)]
      .filter((match) => !(match[1]! in tasks))
      .map((match) => `${path}: ${match[1]}`)
  );
  assertEquals(unknown, []);
});

Deno.test("docs/dependencies.md names every dependency with its version", async () => {
  const { imports } = await manifest();
  const text = await Deno.readTextFile(new URL("docs/dependencies.md", REPOSITORY_ROOT));
  const missing = Object.entries(imports).filter(([name, target]) => {
    const parent = name.replace(/^(@[^/]+\/[^/]+|[^@/][^/]*)\/.*$/, "$1");
    const version = /^npm:(?:@[^/]+\/)?[^@]+@([\d.]+)/.exec(target)?.[1] ?? "";
    return !text.includes(`\`${parent}\``) || !text.includes(version);
  });
  assertEquals(missing, []);
});
