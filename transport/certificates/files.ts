// The few file operations that certificates need. Rules: a file is written beside its place and
// renamed, so that a reader sees the old or the new one whole; its mode is set before it holds
// anything; a lock on the directory is the operating system's and ends with the process.

import { join } from "node:path";

/** The text of `path`, or `null` where there is no such file. */
export async function readIfThere(path: string): Promise<string | null> {
  try {
    return await Deno.readTextFile(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return null;
    throw error;
  }
}

/** Puts `text` at `path` with `mode`, atomically and flushed to disk. */
export async function writeWhole(path: string, text: string, mode: number): Promise<void> {
  const temporary = `${path}.${crypto.randomUUID()}.tmp`;
  const file = await Deno.open(temporary, { write: true, createNew: true, mode });
  try {
    const bytes = new TextEncoder().encode(text);
    for (let at = 0; at < bytes.byteLength;) at += await file.write(bytes.subarray(at));
    await file.syncData();
    file.close();
    await Deno.rename(temporary, path);
  } catch (error) {
    try {
      file.close();
    } catch {
      // closed above
    }
    await Deno.remove(temporary).catch(() => {});
    throw error;
  }
}

/** Makes `directory` (mode 0700) and runs `work` while holding its lock file. */
export async function withLock<T>(directory: string, work: () => Promise<T>): Promise<T> {
  await Deno.mkdir(directory, { recursive: true, mode: 0o700 });
  const lock = await Deno.open(join(directory, ".lock"), {
    write: true,
    create: true,
    mode: 0o600,
  });
  try {
    await lock.lock(true);
    return await work();
  } finally {
    lock.close();
  }
}
