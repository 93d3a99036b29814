// Paths as the launcher needs them.

import { dirname as nodeDirname, resolve } from "node:path";
import { fileURLToPath } from "node:url";

/** Path of a file URL. */
export function fromFileUrl(url: URL): string {
  return fileURLToPath(url);
}

/** Absolute path of the directory that `path` is in. */
export function dirname(path: string): string {
  return nodeDirname(resolve(path));
}
