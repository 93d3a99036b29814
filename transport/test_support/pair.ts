// A listener with one connection to it, torn down whole; and small helpers to move bytes. Rule: a
// wait in a test polls with a generous deadline and never depends on speed.

import { assert, assertInstanceOf, fail } from "@std/assert";
import { nativeTransport, quicheTransport, TransportError } from "../mod.ts";
import type {
  CommonOptions,
  Connection,
  ConnectOptions,
  Listener,
  ListenOptions,
  ReceiveStream,
  Transport,
} from "../mod.ts";
import { certificates } from "./certificates.ts";

/** Both engines; the contract holds for each. */
export const ENGINES: readonly Transport[] = [nativeTransport, quicheTransport];

/** Registers one test per engine, with the leak sanitizers on. */
export function eachEngine(name: string, fn: (transport: Transport) => Promise<void>): void {
  for (const transport of ENGINES) {
    Deno.test({
      name: `${transport.name}: ${name}`,
      sanitizeOps: true,
      sanitizeResources: true,
      fn: () => fn(transport),
    });
  }
}

/** A listener on a free port of loopback with the test certificate. */
export function listen(
  transport: Transport,
  options: Partial<ListenOptions> = {},
): Promise<Listener> {
  return transport.listen({
    hostname: "127.0.0.1",
    port: 0,
    cert: certificates.server.cert,
    key: certificates.server.key,
    ...options,
  });
}

/** Dials `port` on loopback, trusting the test authority. */
export function connect(
  transport: Transport,
  port: number,
  options: Partial<ConnectOptions> = {},
): Promise<Connection> {
  return transport.connect({
    hostname: "127.0.0.1",
    port,
    serverName: "localhost",
    caCerts: [certificates.authority.cert],
    ...options,
  });
}

/** Accepts the next connection. */
export async function acceptOne(listener: Listener): Promise<Connection> {
  const incoming = await listener.accept();
  assert(incoming !== null, "the listener is closed");
  return await incoming.accept();
}

/** Both ends of one connection. */
export interface Pair {
  readonly transport: Transport;
  readonly listener: Listener;
  readonly client: Connection;
  readonly server: Connection;
}

/** Options of the two ends. */
export interface PairOptions {
  readonly server?: Partial<ListenOptions> & CommonOptions;
  readonly client?: Partial<ConnectOptions> & CommonOptions;
}

/** Runs `fn` with a fresh connection and closes everything afterwards. */
export async function withPair(
  transport: Transport,
  fn: (pair: Pair) => Promise<void>,
  options: PairOptions = {},
): Promise<void> {
  const listener = await listen(transport, options.server);
  try {
    const [server, client] = await Promise.all([
      acceptOne(listener),
      connect(transport, listener.port, options.client),
    ]);
    try {
      await fn({ transport, listener, client, server });
    } finally {
      client.close();
      await client.closed;
    }
  } finally {
    await listener.close();
  }
}

/** Reads to the end. */
export async function readAll(stream: ReceiveStream, bufferBytes = 16_384): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let buffer = new Uint8Array(bufferBytes);
  for (;;) {
    const view = await stream.read(buffer);
    if (view === null) break;
    chunks.push(view.slice());
    buffer = new Uint8Array(view.buffer);
  }
  return await new Blob(chunks as Uint8Array<ArrayBuffer>[]).bytes();
}

/** Reads exactly `count` bytes. */
export async function readExactly(stream: ReceiveStream, count: number): Promise<Uint8Array> {
  const bytes = new Uint8Array(count);
  for (let at = 0; at < count;) {
    const view = await stream.read(new Uint8Array(count - at));
    assert(view !== null, `ended after ${at} of ${count} bytes`);
    bytes.set(view, at);
    at += view.byteLength;
  }
  return bytes;
}

/** `length` bytes that differ from place to place and from seed to seed. */
export function pattern(length: number, seed = 1): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(length);
  let state = (seed * 2654435761) >>> 0;
  for (let index = 0; index < length; index++) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    bytes[index] = state >>> 24;
  }
  return bytes;
}

/** Text as bytes. */
export function bytesOf(text: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(text);
}

/** Bytes as text. */
export function textOf(bytes: Uint8Array | null): string {
  return bytes === null ? "(end)" : new TextDecoder().decode(bytes);
}

/** Waits until `done()` holds, or fails after `deadlineMs`. */
export async function until(
  done: () => boolean | Promise<boolean>,
  what: string,
  deadlineMs = 20_000,
): Promise<void> {
  const start = performance.now();
  while (!await done()) {
    assert(performance.now() - start < deadlineMs, `gave up waiting: ${what}`);
    await pause(5);
  }
}

/** Resolves after `ms`. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** The error that `promise` rejects with. */
export async function failureOf(promise: Promise<unknown>): Promise<TransportError> {
  try {
    await promise;
  } catch (error) {
    assertInstanceOf(error, TransportError);
    return error;
  }
  return fail("expected a rejection");
}
