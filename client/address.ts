// Broker addresses: `host:port`, `[v6]:port`, a bare host (port 5000), several separated by commas.
// An address that is not understood is refused, never guessed at.

import { InvalidArgumentError } from "./failure/classes.ts";

/** Port of a broker's client listener unless an address says otherwise. */
export const DEFAULT_PORT = 5000;

/** A broker address taken apart. */
export interface BrokerAddress {
  /** Name or IP literal, an IPv6 one without brackets. */
  readonly host: string;
  /** UDP port, 1 to 65535. */
  readonly port: number;
  /** Canonical form: `host:port` or `[v6]:port`. */
  readonly text: string;
}

/** Joins a host and a port into the canonical form. */
export function formatAddress(host: string, port: number): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}

/** Whether `host` is an IPv4 or IPv6 literal. */
export function isIpLiteral(host: string): boolean {
  return host.includes(":") || /^\d{1,3}(\.\d{1,3}){3}$/.test(host);
}

function refuse(text: string): never {
  throw new InvalidArgumentError({
    message: `not a broker address: ${JSON.stringify(text)} (expected host:port)`,
    operation: "connect",
  });
}

function readPort(digits: string, whole: string): number {
  if (!/^\d{1,5}$/.test(digits)) refuse(whole);
  const port = Number(digits);
  if (port < 1 || port > 65535) refuse(whole);
  return port;
}

/**
 * Takes one address apart.
 * @throws {InvalidArgumentError}
 */
export function parseAddress(text: string): BrokerAddress {
  const trimmed = text.trim();
  const bracketed = /^\[([0-9a-fA-F:.]+(?:%[\w.]+)?)\](?::(.*))?$/.exec(trimmed);
  if (bracketed !== null) {
    const host = bracketed[1]!;
    if (!host.includes(":")) refuse(text);
    const port = bracketed[2] === undefined ? DEFAULT_PORT : readPort(bracketed[2], text);
    return { host, port, text: formatAddress(host, port) };
  }
  const colon = trimmed.indexOf(":");
  if (colon >= 0 && trimmed.indexOf(":", colon + 1) >= 0) {
    // Two colons and no brackets: an IPv6 literal without a port.
    if (!/^[0-9a-fA-F:.]+$/.test(trimmed)) refuse(text);
    return { host: trimmed, port: DEFAULT_PORT, text: formatAddress(trimmed, DEFAULT_PORT) };
  }
  const host = colon < 0 ? trimmed : trimmed.slice(0, colon);
  if (!/^[A-Za-z0-9_.-]+$/.test(host)) refuse(text);
  const port = colon < 0 ? DEFAULT_PORT : readPort(trimmed.slice(colon + 1), text);
  return { host, port, text: formatAddress(host, port) };
}

/**
 * Takes a list apart; duplicates are dropped, order is kept.
 * @throws {InvalidArgumentError} when it is empty or one entry is not an address
 */
export function parseAddresses(input: string | readonly string[]): BrokerAddress[] {
  const texts = typeof input === "string" ? input.split(",") : input.flatMap((t) => t.split(","));
  const seen = new Map<string, BrokerAddress>();
  for (const text of texts) {
    const address = parseAddress(text);
    if (!seen.has(address.text)) seen.set(address.text, address);
  }
  if (seen.size === 0) refuse("");
  return [...seen.values()];
}

/** Address told by a broker; `null` when it cannot be dialled (no port). */
export function parseToldAddress(text: string | undefined | null): BrokerAddress | null {
  if (text === undefined || text === null || !/:\d+$/.test(text)) return null;
  try {
    return parseAddress(text);
  } catch {
    return null;
  }
}
