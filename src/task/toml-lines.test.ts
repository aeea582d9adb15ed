import fc from "fast-check";
import { parse } from "smol-toml";
import { describe, expect, it } from "vitest";
import { locateKeys } from "./toml-lines.ts";

const DOCUMENT = `# first
title = "a [b] = # c" # comment
"quoted \\"key\\"" = 'x'
'literal.key' = """
[not.a.table]
key = 1 \\"""
""""
dotted . inner = { a = 1, b = { c = [ 2, "]" ] } }

[table]
list = [
  "one", # ]
  [ 1,
    2 ],
  { deep = '''
''' },
]
after = 1979-05-27 07:32:00
[[rows]]
name = "first"
[rows.sub]
x = 1
[[rows]]
[rows.sub]
y = 1
[[rows.inner]]
z = 1
`;

const ROWS: readonly (readonly [path: readonly PropertyKey[], line: number | undefined])[] = [
  [["title"], 2],
  [['quoted "key"'], 3],
  [["literal.key"], 4],
  [["dotted"], 8],
  [["dotted", "inner", "b", "c", 1], 8],
  [["table"], 10],
  [["table", "list"], 11],
  [["table", "list", 0], 12],
  [["table", "list", 1], 13],
  [["table", "list", 1, 1], 14],
  [["table", "list", 2, "deep"], 15],
  [["table", "after"], 18],
  [["rows"], 19],
  [["rows", 0, "name"], 20],
  [["rows", 0, "sub"], 21],
  [["rows", 0, "sub", "x"], 22],
  [["rows", 1], 23],
  [["rows", 1, "sub", "y"], 25],
  [["rows", 1, "inner", 0, "z"], 27],
  [["rows", 1, "sub", "missing"], 24],
  [["table", "missing", "deeper"], 10],
  [["key"], undefined],
  [["missing"], undefined],
];

describe("locateKeys", () => {
  it("is tested on valid TOML", () => {
    expect(parse(DOCUMENT)).toHaveProperty(["rows", 1, "inner", 0, "z"], 1);
  });

  it.each(ROWS)("finds %j on line %j", (path, line) => {
    expect(locateKeys(DOCUMENT)(path)).toBe(line);
  });

  it("finds the line of every key, whatever values stand around it", () => {
    // Values chosen to look like something else to a scanner that miscounts quotes, brackets or comments.
    const value = fc.constantFrom(
      "1",
      "true",
      '"#"',
      '"\\""',
      "'\\'",
      '"""\n[x]\n"""',
      "'''\na = 1\n'''",
      '"""a""\\""""',
      "[\n1,\n2]",
      '["]", # ]\n"["]',
      "{ a = '}' }",
      "{ a = [{ b = 1 }] }",
      "[]",
      "{}",
      "1979-05-27T07:32:00Z",
      '""',
      "'''x'''''",
    );
    const section = fc.record({
      kind: fc.constantFrom("table", "row"),
      blank: fc.constantFrom("", "\n", "# [comment]\n", "  # a = 1\n\n"),
      values: fc.array(value, { maxLength: 5 }),
    });
    fc.assert(
      fc.property(fc.array(section, { maxLength: 6 }), sections => {
        let text = "";
        let rowCount = 0;
        const expected: (readonly [PropertyKey[], number])[] = [];
        for (const [index, { kind, blank, values }] of sections.entries()) {
          const table = kind === "table" ? [`t${index}`] : ["rows", rowCount++];
          text += `${blank}${kind === "table" ? `[t${index}]` : "[[rows]]"}\n`;
          for (const [position, written] of values.entries()) {
            expected.push([[...table, `k${position}`], text.split("\n").length]);
            text += `k${position} = ${written}\n`;
          }
        }
        parse(text);
        const lineOf = locateKeys(text);
        for (const [path, line] of expected) expect(lineOf(path)).toBe(line);
      }),
    );
  });

  it("ends on text that is not TOML", () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(..."[]{}=\"'.,#\n a\\") }), text => {
        expect(() => locateKeys(text)(["a"])).not.toThrow();
      }),
    );
  });
});
