// Host and port as text. Rules: an IPv6 literal wears brackets; an IPv4 address that a dual-stack
// socket reports in IPv6 form (`::ffff:1.2.3.4`) is shown as the IPv4 address it is.

import { isIP } from "node:net";

const MAPPED_IPV4 = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i;

/** `hostname` and `port` as `host:port`, `[host]:port` for IPv6. */
export function formatAddress(hostname: string, port: number): string {
  const plain = MAPPED_IPV4.exec(hostname)?.[1] ?? hostname;
  return plain.includes(":") ? `[${plain}]:${port}` : `${plain}:${port}`;
}

/** Whether `hostname` is an IP literal (no brackets). */
export function isIpLiteral(hostname: string): boolean {
  return isIP(hostname) !== 0;
}
