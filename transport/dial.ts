// From a host name to a connection: looks the name up without blocking the event loop, and tries
// its addresses so that a dead one costs a quarter of a second and not a handshake timeout (in the
// manner of RFC 8305). Rule: one connection comes out, every other attempt is given up.

import { lookup } from "node:dns/promises";
import { isIpLiteral } from "./address.ts";
import { messageOf } from "./ended.ts";
import { type Connection, type ConnectOptions, TransportError } from "./transport.ts";

/** Dials `options.hostname`, which is an IP literal. */
export type DialAddress = (options: ConnectOptions) => Promise<Connection>;

/** Milliseconds that an address is tried alone. */
const STAGGER_MS = 250;

/**
 * Dials a host by name or address; certificates are checked for the name.
 *
 * @throws {TransportError} `dial_failed` where the name has no address, else what the last address
 * that failed failed with
 */
export async function dialHost(options: ConnectOptions, dial: DialAddress): Promise<Connection> {
  if (isIpLiteral(options.hostname)) return await dial(options);
  const serverName = options.serverName ?? options.hostname;
  const addresses = await resolve(options.hostname);
  if (addresses.length === 1) {
    return await dial({ ...options, serverName, hostname: addresses[0]! });
  }
  return await firstOf(addresses, (hostname, signal) => {
    const both = options.signal === undefined ? signal : AbortSignal.any([options.signal, signal]);
    return dial({ ...options, serverName, hostname, signal: both });
  });
}

/** All addresses of `hostname`, IPv4 first: brokers bind `0.0.0.0` more often than `::`. */
async function resolve(hostname: string): Promise<string[]> {
  let found: { readonly address: string; readonly family: number }[];
  try {
    found = await lookup(hostname, { all: true });
  } catch (error) {
    const message = `${hostname}: ${messageOf(error)}`;
    throw new TransportError("dial_failed", message, 0, { cause: error });
  }
  const addresses = found.toSorted((a, b) => a.family - b.family).map(({ address }) => address);
  if (addresses.length === 0) throw new TransportError("dial_failed", `${hostname}: no address`);
  return [...new Set(addresses)];
}

/** Tries `addresses` in order, each after the one before failed or took `STAGGER_MS`. */
export function firstOf(
  addresses: readonly string[],
  dial: (address: string, signal: AbortSignal) => Promise<Connection>,
): Promise<Connection> {
  return new Promise((resolve, reject) => {
    const attempts = new Set<AbortController>();
    let next = 0;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let settled = false;
    const tryNext = (): void => {
      clearTimeout(timer);
      const address = addresses[next++];
      if (address === undefined || settled) return;
      const attempt = new AbortController();
      attempts.add(attempt);
      if (next < addresses.length) timer = setTimeout(tryNext, STAGGER_MS);
      dial(address, attempt.signal).then((connection) => {
        attempts.delete(attempt);
        if (settled) return connection.close();
        settled = true;
        clearTimeout(timer);
        for (const other of attempts) other.abort();
        resolve(connection);
      }, (error) => {
        attempts.delete(attempt);
        if (settled) return;
        // A host that answers and is not the right one is an answer: no other address is better.
        const final = error instanceof TransportError && error.code === "handshake_failed";
        if (!final && next < addresses.length) return tryNext();
        if (!final && attempts.size > 0) return;
        settled = true;
        clearTimeout(timer);
        for (const other of attempts) other.abort();
        reject(error);
      });
    };
    tryNext();
  });
}
