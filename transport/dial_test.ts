// Dialling a host with several addresses, with connections that are made up.

import { assertEquals, assertRejects } from "@std/assert";
import { firstOf } from "./dial.ts";
import { type Connection, TransportError, type TransportErrorCode } from "./transport.ts";

/** A connection of which only `remoteAddress` and `close` are used. */
function made(address: string, closed: string[]): Connection {
  return { remoteAddress: address, close: () => closed.push(address) } as unknown as Connection;
}

function failing(code: TransportErrorCode): Promise<Connection> {
  return Promise.reject(new TransportError(code, code));
}

/** Never answers; rejects when given up. */
function silent(signal: AbortSignal, givenUp: () => void): Promise<Connection> {
  return new Promise((_, reject) => {
    signal.addEventListener("abort", () => {
      givenUp();
      reject(new TransportError("dial_failed", "given up"));
    });
  });
}

Deno.test("an address that fails at once gives way to the next", async () => {
  const connection = await firstOf(
    ["a", "b"],
    (address) => address === "a" ? failing("timeout") : Promise.resolve(made(address, [])),
  );
  assertEquals(connection.remoteAddress, "b");
});

Deno.test("a silent address gives way after a while and is given up", async () => {
  const givenUp: string[] = [];
  const connection = await firstOf(
    ["a", "b"],
    (address, signal) =>
      address === "a"
        ? silent(signal, () => givenUp.push("a"))
        : Promise.resolve(made(address, [])),
  );
  assertEquals(connection.remoteAddress, "b");
  assertEquals(givenUp, ["a"]);
});

Deno.test("a connection that comes too late is closed", async () => {
  const closed: string[] = [];
  let late: (connection: Connection) => void = () => {};
  await firstOf(
    ["a", "b"],
    (address) =>
      address === "a"
        ? new Promise((resolve) => late = resolve)
        : Promise.resolve(made(address, closed)),
  );
  late(made("a", closed));
  await Promise.resolve();
  await Promise.resolve();
  assertEquals(closed, ["a"]);
});

Deno.test("a failed handshake is final, other failures try the next address", async () => {
  const tried: string[] = [];
  const dial = (codes: Record<string, TransportErrorCode>) => (address: string) => {
    tried.push(address);
    return failing(codes[address]!);
  };
  const first = await assertRejects(
    () => firstOf(["a", "b"], dial({ a: "handshake_failed", b: "timeout" })),
    TransportError,
  );
  assertEquals([first.code, tried.splice(0)], ["handshake_failed", ["a"]]);
  const last = await assertRejects(
    () => firstOf(["a", "b"], dial({ a: "dial_failed", b: "timeout" })),
    TransportError,
  );
  assertEquals([last.code, tried], ["timeout", ["a", "b"]]);
});
