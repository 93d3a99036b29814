// Log lines: their form, their filter, and that secrets never reach one.

import { assertEquals } from "@std/assert";
import { createBrokerLog, lineWriter } from "./create_log.ts";
import type { BrokerLog } from "./broker_log.ts";
import { filterFromRustLog, levelOf, parseLogFilter } from "./filter.ts";
import { jsonLine, textLine } from "./format.ts";
import { LogGate } from "./log_gate.ts";

function capture(filter: string, format: "json" | "text" = "json"): [BrokerLog, string[]] {
  const lines: string[] = [];
  const log = createBrokerLog({ filter, format, write: (line) => lines.push(line) });
  return [log, lines];
}

Deno.test("a JSON line has its fields in order and exactly one line break", () => {
  const [log, lines] = capture("info");
  log.info("broker started", { version: "1", shard: 3, offset: 9_007_199_254_740_993n });
  const line = JSON.parse(lines[0]!);
  assertEquals(Object.keys(line), [
    "ts",
    "level",
    "component",
    "msg",
    "version",
    "shard",
    "offset",
  ]);
  assertEquals(line.level, "info");
  assertEquals(line.component, "broker");
  assertEquals(line.msg, "broker started");
  assertEquals(line.offset, "9007199254740993");
  assertEquals(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(line.ts), true);
  assertEquals(lines[0]!.split("\n").length, 2);
});

Deno.test("text that looks like a template stays what it is", () => {
  const [log, lines] = capture("info");
  log.warn("a {b} c", { b: "x" });
  assertEquals(JSON.parse(lines[0]!).msg, "a {b} c");
});

Deno.test("levels per component; the longest name wins", () => {
  const [log, lines] = capture("warn,broker.publish=debug,broker.publish.lane=off");
  const publish = log.child("publish");
  log.info("no");
  log.warn("yes 1");
  publish.debug("yes 2");
  publish.trace("no");
  publish.child("lane").error("no");
  publish.child("other").debug("yes 3");
  assertEquals(lines.map((line) => JSON.parse(line).msg), ["yes 1", "yes 2", "yes 3"]);
  assertEquals([log.enabled("info"), publish.enabled("debug")], [false, true]);
});

Deno.test("filters are parsed strictly", () => {
  for (const text of ["", "loud", "info,", "broker=", "Broker=info", "broker=loud", "a b=info"]) {
    assertEquals("problem" in parseLogFilter(text), true, text);
  }
  const filter = parseLogFilter("DEBUG, wire = warn");
  if ("problem" in filter) throw new Error(filter.problem);
  assertEquals([levelOf(filter, "wire.frames"), levelOf(filter, "wired")], ["warn", "debug"]);
});

Deno.test("RUST_LOG is mapped as far as it means something here", () => {
  assertEquals(filterFromRustLog("info"), "info");
  assertEquals(filterFromRustLog("felix_storage=debug,hyper=warn"), "storage=debug");
  assertEquals(filterFromRustLog("felix_broker"), "broker=trace");
  assertEquals(filterFromRustLog("felix_controlplane_raft=warn"), "controlplane=warn");
  assertEquals(filterFromRustLog("hyper=warn,[span]=x"), null);
});

const TOKEN = `${btoa('{"alg":"EdDSA"}').replaceAll("=", "")}.eyJ4IjoxfQ.c2ln`;

Deno.test("secrets never reach a line", () => {
  const event = {
    wallMs: 0,
    level: "warn",
    component: "broker.auth",
    msg: "m",
    fields: {
      token: "abc",
      refresh_token: "abc",
      authorization: "Bearer abc",
      note: `got ${TOKEN} here`,
      url: "https://user:pass@host/x",
      error: new Error(`bad ${TOKEN}`, { cause: new Error("http://u:p@h/") }),
      nested: { password: "abc", list: [TOKEN] },
      payload: new Uint8Array(3),
      token_file: "/state/token",
      skipped: undefined,
    },
  } as const;
  for (const line of [jsonLine(event), textLine(event)]) {
    for (const secret of [TOKEN, "abc", "user:pass", "u:p@"]) {
      assertEquals(line.includes(secret), false, `${secret} in ${line}`);
    }
    assertEquals(line.includes("/state/token"), true);
    assertEquals(line.includes("<3 bytes>"), true);
  }
});

Deno.test("a text line is one line, its values quoted where needed", () => {
  const line = textLine({
    wallMs: 0,
    level: "info",
    component: "broker",
    msg: "m",
    fields: { a: "x y", b: 1, c: "d\ne", d: ["p", "q"], e: "plain" },
  });
  assertEquals(
    line,
    "1970-01-01T00:00:00.000Z info  broker   m " +
      'a="x y" b=1 c="d\\ne" d="[\\"p\\",\\"q\\"]" e=plain\n',
  );
});

Deno.test("a gate opens once per interval and counts what it held back", () => {
  const gate = new LogGate();
  assertEquals(gate.open(0), true);
  assertEquals([gate.open(1), gate.open(9_999)], [false, false]);
  assertEquals(gate.open(10_000), true);
  assertEquals([gate.takeSuppressed(), gate.takeSuppressed()], [2, 0]);
});

Deno.test("a writer takes short writes and outlives its reader", () => {
  const written: number[] = [];
  let broken = false;
  const write = lineWriter({
    writeSync: (bytes) => {
      if (broken) throw new Deno.errors.BrokenPipe("gone");
      const taken = Math.min(2, bytes.length);
      written.push(...bytes.subarray(0, taken));
      return taken;
    },
  });
  write("hello\n");
  assertEquals(new TextDecoder().decode(Uint8Array.from(written)), "hello\n");
  broken = true;
  write("lost\n");
});
