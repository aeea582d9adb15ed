import { describe, expect, it } from "vitest";
import { parseIgnoreRules } from "./ignore-rules.ts";

// Results of pathspec 1.1.1 (GitIgnoreSpec.check_file), the version that Harbor 0.26.0 installs.
const ROWS: readonly (readonly [rules: string, path: string, ignored: boolean | undefined])[] = [
  ["*.log", "a.log", true],
  ["*.log", "a/b.log", true],
  ["*.log", "a.logs", undefined],
  ["/a", "a", true],
  ["/a", "b/a", undefined],
  ["a/b", "a/b", true],
  ["a/b", "c/a/b", undefined],
  ["a/", "a/", true],
  ["a/", "a", undefined],
  ["a/", "b/a/c", true],
  ["a/**/b", "a/b", true],
  ["a/**/b", "a/x/y/b", true],
  ["**/b", "a/b", true],
  ["a/**", "a/b", true],
  ["*", "a", true],
  ["**", "a/b", true],
  ["*/", "a", undefined],
  ["a?c", "abc", true],
  ["a?c", "a/c", undefined],
  ["[ab]", "a", true],
  ["[!ab]", "a", undefined],
  ["[!ab]", "c", true],
  ["[]a]", "]", true],
  ["[!]a]", "]", undefined],
  ["[a", "[a", undefined],
  ["[!]", "!", undefined],
  ["a.b", "axb", undefined],
  ["{a}", "{a}", true],
  ["\\*", "*", true],
  ["\\*", "a", undefined],
  ["\\#a", "#a", true],
  ["#a", "#a", undefined],
  ["\\!a", "!a", true],
  ["a  ", "a", true],
  ["a\\ ", "a ", true],
  [" a", " a", true],
  ["", "a", undefined],
  ["/", "a", undefined],
  ["*.log\n!a.log", "a.log", false],
  ["!a.log\n*.log", "a.log", true],
  ["a/\r\nb", "b", true],
  ["a/b\n!a/", "a/b", true],
];

describe("ignore rules", () => {
  it.each(ROWS)("%j say of %j: %j", (rules, path, ignored) => {
    expect(parseIgnoreRules(rules)(path)).toBe(ignored);
  });

  it.each(["!", "a\\", "[b-a]"])("refuse %j", rules => {
    expect(() => parseIgnoreRules(rules)).toThrow(SyntaxError);
  });
});
