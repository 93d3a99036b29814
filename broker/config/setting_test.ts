// Parsers of single values: what they take, what they refuse, and that no text breaks them.

import { assertEquals } from "@std/assert";
import fc from "fast-check";
import { formatAddress, parseValue } from "./setting.ts";
import type { SettingKind } from "./setting.ts";

const BYTES: SettingKind = { type: "bytes", min: 0, max: 2 ** 40 };

Deno.test("numbers and sizes", () => {
  const value = (text: string, units: boolean): unknown => {
    const parsed = parseValue(BYTES, text, units);
    return "value" in parsed ? parsed.value : "refused";
  };
  assertEquals(value("1_000", false), 1000);
  assertEquals(value("64KiB", true), 65_536);
  assertEquals(value("1_0 MiB", true), 10_485_760);
  assertEquals(value("1 GiB", true), 2 ** 30);
  for (const text of ["", " 1", "1 ", "+1", "1.5", "0x10", "1e3", "_1", "1_", "1__0", "1 MB"]) {
    assertEquals(value(text, true), "refused", JSON.stringify(text));
  }
  assertEquals(value("2048 GiB", true), "refused");
  assertEquals(value("-1", true), "refused");
});

Deno.test("an address is printed as it is parsed", () => {
  for (const text of ["0.0.0.0:5000", "127.0.0.1:0", "[::]:65535", "[2001:db8::1]:1"]) {
    const parsed = parseValue({ type: "address" }, text, false);
    if (!("value" in parsed) || typeof parsed.value !== "object" || parsed.value === null) {
      throw new Error(text);
    }
    assertEquals(formatAddress(parsed.value), text);
  }
  for (const text of [":5000", "::1:5000", "[1.2.3.4]:5", "1.2.3:5", "1.2.3.4", "[::g]:5", "a:1"]) {
    assertEquals("problem" in parseValue({ type: "address" }, text, false), true, text);
  }
});

Deno.test("no text makes a parser throw or answer a multi-line problem", () => {
  const kinds: SettingKind[] = [
    BYTES,
    { type: "boolean" },
    { type: "address" },
    { type: "host_port" },
    { type: "path" },
    { type: "url" },
    { type: "log_filter" },
    { type: "choice", values: ["a"] },
  ];
  fc.assert(fc.property(fc.string({ unit: "binary" }), fc.constantFrom(...kinds), (text, kind) => {
    const parsed = parseValue(kind, text, true);
    if ("problem" in parsed) assertEquals(parsed.problem.includes("\n"), false);
  }));
});
