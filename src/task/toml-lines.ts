// Finds the line of a key in a TOML document, for messages. The document is known to be valid: it was parsed before.
// The scan knows where keys, strings and brackets begin and end, and nothing about values.

type Path = readonly PropertyKey[];

/**
 * @param text a valid TOML document
 * @returns a function from a path (keys, and indices into arrays) to the line, from 1, of the key or array element;
 *          for a path that is not in the document the line of the nearest table around it, undefined when there is none
 */
export function locateKeys(text: string): (path: Path) => number | undefined {
  const lines = new Scan(text).run();
  return path => {
    for (let length = path.length; length > 0; length--) {
      const line = lines.get(pathKey(path.slice(0, length)));
      if (line !== undefined) return line;
    }
    return undefined;
  };
}

function pathKey(path: Path): string {
  return JSON.stringify(path.map(String));
}

class Scan {
  readonly #text: string;
  readonly #lines = new Map<string, number>();
  /** Elements so far of each array of tables. */
  readonly #tableCounts = new Map<string, number>();
  #at = 0;
  #line = 1;
  #countedTo = 0;

  constructor(text: string) {
    this.#text = text;
  }

  run(): ReadonlyMap<string, number> {
    let table: Path = [];
    this.#skipBlank();
    while (this.#at < this.#text.length) {
      if (this.#text[this.#at] === "[") table = this.#header();
      else this.#pair(table);
      this.#skipBlank();
    }
    return this.#lines;
  }

  /** `[a.b]` or `[[a.b]]`; a name of an array of tables stands for its newest element. */
  #header(): Path {
    const isArray = this.#text.startsWith("[[", this.#at);
    this.#at += isArray ? 2 : 1;
    const line = this.#currentLine();
    const names = this.#key();
    this.#skipBlank();
    this.#at += isArray ? 2 : 1;
    const path: PropertyKey[] = [];
    for (const [index, name] of names.entries()) {
      path.push(name);
      const key = pathKey(path);
      const count = this.#tableCounts.get(key) ?? 0;
      this.#record(path, line);
      if (isArray && index === names.length - 1) {
        this.#tableCounts.set(key, count + 1);
        path.push(count);
      } else if (count > 0) {
        path.push(count - 1);
      }
    }
    this.#record(path, line);
    return path;
  }

  #pair(table: Path): void {
    const line = this.#currentLine();
    const names = this.#key();
    for (const [index] of names.entries()) this.#record([...table, ...names.slice(0, index + 1)], line);
    this.#skipBlank();
    this.#at += 1; // the equals sign
    this.#value([...table, ...names]);
  }

  #value(path: Path): void {
    this.#skipBlank();
    const first = this.#text[this.#at];
    if (first === "[") this.#array(path);
    else if (first === "{") this.#inlineTable(path);
    else if (first === '"' || first === "'") this.#string();
    else if (this.#skipWhile(/[^,\]}\n#]/) === "") this.#at += 1; // not TOML after all: get on
  }

  #array(path: Path): void {
    this.#at += 1;
    for (let index = 0; this.#isInside("]"); index++) {
      this.#record([...path, index], this.#currentLine());
      this.#value([...path, index]);
    }
  }

  #inlineTable(path: Path): void {
    this.#at += 1;
    while (this.#isInside("}")) this.#pair(path);
  }

  /** Steps over separators; false, with the closing bracket consumed, when there is nothing more inside. */
  #isInside(close: string): boolean {
    this.#skipBlank();
    if (this.#text[this.#at] === ",") this.#at += 1;
    this.#skipBlank();
    const next = this.#text[this.#at];
    if (next !== undefined && next !== close) return true;
    this.#at += 1;
    return false;
  }

  #key(): string[] {
    const names: string[] = [];
    do {
      if (names.length > 0) this.#at += 1; // the dot
      this.#skipBlank();
      const quote = this.#text[this.#at];
      names.push(quote === '"' || quote === "'" ? this.#string() : this.#skipWhile(/[\w-]/));
      this.#skipBlank();
    } while (this.#text[this.#at] === ".");
    return names;
  }

  /** @returns the content; escapes are resolved as far as JSON knows them, which is enough to find a key. */
  #string(): string {
    const quote = this.#text[this.#at] ?? "";
    const fence = this.#text.startsWith(quote.repeat(3), this.#at) ? quote.repeat(3) : quote;
    this.#at += fence.length;
    const from = this.#at;
    while (this.#at < this.#text.length && !this.#text.startsWith(fence, this.#at)) {
      this.#at += quote === '"' && this.#text[this.#at] === "\\" ? 2 : 1;
    }
    const content = this.#text.slice(from, this.#at);
    this.#at += fence.length;
    // Up to two more quotes may belong to the end of the content.
    if (fence.length === 3) this.#skipWhile(quote === '"' ? /"/ : /'/);
    return quote === '"' && content.includes("\\") ? unescapeJson(content) : content;
  }

  #skipBlank(): void {
    for (;;) {
      this.#skipWhile(/\s/);
      if (this.#text[this.#at] !== "#") return;
      this.#skipWhile(/[^\n]/);
    }
  }

  #skipWhile(allowed: RegExp): string {
    const from = this.#at;
    while (this.#at < this.#text.length && allowed.test(this.#text.charAt(this.#at))) this.#at += 1;
    return this.#text.slice(from, this.#at);
  }

  #record(path: Path, line: number): void {
    const key = pathKey(path);
    if (!this.#lines.has(key)) this.#lines.set(key, line);
  }

  #currentLine(): number {
    for (; this.#countedTo < this.#at; this.#countedTo++) {
      if (this.#text[this.#countedTo] === "\n") this.#line += 1;
    }
    return this.#line;
  }
}

function unescapeJson(content: string): string {
  try {
    return String(JSON.parse(`"${content}"`));
  } catch {
    return content;
  }
}
