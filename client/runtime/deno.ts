// The only place that knows the runtime: files, environment, clock, timers that do not keep the
// process alive, and which QUIC engine is the default. Everything else uses web standards
// (spec/client.md §1).

import { nativeTransport } from "@felix/transport";
import type { Transport } from "@felix/transport";
import { UnsupportedError } from "../failure/classes.ts";

/**
 * The built-in QUIC engine.
 * @throws {UnsupportedError} `runtime_unsupported` where the runtime has no QUIC
 */
export function defaultTransport(): Transport {
  const api: unknown = (globalThis as { Deno?: { connectQuic?: unknown } }).Deno?.connectQuic;
  if (typeof api !== "function") {
    throw new UnsupportedError({
      message: 'QUIC is missing: run Deno with --unstable-net or put "unstable": ["net"] ' +
        "into deno.json",
      operation: "connect",
      feature: "Deno.connectQuic",
    }, "runtime_unsupported");
  }
  return nativeTransport;
}

/** Reads a text file; needs `--allow-read` for it. */
export function readTextFile(path: string | URL): Promise<string> {
  return Deno.readTextFile(path);
}

/** Reads a text file at once; needs `--allow-read` for it. */
export function readTextFileSync(path: string | URL): string {
  return Deno.readTextFileSync(path);
}

/** One variable of the environment; needs `--allow-env` for it. */
export function environmentVariable(name: string): string | undefined {
  return Deno.env.get(name);
}

/** Milliseconds since a fixed point that never go back. */
export function monotonicMs(): number {
  return performance.now();
}

/** Calls `run` once after `delayMs` without keeping the process alive; returns how to stop it. */
export function backgroundTimeout(run: () => void, delayMs: number): () => void {
  const id = setTimeout(run, delayMs);
  Deno.unrefTimer(id);
  return () => clearTimeout(id);
}

/** Calls `run` every `periodMs` without keeping the process alive; returns how to stop it. */
export function backgroundInterval(run: () => void, periodMs: number): () => void {
  const id = setInterval(run, periodMs);
  Deno.unrefTimer(id);
  return () => clearInterval(id);
}
