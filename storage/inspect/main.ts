// The command `felix log`, for a log on this machine and without a broker. It lives in this room,
// not with the client's command, because it reads the files themselves: a client must not know what
// storage is. Rule: the only file of the room that prints.

import process from "node:process";
import { RealDisk } from "../disk/real_disk.ts";
import { runCommand } from "./run_command.ts";

const OUTPUT_BUFFER_CHARACTERS = 64 * 1024;

/** A stream of text, written in large pieces. */
class Output {
  #pending = "";

  constructor(readonly stream: { writeSync(bytes: Uint8Array): number }) {}

  write(text: string): void {
    this.#pending += text;
    if (this.#pending.length >= OUTPUT_BUFFER_CHARACTERS) this.flush();
  }

  flush(): void {
    let bytes = new TextEncoder().encode(this.#pending);
    this.#pending = "";
    while (bytes.length > 0) bytes = bytes.subarray(this.stream.writeSync(bytes));
  }
}

async function main(): Promise<number> {
  const out = new Output(Deno.stdout);
  const err = new Output(Deno.stderr);
  const code = await runCommand({
    disk: new RealDisk(),
    nowMicros: () => Date.now() * 1000,
    // A task runs in the project's directory and says here where it was called.
    here: process.env.INIT_CWD ?? process.cwd(),
    owner: `felix log, pid ${process.pid}`,
    out: (text) => out.write(text),
    err: (text) => err.write(text),
  }, Deno.args);
  out.flush();
  err.flush();
  return code;
}

if (import.meta.main) {
  try {
    Deno.exit(await main());
  } catch (error) {
    // Whoever read the output has seen enough.
    if (!(error instanceof Deno.errors.BrokenPipe)) throw error;
    Deno.exit(0);
  }
}
