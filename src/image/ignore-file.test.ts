import { expect, test } from "vitest";
import { parseDockerignore } from "./ignore-file.ts";

// Right values: https://docs.docker.com/build/concepts/context/#dockerignore-files
test.each([
  ["temp", ["temp", "temp/a"], ["a/temp", "temp2"]],
  ["*/temp*", ["a/temporary.txt", "a/temp/b"], ["temp", "a/b/temp"]],
  ["temp?", ["tempa"], ["temp", "temp/a"]],
  ["**/*.go", ["a.go", "a/b/c.go"], ["a.gox"]],
  ["/a/./b/", ["a/b", "a/b/c"], ["a"]],
  ["[a-c].t\nx\\*", ["b.t", "x*"], ["d.t", "xy"]],
  ["[^a].t", ["b.t"], ["a.t"]],
  ["*.md\n!README*.md\nREADME-secret.md", ["a.md", "README-secret.md"], ["README.md"]],
  ["# a comment\n\n  a  ", ["a"], ["# a comment"]],
])("%j leaves out %j and keeps %j", (text, ignored, kept) => {
  const isIgnored = parseDockerignore(text);
  expect(ignored.map(path => [path, isIgnored(path)])).toEqual(ignored.map(path => [path, true]));
  expect(kept.map(path => [path, isIgnored(path)])).toEqual(kept.map(path => [path, false]));
});
