// The few file operations of the broker process, each with the answer that its caller needs.

import type { KeyFile } from "../auth/key_source.ts";

/** The text of a file, or `null` if there is none. Other failures are thrown. */
export function readFileOrNull(path: string): string | null {
  try {
    return Deno.readTextFileSync(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return null;
    throw error;
  }
}

/** Something that changes when the file does; `null`: there is no file to look at. */
export function fileVersion(path: string): string | null {
  try {
    const { mtime, size, ino } = Deno.statSync(path);
    return `${mtime?.getTime() ?? 0}:${size}:${ino ?? 0}`;
  } catch {
    return null;
  }
}

/** The key file as the token verifier looks at it. */
export const keyFile: KeyFile = {
  version: fileVersion,
  read: (path) => Deno.readTextFileSync(path),
};

/** Puts `text` at `path` in one step: a reader sees the old file or the new one. */
export function replaceFile(path: string, text: string, mode: number): void {
  const temporary = `${path}.${Deno.pid}.tmp`;
  Deno.writeTextFileSync(temporary, text, { mode });
  Deno.renameSync(temporary, path);
}
