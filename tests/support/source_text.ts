// Reads TypeScript text just well enough to judge it: which characters are code, which are comments
// and which are the inside of a string. Everything keeps its place, so a position found in `code`
// is a position in the file. A pure function of the text; the rules that use it live elsewhere.

/** A string literal, without its quotes. Template literals are here when they have no `${}`. */
export interface StringLiteral {
  /** Position of the opening quote. */
  readonly start: number;
  /** The characters between the quotes, escapes as written. */
  readonly value: string;
}

/** A comment with its marks. */
export interface Comment {
  /** Position of the first `/`. */
  readonly start: number;
  /** The comment with its marks; a line comment ends before the line break. */
  readonly text: string;
}

/** A scanned file. */
export interface SourceText {
  /** The file with comments and the insides of strings, templates and patterns made blank. */
  readonly code: string;
  /** Comments in order. */
  readonly comments: readonly Comment[];
  /** String literals in order. */
  readonly strings: readonly StringLiteral[];
}

/** After one of these, a `/` begins a pattern and not a division. */
const BEFORE_PATTERN =
  /(?:^|[=(,:;!&|?{}[+\-*%<>~^]|\b(?:return|typeof|case|in|of|void|throw))\s*$/;

class Scanner {
  readonly #text: string;
  readonly #blank: string[];
  readonly comments: Comment[] = [];
  readonly strings: StringLiteral[] = [];
  #at = 0;

  constructor(text: string) {
    this.#text = text;
    this.#blank = [...Array(text.length).keys()].map((index) => text.charAt(index));
  }

  run(): SourceText {
    this.#code(false);
    return { code: this.#blank.join(""), comments: this.comments, strings: this.strings };
  }

  /** Walks code to the end, or to the `}` that closes a template's `${`. */
  #code(insideTemplate: boolean): void {
    let depth = 0;
    while (this.#at < this.#text.length) {
      const character = this.#text.charAt(this.#at);
      if (insideTemplate && character === "}" && depth === 0) return;
      if (character === "{") depth++;
      if (character === "}") depth--;
      if (!this.#literal(character)) this.#at++;
    }
  }

  /** Steps over a comment, string, template or pattern that begins here. */
  #literal(character: string): boolean {
    if (character === '"' || character === "'") this.#string(character);
    else if (character === "`") this.#template();
    else if (character !== "/") return false;
    else if (this.#text.startsWith("//", this.#at)) this.#comment("\n", 0);
    else if (this.#text.startsWith("/*", this.#at)) this.#comment("*/", 2);
    else if (this.#beginsPattern()) this.#pattern();
    else return false;
    return true;
  }

  #comment(end: string, keep: number): void {
    const start = this.#at;
    const found = this.#text.indexOf(end, start + 2);
    const stop = found < 0 ? this.#text.length : found + keep;
    this.comments.push({ start, text: this.#text.slice(start, stop) });
    this.#erase(start, stop);
    this.#at = stop;
  }

  #string(quote: string): void {
    const start = this.#at;
    let index = start + 1;
    while (index < this.#text.length && !`${quote}\n`.includes(this.#text.charAt(index))) {
      index += this.#text.charAt(index) === "\\" ? 2 : 1;
    }
    this.strings.push({ start, value: this.#text.slice(start + 1, index) });
    this.#erase(start + 1, index);
    this.#at = index + 1;
  }

  #template(): void {
    const start = this.#at;
    let from = start + 1;
    let plain = true;
    this.#at = from;
    while (this.#at < this.#text.length && this.#text.charAt(this.#at) !== "`") {
      if (this.#text.startsWith("${", this.#at)) {
        plain = false;
        this.#erase(from, this.#at);
        this.#at += 2;
        this.#code(true);
        from = this.#at + 1;
        this.#at = from;
      } else {
        this.#at += this.#text.charAt(this.#at) === "\\" ? 2 : 1;
      }
    }
    if (plain) this.strings.push({ start, value: this.#text.slice(from, this.#at) });
    this.#erase(from, this.#at);
    this.#at++;
  }

  #beginsPattern(): boolean {
    return BEFORE_PATTERN.test(this.#blank.slice(Math.max(0, this.#at - 40), this.#at).join(""));
  }

  #pattern(): void {
    const start = this.#at;
    let index = start + 1;
    let inClass = false;
    while (index < this.#text.length && this.#text.charAt(index) !== "\n") {
      const character = this.#text.charAt(index);
      if (character === "[") inClass = true;
      if (character === "]") inClass = false;
      if (character === "/" && !inClass) break;
      index += character === "\\" ? 2 : 1;
    }
    this.#erase(start + 1, index);
    this.#at = index + 1;
  }

  #erase(from: number, to: number): void {
    for (let index = from; index < to; index++) {
      if (this.#blank[index] !== "\n") this.#blank[index] = " ";
    }
  }
}

/** Scans one TypeScript file. Never fails: text that does not parse is code to the end. */
export function scanSource(text: string): SourceText {
  return new Scanner(text).run();
}

/** 1-based line of a position. */
export function lineOf(text: string, position: number): number {
  let line = 1;
  for (let at = text.indexOf("\n"); at >= 0 && at < position; at = text.indexOf("\n", at + 1)) {
    line++;
  }
  return line;
}

/** One module that a file refers to. */
export interface ModuleReference {
  /** The text between the quotes. */
  readonly specifier: string;
  /** 1-based line. */
  readonly line: number;
  /** `import`: static or dynamic import, or re-export. `worker`: `new Worker(new URL(…))`. */
  readonly kind: "import" | "worker";
}

/** Modules that a file imports, re-exports, imports dynamically or starts as a worker. */
export function moduleReferences(text: string): ModuleReference[] {
  const source = scanSource(text);
  const references: ModuleReference[] = [];
  for (const { start, value } of source.strings) {
    const before = source.code.slice(Math.max(0, start - 400), start).trimEnd();
    const imports = /(?:\bfrom|(?:^|[;\n}\s])import|\bimport\s*\(|\brequire\s*\()$/.test(before);
    const works = /\bnew Worker\(\s*new URL\($/.test(before);
    if (!imports && !works) continue;
    references.push({
      specifier: value,
      line: lineOf(text, start),
      kind: imports ? "import" : "worker",
    });
  }
  return references;
}
