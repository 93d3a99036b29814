// The Deno side of driver.py: one Python process with the published client, commands out, answers
// in, matched by id. Rule: a call that the client failed rejects with `PublishedClientError`, which
// carries the Python exception's class and attributes.

import { linesOf } from "../bench/worker.ts";

/** What a Python call raised. */
export class PublishedClientError extends Error {
  override readonly name = "PublishedClientError";
  readonly code = "published_client";

  constructor(
    /** Class name, such as `AuthError`. */
    readonly type: string,
    message: string,
    /** The exception's own `code`, `retry` and `detail`. */
    readonly felixCode: string | null,
    readonly retry: string | null,
    readonly detail: Readonly<Record<string, unknown>> | null,
  ) {
    super(`${type}: ${message}`);
  }
}

/** An event as the driver tells it. */
export interface DriverEvent {
  readonly payload: string;
  readonly offset: number | null;
  readonly stream: string;
}

interface Answer {
  readonly id: number;
  readonly result?: unknown;
  readonly error?: {
    readonly type: string;
    readonly message: string;
    readonly code: string | null;
    readonly retry: string | null;
    readonly detail: Record<string, unknown> | null;
  };
}

/** A running driver. */
export class PythonDriver implements AsyncDisposable {
  readonly #process: Deno.ChildProcess;
  readonly #input: WritableStreamDefaultWriter<Uint8Array>;
  readonly #waiting = new Map<number, PromiseWithResolvers<unknown>>();
  readonly #reading: Promise<void>;
  #nextId = 1;

  constructor(python: string) {
    const driver = new URL("./driver.py", import.meta.url).pathname;
    this.#process = new Deno.Command(python, {
      args: [driver],
      stdin: "piped",
      stdout: "piped",
      stderr: "inherit",
    }).spawn();
    this.#input = this.#process.stdin.getWriter();
    this.#reading = this.#read();
  }

  /** Runs `op`; resolves with its result. @throws {PublishedClientError} */
  async call<T>(op: string, args: Readonly<Record<string, unknown>> = {}): Promise<T> {
    const id = this.#nextId++;
    const waiting = Promise.withResolvers<unknown>();
    this.#waiting.set(id, waiting);
    const line = JSON.stringify({ ...args, id, op }) + "\n";
    await this.#input.write(new TextEncoder().encode(line));
    return await waiting.promise as T;
  }

  /** The failure of `op`; rejects when it succeeds. */
  async failure(
    op: string,
    args: Readonly<Record<string, unknown>> = {},
  ): Promise<PublishedClientError> {
    try {
      await this.call(op, args);
    } catch (error) {
      if (error instanceof PublishedClientError) return error;
      throw error;
    }
    throw new TypeError(`${op} succeeded`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#input.close().catch(() => {});
    await this.#process.status;
    await this.#reading;
  }

  async #read(): Promise<void> {
    for await (const line of linesOf(this.#process.stdout)) {
      const answer = JSON.parse(line) as Answer;
      const waiting = this.#waiting.get(answer.id);
      this.#waiting.delete(answer.id);
      if (answer.error === undefined) {
        waiting?.resolve(answer.result);
        continue;
      }
      const { type, message, code, retry, detail } = answer.error;
      waiting?.reject(new PublishedClientError(type, message, code, retry, detail));
    }
    for (const waiting of this.#waiting.values()) waiting.reject(new TypeError("driver ended"));
    this.#waiting.clear();
  }
}

/** Bytes or text as the driver takes them. */
export function base64(data: string | Uint8Array): string {
  return (typeof data === "string" ? new TextEncoder().encode(data) : data).toBase64();
}

/** The text that a driver's bytes are. */
export function textOf(data: string | null): string | null {
  return data === null ? null : new TextDecoder().decode(Uint8Array.fromBase64(data));
}
