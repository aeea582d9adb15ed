// JSON as Python's json.loads takes it, with its words for what is wrong: a policy reads them in the error that it is
// answered, and Harbor's are Python's (CPython 3.13, Lib/json/decoder.py and scanner.py).

export type JsonValue =
  | null
  | boolean
  | number
  | string
  | readonly JsonValue[]
  | ReadonlyMap<string, JsonValue>;

export class JsonProblem extends Error {}

/** Python gives up at some depth too (RecursionError); a reply has no reason to come near. */
const DEEPEST = 500;

const SPACE = /[ \t\n\r]*/y;
const NUMBER = /(-?(?:0|[1-9][0-9]*))(\.[0-9]+)?([eE][-+]?[0-9]+)?/y;
/** Characters that a string holds unescaped. */
const PLAIN_CHARACTER = '[^"\\\\\\u0000-\\u001f]';
const PLAIN = new RegExp(`${PLAIN_CHARACTER}*`, "y");
const WORDS: readonly (readonly [string, JsonValue])[] = [
  ["null", null],
  ["true", true],
  ["false", false],
  ["NaN", Number.NaN],
  ["Infinity", Number.POSITIVE_INFINITY],
  ["-Infinity", Number.NEGATIVE_INFINITY],
];
const ESCAPES: Readonly<Record<string, string>> = {
  '"': '"',
  "\\": "\\",
  "/": "/",
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
};

/** @throws JsonProblem with the message that Python's JSONDecodeError has */
export function parsePythonJson(text: string): JsonValue {
  let at = 0;

  const fail = (message: string, position: number): never => {
    const before = text.slice(0, position);
    const line = before.split("\n").length;
    // Python counts characters, not UTF-16 units.
    const column = [...before.slice(before.lastIndexOf("\n") + 1)].length + 1;
    throw new JsonProblem(`${message}: line ${line} column ${column} (char ${[...before].length})`);
  };
  const take = (pattern: RegExp): RegExpExecArray | null => {
    pattern.lastIndex = at;
    const match = pattern.exec(text);
    if (match !== null) at += match[0].length;
    return match;
  };

  const value = (depth: number): JsonValue => {
    if (depth > DEEPEST) fail("Nested too deeply", at);
    const next = text[at];
    if (next === '"') return string();
    if (next === "{") return object(depth);
    if (next === "[") return array(depth);
    for (const [word, meant] of WORDS) {
      if (!text.startsWith(word, at)) continue;
      at += word.length;
      return meant;
    }
    const number = take(NUMBER);
    return number === null ? fail("Expecting value", at) : Number(number[0]);
  };

  const string = (): string => {
    const start = at++;
    let result = "";
    for (;;) {
      result += take(PLAIN)?.[0] ?? "";
      const next = text[at];
      if (next === undefined) fail("Unterminated string starting at", start);
      if (next === '"') {
        at++;
        return result;
      }
      if (next !== "\\") fail("Invalid control character at", at);
      const escaped = text[at + 1];
      if (escaped === undefined) fail("Unterminated string starting at", start);
      if (escaped === "u") {
        const digits = text.slice(at + 2, at + 6);
        if (!/^[0-9a-fA-F]{4}$/.test(digits)) fail("Invalid \\uXXXX escape", at + 1);
        result += String.fromCharCode(Number.parseInt(digits, 16));
        at += 6;
      } else {
        result += ESCAPES[escaped as string] ?? fail("Invalid \\escape", at);
        at += 2;
      }
    }
  };

  const object = (depth: number): JsonValue => {
    const entries = new Map<string, JsonValue>();
    at++;
    take(SPACE);
    if (text[at] === "}") {
      at++;
      return entries;
    }
    for (;;) {
      if (text[at] !== '"') fail("Expecting property name enclosed in double quotes", at);
      const key = string();
      take(SPACE);
      if (text[at] !== ":") fail("Expecting ':' delimiter", at);
      at++;
      take(SPACE);
      entries.set(key, value(depth + 1));
      take(SPACE);
      const end = at;
      if (text[at] === "}") {
        at++;
        return entries;
      }
      if (text[at] !== ",") fail("Expecting ',' delimiter", at);
      at++;
      take(SPACE);
      if (text[at] === "}") fail("Illegal trailing comma before end of object", end);
    }
  };

  const array = (depth: number): JsonValue => {
    const items: JsonValue[] = [];
    at++;
    take(SPACE);
    if (text[at] === "]") {
      at++;
      return items;
    }
    for (;;) {
      items.push(value(depth + 1));
      take(SPACE);
      const end = at;
      if (text[at] === "]") {
        at++;
        return items;
      }
      if (text[at] !== ",") fail("Expecting ',' delimiter", at);
      at++;
      take(SPACE);
      if (text[at] === "]") fail("Illegal trailing comma before end of array", end);
    }
  };

  take(SPACE);
  const result = value(0);
  take(SPACE);
  if (at < text.length) fail("Extra data", at);
  return result;
}
