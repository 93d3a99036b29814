// The scanner told apart what is code, comment, string, template and pattern.

import { assertEquals } from "@std/assert";
import { lineOf, moduleReferences, scanSource } from "./source_text.ts";

Deno.test("comments and insides of strings become blank and keep their place", () => {
  const text = `const a = "x // y"; // note\nconst b = 'it\\'s';\n`;
  const source = scanSource(text);
  assertEquals(
    source.code,
    `const a = "      ";        \nconst b = "     ";\n`.replace(`"     "`, `'     '`),
  );
  assertEquals(source.comments.map((comment) => comment.text), ["// note"]);
  assertEquals(source.strings.map((string) => string.value), ["x // y", "it\\'s"]);
});

Deno.test("a pattern with quotes and slashes is no string and no comment", () => {
  const source = scanSource('const p = /["/]\\/\\/x/g; const q = a / b / c; const r = "s";');
  assertEquals(source.comments, []);
  assertEquals(source.strings.map((string) => string.value), ["s"]);
  assertEquals(source.code.includes("a / b / c"), true);
});

Deno.test("code inside a template is code, the rest of the template is not", () => {
  const source = scanSource('const t = `a // b ${f({ k: "v" }, `in ${x}`)} c`; // end');
  assertEquals(source.strings.map((string) => string.value), ["v"]);
  assertEquals(source.comments.map((comment) => comment.text), ["// end"]);
  assertEquals(/f\(\{ k: "\s" \}/.test(source.code), true);
});

Deno.test("block comments keep their line breaks", () => {
  const source = scanSource("/* one\n two */\nlet a;");
  assertEquals(source.code.split("\n").length, 3);
  assertEquals(source.comments.length, 1);
});

Deno.test("lines count from one", () => {
  assertEquals(lineOf("a\nb\nc", 0), 1);
  assertEquals(lineOf("a\nb\nc", 2), 2);
  assertEquals(lineOf("a\nb\nc", 4), 3);
});

Deno.test("every way to name a module is found, and nothing else", () => {
  const text = [
    'import { a } from "one";',
    'import type { b } from "two";',
    'export * from "three";',
    'import "four";',
    'const c = await import("five");',
    'import {\n  d,\n} from "six";',
    'new Worker(new URL("./seven.ts", import.meta.url), { type: "module" });',
    'const e = Array.from("not this");',
    '// import "nor this";',
    'const f = "import \\"nor that\\"";',
    'const g = { from: "and not this" };',
  ].join("\n");
  assertEquals(
    moduleReferences(text).map((reference) => `${reference.kind} ${reference.specifier}`),
    [
      "import one",
      "import two",
      "import three",
      "import four",
      "import five",
      "import six",
      "worker ./seven.ts",
    ],
  );
});
