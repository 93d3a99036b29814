// The files of this repository as the checks see them: path and text of everything a person wrote.
// Generated, vendored and version-control folders are left out. Paths are relative, with `/`.

/** One file. */
export interface RepositoryFile {
  /** Path from the root of the repository, with `/`. */
  readonly path: string;
  /** Its text. */
  readonly text: string;
}

const SKIPPED_FOLDERS = new Set([
  ".git",
  ".felix",
  ".peers",
  ".venv",
  "__pycache__",
  "coverage",
  "node_modules",
  "vectors",
]);

const TEXT_FILE =
  /(?:\.(?:ts|js|mjs|py|sh|md|json|jsonc|yml|yaml|toml)|(?:^|\/)(?:run|LICENSE|\.gitignore))$/;

/** Root folder of the repository. */
export const REPOSITORY_ROOT: URL = new URL("../../", import.meta.url);

/** Whether a file is there for tests only: a test, or what tests beside it build on. */
export function isForTests(path: string): boolean {
  return /(?:_test|_fixture)\.ts$|\/(?:test_support|testing)\//.test(path);
}

async function* walk(folder: URL, prefix: string): AsyncGenerator<RepositoryFile> {
  const entries = await Array.fromAsync(Deno.readDir(folder));
  entries.sort((left, right) => (left.name < right.name ? -1 : 1));
  for (const { name, isDirectory, isFile } of entries) {
    const path = `${prefix}${name}`;
    if (isDirectory && !SKIPPED_FOLDERS.has(name)) {
      yield* walk(new URL(`${name}/`, folder), `${path}/`);
    } else if (isFile && TEXT_FILE.test(path) && name !== "deno.lock") {
      yield { path, text: await Deno.readTextFile(new URL(name, folder)) };
    }
  }
}

/** Every text file of the repository, in order of path. */
export async function repositoryFiles(): Promise<RepositoryFile[]> {
  return await Array.fromAsync(walk(REPOSITORY_ROOT, ""));
}
