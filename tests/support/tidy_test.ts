// House style: every rule refuses its bad example and lets its good one pass, and this repository
// breaks none of them.

import { assertEquals } from "@std/assert";
import { repositoryFiles } from "./repository.ts";
import { checkDoors, checkPublicDocs, exportedDeclarations } from "./tidy_docs.ts";
import {
  checkConsole,
  checkFunctions,
  checkMachineText,
  checkMarkers,
  checkOpening,
  checkRoomHabits,
  checkSizes,
  checkSkips,
  TIDY_RULES,
  type TidyRule,
} from "./tidy.ts";

const opening = "// What it owns\n// and the rule it keeps.\n\n";

function check(rule: TidyRule, path: string, text: string): string[] {
  return rule({ path, text });
}

Deno.test("a file of 400 lines and lines of 100 columns pass, one more does not", () => {
  assertEquals(check(checkSizes, "wire/a.ts", "x\n".repeat(400)), []);
  assertEquals(check(checkSizes, "wire/a.ts", "x\n".repeat(401)), [
    "wire/a.ts: 401 lines; at most 400",
  ]);
  assertEquals(check(checkSizes, "wire/a.ts", `${"é".repeat(100)}\n`), []);
  assertEquals(check(checkSizes, "wire/a.ts", `\n${"x".repeat(101)}\n`), [
    "wire/a.ts:2: 101 columns; at most 100",
  ]);
});

Deno.test("a function or method of 70 lines passes, one more does not", () => {
  const body = (lines: number): string => "  x();\n".repeat(lines);
  assertEquals(check(checkFunctions, "a.ts", `function a(): void {\n${body(68)}}\n`), []);
  assertEquals(check(checkFunctions, "a.ts", `\nfunction a(b: { c: 1 }): void {\n${body(69)}}\n`), [
    "a.ts:2: a has 71 lines; at most 70",
  ]);
  const method = `class A {\n  async #run(\n    b: string,\n  ): Promise<void> {\n${
    body(90)
  }  }\n}`;
  assertEquals(check(checkFunctions, "a.ts", method), [
    "a.ts:2: #run has 94 lines; at most 70",
  ]);
  assertEquals(check(checkFunctions, "a.ts", `for (const a of b) {\n${body(90)}}\n`), []);
});

Deno.test("a file opens with one to six lines of comment", () => {
  assertEquals(check(checkOpening, "wire/a.ts", `${opening}const a = 1;\n`), []);
  assertEquals(check(checkOpening, "wire/a.ts", "// One line.\n\n"), []);
  assertEquals(check(checkOpening, "wire/mod.ts", "/**\n * A door.\n * @module\n */\n"), []);
  assertEquals(check(checkOpening, "wire/a.ts", "const a = 1;\n"), [
    "wire/a.ts: no opening comment",
  ]);
  assertEquals(check(checkOpening, "wire/a.ts", `${"// Long.\n".repeat(7)}\n`), [
    "wire/a.ts: the opening comment has 7 lines; at most 6",
  ]);
});

Deno.test("leftover markers are found in comments, not in strings or code", () => {
  const marker = ["TO", "DO"].join("");
  assertEquals(check(checkMarkers, "a.ts", `const a = "${marker}";\n`), []);
  assertEquals(check(checkMarkers, "a.ts", `let a;\n/*\n * ${marker}: later\n */\n`), [
    `a.ts:3: leftover marker ${marker}`,
  ]);
});

Deno.test("a test is never singled out, and skipped only with a reason", () => {
  assertEquals(check(checkSkips, "a_test.ts", 'Deno.test.only("a", () => {});\n'), [
    "a_test.ts:1: a test is singled out with `only`",
  ]);
  assertEquals(check(checkSkips, "a_test.ts", "Deno.test({\n  ignore: true,\n});\n"), [
    "a_test.ts:2: a test is skipped without a reason",
  ]);
  const reasoned = "Deno.test({\n  // No UDP here.\n  ignore: !udp,\n});\n";
  assertEquals(check(checkSkips, "a_test.ts", reasoned), []);
});

Deno.test("console belongs to entry points", () => {
  const text = "console.log(1);\n";
  assertEquals(check(checkConsole, "broker/server/a.ts", text), [
    "broker/server/a.ts:1: console.log outside an entry point",
  ]);
  assertEquals(check(checkConsole, "broker/server/a.ts", "// console.log(1)\n"), []);
  for (const path of ["broker/main.ts", "client/cli/a.ts", "examples/a.ts", "tests/bench/a.ts"]) {
    assertEquals(check(checkConsole, path, text), []);
  }
});

Deno.test("text that holds on one machine only is refused", () => {
  const path = ["", "home", "someone", "felix"].join("/");
  const host = ["registry", "npmjs", "org"].join(".");
  assertEquals(check(checkMachineText, "docs/a.md", `See ${path}.\nFrom ${host}.\n`), [
    `docs/a.md:1: machine path ${path}.`,
    `docs/a.md:2: registry host ${host}`,
  ]);
  assertEquals(check(checkMachineText, "docs/a.md", "/var/lib/felix ./work/a tests/work/b\n"), []);
});

Deno.test("rooms have no default exports and no bare errors", () => {
  assertEquals(check(checkRoomHabits, "wire/a.ts", 'throw new Error("no");\n'), [
    "wire/a.ts:1: bare Error; a failure has a typed class",
  ]);
  assertEquals(check(checkRoomHabits, "wire/a.ts", "export default 1;\n"), [
    "wire/a.ts:1: default export",
  ]);
  assertEquals(check(checkRoomHabits, "wire/a_test.ts", 'throw new Error("no");\n'), []);
});

Deno.test("a public symbol has docs, wherever the door finds it", () => {
  const files = [
    { path: "wire/mod.ts", text: 'export * from "./a.ts";\nexport { d } from "./b.ts";\n' },
    { path: "wire/a.ts", text: "/** Yes. */\nexport const a = 1;\n\nexport const b = 2;\n" },
    { path: "wire/b.ts", text: "// No.\nexport const d = 1;\nexport const hidden = 2;\n" },
  ];
  assertEquals(checkPublicDocs(files), [
    "wire/a.ts:4: b has no docs",
    "wire/b.ts:2: d has no docs",
  ]);
});

Deno.test("one documented overload documents a function", () => {
  const text = "/** Yes. */\nexport function f(a: 1): 1;\nexport function f(a: 2): 2;\n";
  assertEquals(exportedDeclarations(text).every((entry) => entry.documented), true);
});

Deno.test("a door only re-exports", () => {
  const good = '// Door.\nexport type { A } from "./a.ts";\nexport * from "./b.ts";\n';
  assertEquals(checkDoors([{ path: "wire/mod.ts", text: good }]), []);
  assertEquals(checkDoors([{ path: "wire/mod.ts", text: "export const a = 1;\n" }]), [
    "wire/mod.ts: a door only re-exports, found: export const a = 1;",
  ]);
});

for (const rule of TIDY_RULES) {
  Deno.test(`this repository passes ${rule.name}`, async () => {
    assertEquals((await repositoryFiles()).flatMap(rule), []);
  });
}

Deno.test("every public symbol of this repository has docs", async () => {
  assertEquals(checkPublicDocs(await repositoryFiles()), []);
});

Deno.test("every door of this repository only re-exports", async () => {
  assertEquals(checkDoors(await repositoryFiles()), []);
});
