// The child's side of a load or server process: JSON lines in on stdin, JSON lines out on stdout.
// Rule: one answer per command, in order, and the process ends when stdin does, so that no child
// outlives the harness.

import type { Cell, LoadCommand, LoadResult, Target } from "./cell.ts";

/** A prepared measurement: connected, warmed up, ready to be timed. */
export interface PreparedLoad {
  /** The measured run. */
  run(): Promise<LoadResult>;
  /** Disconnects. */
  finish(): Promise<void>;
}

/** Writes one JSON line. */
export function sendLine(value: unknown): void {
  const bytes = new TextEncoder().encode(JSON.stringify(value) + "\n");
  let written = 0;
  while (written < bytes.length) written += Deno.stdout.writeSync(bytes.subarray(written));
}

/** The lines of a byte stream, without their ends. */
export async function* linesOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  let rest = "";
  for await (const text of stream.pipeThrough(new TextDecoderStream() as TextDecoderPair)) {
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    yield* lines;
  }
  if (rest !== "") yield rest;
}

/** `TextDecoderStream` with the input type that byte streams have. */
type TextDecoderPair = ReadableWritablePair<string, Uint8Array>;

/** Serves `prepare`, `run` and `finish` until stdin ends, then ends the process. */
export async function serveLoad(
  prepare: (cell: Cell, target: Target) => Promise<PreparedLoad>,
): Promise<void> {
  let prepared: PreparedLoad | null = null;
  sendLine({ ready: true });
  for await (const line of linesOf(Deno.stdin.readable)) {
    if (line === "") continue;
    const command = JSON.parse(line) as LoadCommand;
    try {
      if (command.op === "prepare") {
        prepared = await prepare(command.cell, command.target);
        sendLine({ ok: true });
      } else if (command.op === "run") {
        sendLine(await requirePrepared(prepared).run());
      } else {
        await prepared?.finish();
        prepared = null;
        sendLine({ ok: true });
      }
    } catch (error) {
      sendLine({ error: String(error instanceof Error ? error.stack ?? error.message : error) });
    }
  }
  Deno.exit(0);
}

/** Keeps a server process alive until stdin ends, then ends it. */
export async function untilStdinEnds(): Promise<never> {
  for await (const _ of Deno.stdin.readable) { /* nothing is said to servers */ }
  Deno.exit(0);
}

function requirePrepared(prepared: PreparedLoad | null): PreparedLoad {
  if (prepared === null) throw new TypeError("run before prepare");
  return prepared;
}
