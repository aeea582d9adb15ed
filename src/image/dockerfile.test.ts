// biome-ignore-all lint/suspicious/noTemplateCurlyInString: Dockerfiles hold references of this form
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { jsonWords, parseDockerfile } from "./dockerfile.ts";
import { assignments, expand, WordError, words } from "./dockerfile-words.ts";

const parse = (text: string) => parseDockerfile(text, "Dockerfile").instructions;
/** Name, text and line of each. */
const brief = (text: string) => parse(text).map(({ name, text: rest, line }) => [name, rest, line]);

describe("the text of a Dockerfile", () => {
  test("is instructions with the line where they begin", () => {
    expect(brief("\n# c\nFROM a\n\n  run  x \\\n  # between\n\n   y\\\\\nENV A=1\r\nWORKDIR /w")).toEqual([
      ["FROM", "a", 3],
      ["RUN", "x    y\\\\", 5],
      ["ENV", "A=1", 9],
      ["WORKDIR", "/w", 10],
    ]);
  });

  test("may have another escape character, said before anything else", () => {
    expect(brief("# syntax=docker/dockerfile:1\n# escape=`\nRUN a `\n b\\\nRUN c")).toEqual([
      ["RUN", "a  b\\", 3],
      ["RUN", "c", 5],
    ]);
    expect(brief("FROM a\n# escape=`\nRUN a `\nRUN b")).toHaveLength(3);
    expect(() => parse("# escape=x\nFROM a")).toThrow("escape=x: Dockerfile:1");
  });

  test("has flags in front of an instruction's words", () => {
    const [copy, run, entrypoint] = parse(
      "COPY --from=a --chmod=755 --link b --c /\nRUN --x\nENTRYPOINT --a b",
    );
    expect([...(copy?.flags ?? [])]).toEqual([
      ["from", "a"],
      ["chmod", "755"],
      ["link", true],
    ]);
    expect(copy?.text).toBe("b --c /");
    expect(run?.text).toBe("");
    expect(entrypoint?.text).toBe("--a b");
  });

  test("has here-documents, which are taken as they are", () => {
    const text =
      "RUN <<EOF cat <<-'B' > f\n# no comment\\\n$A\nEOF\n\tx\n\tB\nCOPY <<\"a b\" /c\n$A\na b\nRUN echo $((1<<2)) '<<C'";
    const [run, copy, last] = parse(text);
    expect(run?.heredocs).toEqual([
      { word: "<<EOF", name: "EOF", content: "# no comment\\\n$A\n", isExpanded: true },
      { word: "<<-'B'", name: "B", content: "x\n", isExpanded: false },
    ]);
    expect(copy?.heredocs).toMatchObject([{ name: "a b", content: "$A\n", isExpanded: false }]);
    expect(last).toMatchObject({ line: 10, heredocs: [] });
    expect(() => parse("FROM a\nRUN <<EOF\nx\n")).toThrow("a here-document does not end: Dockerfile:2");
  });

  test("may hold arrays of strings", () => {
    expect(jsonWords('["a", "b c"]')).toEqual(["a", "b c"]);
    for (const text of ["['a']", '["a"', "[1]", "a [", "[ -d x ] && y"])
      expect(jsonWords(text)).toBeUndefined();
  });

  test("gives back any words that are quoted", () => {
    const word = fc.string({ unit: "grapheme" }).filter(text => text !== "" && !/[\r\n]/.test(text));
    fc.assert(
      fc.property(fc.array(word, { minLength: 1 }), list => {
        const quoted = list.map(text => `'${text.replaceAll("'", `'"'"'`)}'`);
        const context = { escapeCharacter: "\\", lookup: () => "x" } as const;
        expect(words(quoted.join(" "), "\\").map(text => expand(text, context))).toEqual(list);
      }),
    );
  });
});

// Right values: https://docs.docker.com/reference/dockerfile/#environment-replacement
describe("variables", () => {
  const lookup = (name: string) => ({ A: "a b", EMPTY: "", "1": "one" })[name];
  const context = { escapeCharacter: "\\", lookup } as const;
  test.each([
    ["$A/$A", "a b/a b"],
    ["${A}x", "a bx"],
    ["$B-${B}", "-"],
    ['\\$A \'$A\' "$A" "\\$A"', "$A $A a b $A"],
    ['\\a "\\a"', "a \\a"],
    ["${B:-d} ${EMPTY:-d} ${EMPTY-d} ${A:-d}", "d d  a b"],
    ["${A:+d} ${EMPTY:+d} ${EMPTY+d} ${B+d}", "d  d "],
    ['${B:-${A}/"}"}', "a b/}"],
    ["cost: 5$ $", "cost: 5$ $"],
  ])("in %j", (text, expected) => {
    expect(expand(text, context)).toBe(expected);
  });

  test.each(["'a", '"a', "${A", "${A/x/y}", "${B:?no}", "${}"])("are refused in %j", text => {
    expect(() => expand(text, context)).toThrow(WordError);
  });

  test("of an assignment are those before it", () => {
    expect(assignments("A=1 B=$A C='x y' D=p\\ q", context)).toEqual([
      ["A", "1"],
      ["B", "a b"],
      ["C", "x y"],
      ["D", "p q"],
    ]);
    expect(assignments('OLD the  "whole" rest', context)).toEqual([["OLD", "the  whole rest"]]);
    expect(() => assignments("A=1 B", context)).toThrow(WordError);
    expect(() => assignments("A", context)).toThrow(WordError);
  });
});
